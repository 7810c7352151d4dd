-- All that a commit is decided on, as it is at one moment.
-- ARGV: the revision that the record would make; the numbers of the messages that it edits; the keys of its summaries.
local session = redis.call('HMGET', SESSION, 'head', 'revision', 'born', 'live_messages', 'live_tokens')
if not session[1] then return false end
local edited, at = list(2)
local keys = list(at)
return {
  session,
  redis.call('ZRANGEBYSCORE', RECORDS, ARGV[1], ARGV[1]),
  redis.call('ZRANGE', LIVE, 0, -1),
  fields(LOG, edited),
  fields(EDITS, edited),
  fields(PLACES, keys),
}
