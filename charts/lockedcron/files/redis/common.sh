# Shared by the scripts beside it; plain POSIX shell, for images that have little else.
run=/run/redis
secret=/etc/redis-secret
server=$(command -v valkey-server || command -v redis-server)
cli="$(command -v valkey-cli || command -v redis-cli) -s $run/redis.sock --no-auth-warning"

# As the user $1 of this pod alone, whose password only this pod knows.
as() {
  user=$1
  shift
  REDISCLI_AUTH=$(cat "$run/$user.password") $cli --user "$user" "$@"
}

hash_of() {
  tr -d '\n' <"$1" | sha256sum | cut -d ' ' -f 1
}

# Every password of the key $1 that is right at the moment, as "#hash #hash": while they are replaced there are several.
hashes_of() {
  for prefix in '' next- previous-; do
    if [ -s "$secret/$prefix$1" ]; then printf '#%s ' "$(hash_of "$secret/$prefix$1")"; fi
  done
}
