-- A part of the full log. ARGV: the first number, and the one after the last.
local head = redis.call('HGET', SESSION, 'head')
if not head then return false end
local numbers = {}
for seq = tonumber(ARGV[1]), math.min(tonumber(ARGV[2]), tonumber(head)) - 1 do
  numbers[#numbers + 1] = string.format('%.0f', seq)
end
return { head, fields(LOG, numbers), fields(PLACES, numbers), fields(EDITS, numbers) }
