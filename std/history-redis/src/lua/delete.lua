-- Deletes a session. ARGV: its id.
local wrong = foreign()
if wrong then return wrong end
local there = redis.call('EXISTS', SESSION)
for _, key in ipairs(KEYS) do
  if key ~= INDEX then redis.call('UNLINK', key) end
end
redis.call('ZREM', INDEX, ARGV[1])
return there
