-- Compare-and-pexpire: renews each key that still bears its value, and touches nothing else.
-- KEYS[1]        marker of this server's data (enlist.lua)
-- KEYS[i+1]      lock key
-- ARGV[1]        the marker that the client knows; '' to ask nothing
-- ARGV[2i]       value (token)
-- ARGV[2i+1]     new lease in milliseconds, counted from now
-- Returns one element per key; for one key, that element alone:
--   1                    found and renewed
--   0                    no such key (never re-created here: that would be a new vote under an old handle)
--   {holder, pttl}       somebody else's value, and its remaining milliseconds
--   {'', message}        the key cannot be judged (WRONGTYPE, NOPERM ...)
-- or the error INCARNATION, and nothing is done, as in acquire.lua: a holder by a list of nodes that is retired here must
-- not keep its lock for ever.
if ARGV[1] ~= '' and redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return redis.error_reply('INCARNATION the marker of the data is gone or another one')
end
local out = {}
for i = 1, #KEYS - 1 do
  local key, value, lease = KEYS[i + 1], ARGV[2 * i], ARGV[2 * i + 1]
  local holder = redis.pcall('GET', key)
  if type(holder) == 'table' then
    out[i] = {'', holder.err}
  elseif not holder then
    out[i] = 0
  elseif holder ~= value then
    out[i] = {holder, redis.call('PTTL', key)}
  else
    local done = redis.pcall('PEXPIRE', key, lease)
    if type(done) == 'table' then out[i] = {'', done.err} else out[i] = 1 end
  end
end
if #out == 1 then return out[1] end
return out
