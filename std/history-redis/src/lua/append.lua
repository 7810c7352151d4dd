-- Appends what was decided outside, if all that the decision rests on is still so. Answers whether it has ('done'), and if not,
-- what there is ('found'): head, revision, the receipt of the token, the places, the hidden calls, the revision of the state.
-- ARGV: the session's id, what tells this life of it from others, how long it lasts, the token, the expected head, the new
-- head, the receipt, the time if it is known, whether the revision moves, whether to write at all; the expected revision of the
-- state, empty where none is looked at, the new one, empty where none is written, and its text; the places that are expected, as
-- pairs of a number and how a place begins; commands.
local id, born, ttl, token, expected, head, receipt, time, moves, writes = unpack(ARGV, 1, 10)
local known, made, state = unpack(ARGV, 11, 13)
local seen = redis.call('HGET', RECEIPTS, token) or ''
local session = redis.call('HMGET', SESSION, 'head', 'appended', 'revision', 'state_revision')
local there, kept = session[1] or '0', session[4] or '0'
if seen == '' then
  local damaged = lost(there)
  if damaged then return damaged end
end

local places, at = list(14)
local found, same = {}, true
for i = 1, #places, 2 do
  local place = redis.call('HGET', PLACES, places[i]) or ''
  found[#found + 1] = place
  same = same and string.match(place, '^%d+ %d+') == places[i + 1]
end
same = same and seen == '' and there == expected and (known == '' or known == kept)
if writes == '0' or not same then
  return { 'found', session[1], session[3], seen, found, redis.call('HGETALL', OPEN), kept }
end

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
if made ~= '' then keep_state(made, state, head) end
touch(ttl)
return { 'done', head, revision, '', {}, {}, '' }
