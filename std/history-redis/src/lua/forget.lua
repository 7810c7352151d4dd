-- Takes a session off the index that has ended by itself. ARGV: its id.
if redis.call('EXISTS', SESSION) == 0 then redis.call('ZREM', INDEX, ARGV[1]) end
return redis.status_reply('OK')
