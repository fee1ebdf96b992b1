-- Takes each key for its value if nobody has it, in one round trip for many keys.
-- KEYS[1]        marker of this server's data (enlist.lua)
-- KEYS[i+1]      lock key
-- ARGV[1]        the marker that the client knows; '' to ask nothing
-- ARGV[2i]       value (token) of the attempt
-- ARGV[2i+1]     lease in milliseconds
-- Returns one element per key; for one key, that element alone:
--   1                    taken now
--   2                    our own value sits there already; its TTL is the new lease
--   {holder, pttl}       somebody else's value, and its remaining milliseconds (-1: without TTL)
--   {'', message}        the key cannot be judged (WRONGTYPE, OOM, NOPERM ...), nothing was changed
-- or the error INCARNATION, and nothing is done: the data are not what they were (flushed, or replaced by those of another
-- master), so votes may have been lost, or they serve another list of nodes now. A restart ends the connection; this need not.
-- Uses SET NX PX on plain strings, so that any Redlock client interoperates.
if ARGV[1] ~= '' and redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return redis.error_reply('INCARNATION the marker of the data is gone or another one')
end
local out = {}
for i = 1, #KEYS - 1 do
  local key, value, lease = KEYS[i + 1], ARGV[2 * i], ARGV[2 * i + 1]
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
if #out == 1 then return out[1] end
return out
