-- Moves a counter forward, never back. Used in two rounds: add 1 everywhere, then raise a majority to the highest answer.
-- KEYS[1]        counter key (a decimal string, without TTL)
-- ARGV[1]        what to add
-- ARGV[2]        what it must at least become
-- Returns the new number
local now = tonumber(redis.call('GET', KEYS[1]) or '0')
local next = math.max(now + tonumber(ARGV[1]), tonumber(ARGV[2]))
redis.call('SET', KEYS[1], string.format('%.0f', next))
return string.format('%.0f', next)
