-- Takes each key for its value if nobody has it, in one round trip for many keys.
-- KEYS[i]        lock key
-- ARGV[1]        replication id of the incarnation that the client knows; '' to ask nothing
-- ARGV[2i]       value (token) of the attempt
-- ARGV[2i+1]     lease in milliseconds
-- Returns one element per key:
--   1                    taken now
--   2                    our own value sits there already; its TTL is the new lease
--   {holder, pttl}       somebody else's value, and its remaining milliseconds (-1: without TTL)
--   {'', message}        the key cannot be judged (WRONGTYPE, OOM, NOPERM ...), nothing was changed
-- or the error INCARNATION, and nothing is done: this server became a replica, or was promoted, since the client looked.
-- (A restart ends the connection; a change of role need not. Both may have lost votes.)
-- Uses SET NX PX on plain strings, so that any Redlock client interoperates.
if ARGV[1] ~= '' and string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)') ~= ARGV[1] then
  return redis.error_reply('INCARNATION the replication id changed')
end
local out = {}
for i = 1, #KEYS do
  local key, value, lease = KEYS[i], ARGV[2 * i], ARGV[2 * i + 1]
  local set = redis.pcall('SET', key, value, 'NX', 'PX', lease)
  if type(set) == 'table' and set.err then
    out[i] = {'', set.err}
  elseif set then
    out[i] = 1
  else
    local holder = redis.pcall('GET', key)
    if type(holder) == 'table' then
      out[i] = {'', holder.err}
    elseif holder == value then
      redis.call('PEXPIRE', key, lease)
      out[i] = 2
    else
      out[i] = {holder, redis.call('PTTL', key)}
    end
  end
end
return out
