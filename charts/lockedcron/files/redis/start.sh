#!/bin/sh
# Starts the node with its users; then, in the background, follows changed passwords and certificates without a restart.
set -eu
umask 077
. /etc/redis/common.sh

for user in keeper probe; do
  head -c 32 /dev/urandom | sha256sum | cut -d ' ' -f 1 | tr -d '\n' >"$run/$user.password"
done
# docs/lock.md lists what the lock needs; nobody has more than that.
cat >"$run/users.acl" <<USERS
user default off
user lockedcron on $(hashes_of password) ~$LOCK_PREFIX:* ~lockedcron:probe* -@all +ping +info +time +eval +evalsha +set +get +del +pexpire +pttl +select +client|setname
user probe on #$(hash_of "$run/probe.password") -@all +ping +info
user keeper on #$(hash_of "$run/keeper.password") -@all +ping +acl|setuser +config|set
USERS
if [ -n "${EXPORTER:-}" ]; then
  echo "user exporter on $(hashes_of exporter-password) -@all +ping +info +client|setname +config|get +latency|histogram +slowlog|len +slowlog|get" >>"$run/users.acl"
fi

tls_now() {
  if [ -d /etc/redis-tls ]; then cat /etc/redis-tls/tls.crt /etc/redis-tls/tls.key | sha256sum; fi
}

follow() {
  users="lockedcron:password${EXPORTER:+ exporter:exporter-password}"
  for pair in $users; do hashes_of "${pair#*:}" >"$run/${pair%:*}.hashes"; done
  tls=$(tls_now)
  while sleep 5; do
    for pair in $users; do
      name=${pair%:*}
      now=$(hashes_of "${pair#*:}")
      if [ -n "$now" ] && [ "$now" != "$(cat "$run/$name.hashes")" ]; then
        # Connections that are open stay so. ACL LOAD would end them.
        if [ "$(as keeper ACL SETUSER "$name" resetpass $now)" = OK ]; then
          printf %s "$now" >"$run/$name.hashes"
          echo "passwords of $name: read anew"
        fi
      fi
    done
    now=$(tls_now)
    if [ "$now" != "$tls" ] && [ "$(as keeper CONFIG SET tls-cert-file /etc/redis-tls/tls.crt tls-key-file /etc/redis-tls/tls.key)" = OK ]; then
      tls=$now
      echo "certificate: read anew"
    fi
  done
}
follow &
exec "$server" /etc/redis/redis.conf
