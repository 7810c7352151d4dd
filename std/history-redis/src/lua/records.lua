-- Committed records with their summaries. ARGV: after which revision, and how many.
if redis.call('EXISTS', SESSION) == 0 then return false end
local records = redis.call('ZRANGEBYSCORE', RECORDS, '(' .. ARGV[1], '+inf', 'LIMIT', '0', ARGV[2])
local summaries = {}
for i, record in ipairs(records) do
  local revision, keys = string.match(record, '^(%d+) %d+ %x+ (%S+)')
  local names = {}
  for key in string.gmatch(keys, '%d+') do
    names[#names + 1] = key .. '.' .. revision
  end
  summaries[i] = fields(SUMMARIES, names)
end
return { records, summaries }
