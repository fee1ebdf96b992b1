-- Compare-and-delete: removes each key that still bears its value.
-- KEYS[i]        lock key
-- ARGV[i]        value (token)
-- Returns one element per key; for one key, that element alone:
--   1                    found and deleted
--   0                    no such key
--   {holder, pttl}       somebody else's value, left alone
--   {'', message}        the key cannot be judged (WRONGTYPE, NOPERM ...)
local out = {}
for i = 1, #KEYS do
  local holder = redis.pcall('GET', KEYS[i])
  if type(holder) == 'table' then
    out[i] = {'', holder.err}
  elseif not holder then
    out[i] = 0
  elseif holder ~= ARGV[i] then
    out[i] = {holder, redis.call('PTTL', KEYS[i])}
  else
    local done = redis.pcall('DEL', KEYS[i])
    if type(done) == 'table' then out[i] = {'', done.err} else out[i] = 1 end
  end
end
if #out == 1 then return out[1] end
return out
