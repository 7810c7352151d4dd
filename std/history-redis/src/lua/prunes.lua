-- Prunes. ARGV: after which revision, and how many.
if redis.call('EXISTS', SESSION) == 0 then return false end
return redis.call('ZRANGEBYSCORE', PRUNES, '(' .. ARGV[1], '+inf', 'LIMIT', '0', ARGV[2])
