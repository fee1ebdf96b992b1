-- Reads each key without changing it.
-- KEYS[i]        lock key
-- Returns one element per key; for one key, that element alone:
--   0                    no such key
--   {holder, pttl}       the value there, and its remaining milliseconds (-1: without TTL)
--   {'', message}        the key cannot be judged (WRONGTYPE, NOPERM ...)
local out = {}
for i = 1, #KEYS do
  local holder = redis.pcall('GET', KEYS[i])
  if type(holder) == 'table' then
    out[i] = {'', holder.err}
  elseif not holder then
    out[i] = 0
  else
    out[i] = {holder, redis.call('PTTL', KEYS[i])}
  end
end
if #out == 1 then return out[1] end
return out
