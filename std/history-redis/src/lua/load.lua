-- The live projection. ARGV: 'all', or 'tail' for the last turn.
local session = redis.call('HMGET', SESSION, 'head', 'revision', 'live_messages')
if not session[1] then return false end
if redis.call('ZCARD', LIVE) ~= tonumber(session[3]) then
  return redis.error_reply('DAMAGED the visible messages are others than the session counts')
end

local damaged = lost(session[1])
if damaged then return damaged end

-- Newest first, up to a message of another turn than the newest: late answers stand among messages of later turns.
local function tail()
  local members, first, turn = {}, 0, nil
  while true do
    local page = redis.call('ZREVRANGE', LIVE, first, first + 31)
    for _, member in ipairs(page) do
      if not string.find(member, '^m %d+ %d+ %d+ %d+ e?l') then
        local its = string.match(member, '^%a %d+ %d+ (%d+)')
        turn = turn or its
        if its ~= turn then return members end
      end
      members[#members + 1] = member
    end
    if #page < 32 then return members end
    first = first + 32
  end
end

local members = ARGV[1] == 'tail' and tail() or redis.call('ZRANGE', LIVE, 0, -1)
local messages, summaries, edited = {}, {}, {}
for _, member in ipairs(members) do
  local kind, key, of, flags = string.match(member, '^(%a) (%d+) (%d+) %d+ %d+ (%S*)')
  if kind == 's' then
    summaries[#summaries + 1] = key .. '.' .. of
  else
    messages[#messages + 1] = key
    if string.find(flags, 'e', 1, true) then edited[#edited + 1] = key end
  end
end
return {
  session[1],
  session[2],
  members,
  fields(LOG, messages),
  fields(SUMMARIES, summaries),
  fields(EDITS, edited),
  redis.call('HGETALL', OPEN),
}
