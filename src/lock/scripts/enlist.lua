-- Reads the marker of this server's data, and enters a list of nodes into it where that is allowed.
-- KEYS[1]        marker: '<history> <list>', or '<history> <list>?' while the list is not in force yet; without TTL
-- ARGV[1]        history for data that have no marker
-- ARGV[2]        our list
-- ARGV[3]        the list that ours takes the place of; '' for none
-- ARGV[4]        1: our list is known to be in force
-- ARGV[5]        what to enter where no list is: '<list>', '<list>?', or '' to leave it
-- Returns the marker as it is now ('' when there is none). Nothing is changed when memory is full.
-- The list before is retired here: who still has it gets no vote any more, since acquire and extend compare the marker.
local now = redis.call('GET', KEYS[1]) or ''
local history, list = string.match(now, '^(%S+) (%S+)$')
if not list then history, list = now, '' end
if history == '' then history = ARGV[1] end
local next = list
if list == '' then
  next = ARGV[5]
elseif ARGV[3] ~= '' and list == ARGV[3] then
  next = ARGV[2] .. '?'
end
if next == ARGV[2] .. '?' and ARGV[4] == '1' then next = ARGV[2] end
if next == list then return now end
local marker = history .. ' ' .. next
local set = redis.pcall('SET', KEYS[1], marker)
if type(set) == 'table' and set.err then return now end
return marker
