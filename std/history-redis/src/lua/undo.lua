-- All that the undoing of a record is decided on, as it is at one moment.
-- ARGV: the revision that the record made; the numbers of the messages that it edits, as far as they are known.
local session = redis.call('HMGET', SESSION, 'head', 'revision', 'born', 'live_messages', 'live_tokens')
if not session[1] then return false end
local edited = list(2)

-- The latest record that is not undone.
local latest, first = '0', 0
repeat
  local page = redis.call('ZREVRANGE', RECORDS, first, first + 15)
  for _, record in ipairs(page) do
    local made, undone = string.match(record, '^(%d+) (%d+)')
    if undone == '0' then
      latest = made
      break
    end
  end
  first = first + 16
until latest ~= '0' or #page < 16

return {
  session,
  redis.call('ZRANGEBYSCORE', RECORDS, ARGV[1], ARGV[1]),
  latest,
  redis.call('ZRANGE', PRUNES, 0, -1),
  redis.call('ZRANGE', LIVE, 0, -1),
  redis.call('ZRANGEBYSCORE', HIDDEN, ARGV[1], ARGV[1]),
  fields(LOG, edited),
  #edited > 0 and redis.call('ZRANGE', RECORDS, 0, -1) or {},
  redis.call('HGETALL', OPEN),
}
