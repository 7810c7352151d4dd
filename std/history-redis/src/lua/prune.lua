-- All that a prune is decided on, as it is at one moment. ARGV: up to which revision what is hidden goes.
local session = redis.call('HMGET', SESSION, 'head', 'revision', 'born', 'live_messages', 'live_tokens')
if not session[1] then return false end
local members = redis.call('ZRANGEBYSCORE', HIDDEN, '-inf', ARGV[1])
local messages, summaries = {}, {}
for _, member in ipairs(members) do
  local kind, key, of = string.match(member, '^(%a) (%d+) (%d+)')
  if kind == 's' then
    summaries[#summaries + 1] = key .. '.' .. of
  else
    messages[#messages + 1] = key
  end
end

-- The appends that brought these messages.
local tokens, known = {}, {}
for _, seq in ipairs(messages) do
  local token = redis.call('ZREVRANGEBYSCORE', APPENDS, seq, '-inf', 'LIMIT', '0', '1')[1]
  if token and not known[token] then
    known[token] = true
    tokens[#tokens + 1] = token
  end
end
return {
  session,
  members,
  fields(LOG, messages),
  fields(EDITS, messages),
  fields(SUMMARIES, summaries),
  #members > 0 and redis.call('ZRANGE', RECORDS, 0, -1) or {},
  redis.call('ZRANGE', PRUNES, 0, -1),
  tokens,
  fields(RECEIPTS, tokens),
}
