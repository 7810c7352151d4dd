-- Appends what was decided outside, if all that the decision rests on is still so.
-- ARGV: the session's id, what tells this life of it from others, how long it lasts, the token, the expected head, the new
-- head, the receipt, the time if it is known, whether the revision moves, whether to write at all; the state's three texts, empty
-- without one; the places that are expected, as pairs of a number and how a place begins; commands.
local id, born, ttl, token, expected, head, receipt, time, moves, writes = unpack(ARGV, 1, 10)
local made_from, made, state = unpack(ARGV, 11, 13)
local seen = redis.call('HGET', RECEIPTS, token)
if seen then return { 'seen', seen, {}, {}, '' } end

local session = redis.call('HMGET', SESSION, 'head', 'appended')
local there = session[1] or '0'
local damaged = lost(there)
if damaged then return damaged end
if there ~= expected then return { 'head', there, {}, {}, '' } end

local places, at = list(14)
local found, same = {}, true
for i = 1, #places, 2 do
  local place = redis.call('HGET', PLACES, places[i]) or ''
  found[#found + 1] = place
  same = same and string.match(place, '^%d+ %d+') == places[i + 1]
end
if not same then return { 'places', '', found, redis.call('HGETALL', OPEN), '' } end
if writes == '0' then return { 'fine', '', {}, {}, '' } end

local wrong = foreign()
if wrong then return wrong end
if not session[1] then
  redis.call('HSET', SESSION, 'id', id, 'born', born, 'revision', '0', 'live_messages', '0', 'live_tokens', '0')
  redis.call('ZADD', INDEX, '0', id)
end
apply(at)
redis.call('HSET', SESSION, 'head', head)
redis.call('HINCRBY', SESSION, 'revision', moves)
local revision = redis.call('HGET', SESSION, 'revision')

-- Not earlier than the append before. Numbers of up to twenty digits: the longer is the larger.
local last = session[2] or ''
if #last > #time or (#last == #time and last > time) then time = last end
if time ~= '' then
  redis.call('HSET', SESSION, 'appended', time)
  redis.call('HSETNX', SESSION, 'created', time)
end
redis.call('HSET', RECEIPTS, token, receipt .. ' ' .. revision .. ' ' .. (time == '' and '-' or time))
local outcome = keep_state(made_from, made, state, head)
touch(ttl)
return { 'done', revision, {}, {}, outcome }
