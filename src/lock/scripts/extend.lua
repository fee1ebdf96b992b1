-- Compare-and-pexpire: renews each key that still bears its value, and touches nothing else.
-- KEYS[i]        lock key
-- ARGV[2i-1]     value (token)
-- ARGV[2i]       new lease in milliseconds, counted from now
-- Returns one element per key:
--   1                    found and renewed
--   0                    no such key (never re-created here: that would be a new vote under an old handle)
--   {holder, pttl}       somebody else's value, and its remaining milliseconds
--   {'', message}        the key cannot be judged (WRONGTYPE, NOPERM ...)
local out = {}
for i = 1, #KEYS do
  local holder = redis.pcall('GET', KEYS[i])
  if type(holder) == 'table' then
    out[i] = {'', holder.err}
  elseif not holder then
    out[i] = 0
  elseif holder ~= ARGV[2 * i - 1] then
    out[i] = {holder, redis.call('PTTL', KEYS[i])}
  else
    local done = redis.pcall('PEXPIRE', KEYS[i], ARGV[2 * i])
    if type(done) == 'table' then out[i] = {'', done.err} else out[i] = 1 end
  end
end
return out
