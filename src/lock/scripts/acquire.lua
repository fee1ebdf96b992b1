-- Takes each key for its value if nobody has it, in one round trip for many keys.
-- KEYS[i]        lock key
-- ARGV[2i-1]     value (token) of the attempt
-- ARGV[2i]       lease in milliseconds
-- Returns one element per key:
--   1                    taken now
--   2                    our own value sits there already; its TTL is the new lease
--   {holder, pttl}       somebody else's value, and its remaining milliseconds (-1: without TTL)
--   {'', message}        the key cannot be judged (WRONGTYPE, OOM, NOPERM ...), nothing was changed
-- Uses SET NX PX on plain strings, so that any Redlock client interoperates.
local out = {}
for i = 1, #KEYS do
  local key, value, lease = KEYS[i], ARGV[2 * i - 1], ARGV[2 * i]
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
