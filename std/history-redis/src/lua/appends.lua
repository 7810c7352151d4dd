-- Appends, and what was answered to them. ARGV: from the one that brought this message, and how many.
local head = redis.call('HGET', SESSION, 'head')
if not head then return false end
if tonumber(ARGV[1]) >= tonumber(head) then return { {}, {} } end
local first = redis.call('ZREVRANGEBYSCORE', APPENDS, ARGV[1], '-inf', 'WITHSCORES', 'LIMIT', '0', '1')[2]
if not first then return redis.error_reply('DAMAGED an append is missing') end
local tokens = redis.call('ZRANGEBYSCORE', APPENDS, first, '+inf', 'LIMIT', '0', ARGV[2])
return { tokens, fields(RECEIPTS, tokens) }
