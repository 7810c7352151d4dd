-- Reads the rows of the index of words that can have some terms, and the stamp of the session. ARGV: the blocks; the terms.
-- For each block the answer has its first terms, and the number and the bytes of each row.
local stamp = stamp_now()
if not stamp then return false end
local blocks, at = list(1)
local terms = list(at)
local is_current = indexed_at() == stamp

local function first(firsts, row)
  local a, b, c, d = string.byte(firsts, 4 * row - 3, 4 * row)
  return ((a * 256 + b) * 256 + c) * 256 + d
end

local found = {}
for i, block in ipairs(blocks) do
  local firsts = is_current and redis.call('HGET', WORDS, block)
  local rows = firsts and rows_of(firsts)
  found[i] = rows and { firsts } or false
  local last = 0
  for _, term in ipairs(rows and terms or {}) do
    -- The last row that begins with the term or before it.
    local low, high = 0, rows
    while low < high do
      local middle = math.ceil((low + high) / 2)
      if first(firsts, middle) <= tonumber(term) then low = middle else high = middle - 1 end
    end
    if low > last then
      last = low
      table.insert(found[i], tostring(low))
      table.insert(found[i], redis.call('HGET', WORDS, block .. '.' .. low))
    end
  end
end
return { stamp, found }
