-- Does what was decided on a survey, if nothing has come between that could have led to another decision.
-- ARGV: what tells this life of the session from others, how long it lasts, the revision and the head of the survey; the
-- groups that must not have grown since; the blocks of the index of words that are to go; commands. No group that is hidden may have grown either.
local born, ttl, revision, head = unpack(ARGV, 1, 4)
local session = redis.call('HMGET', SESSION, 'born', 'revision', 'head')
if session[1] ~= born or session[2] ~= revision then return 'moved' end
local damaged = lost(session[3])
if damaged then return damaged end
local groups, at = list(5)
local blocks
blocks, at = list(at)
if session[3] ~= head then
  local guarded = {}
  for _, anchor in ipairs(groups) do
    guarded[anchor] = true
  end
  for seq = tonumber(head), tonumber(session[3]) - 1 do
    local place = redis.call('HGET', PLACES, string.format('%.0f', seq))
    local anchor, hidden = string.match(place or '', '^(%d+) (%d+)')
    if not anchor or hidden ~= '0' or guarded[anchor] then return 'moved' end
  end
end

local wrong = foreign()
if wrong then return wrong end
if not whole(at) then return 'damaged' end
local is_indexed = indexed_at() == stamp_now()
apply(at)
if is_indexed and drop_words(blocks) then
  redis.call('HSET', WORDS, 'of', stamp_now())
elseif #blocks > 0 then
  redis.call('UNLINK', WORDS)
end
touch(ttl)
return 'done'
