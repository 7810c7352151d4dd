-- Writes a block of the index of words, if the session still has this stamp. ARGV: the stamp; the blocks that it replaces; its
-- name and the first terms of its rows; the rows.
if stamp_now() ~= ARGV[1] then return redis.status_reply('MOVED') end
local replaced, at = list(2)
-- A server without memory refuses the first command of a script alone, if that takes memory. This one changes nothing.
redis.call('HSET', SESSION, 'born', redis.call('HGET', SESSION, 'born'))
if indexed_at() ~= ARGV[1] or not drop_words(replaced) then redis.call('UNLINK', WORDS) end
local rows = list(at + 3)
redis.call('HSET', WORDS, 'of', ARGV[1], ARGV[at + 1], ARGV[at + 2], ARGV[at + 1] .. '.rows', #rows)
for i, row in ipairs(rows) do
  redis.call('HSET', WORDS, ARGV[at + 1] .. '.' .. i, row)
end
local left = redis.call('PTTL', SESSION)
if left >= 0 then
  local now = redis.call('TIME')
  redis.call('PEXPIREAT', WORDS, string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) + left))
end
return redis.status_reply('OK')
