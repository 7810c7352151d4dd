-- What every script begins with: the keys by name, and what several of them do.
local SESSION, LOG, PLACES, LIVE, HIDDEN, SUMMARIES, EDITS, RECORDS, PRUNES, RECEIPTS, APPENDS, OPEN, WORDS, INDEX =
  unpack(KEYS)

-- How many arguments a command gets at most: Lua's stack is not endless. It is even, so that pairs stay together.
local ARGS_MAX = 1000

-- The index of words may be anything: where it is no hash, there is none.
local KINDS = {
  'hash', 'hash', 'hash', 'zset', 'zset', 'hash', 'hash', 'zset', 'zset', 'hash', 'zset', 'hash', false, 'zset',
}

-- The first key that holds something of another type than ours. Asked before anything is written: what a script has
-- done is not undone when it fails.
local function foreign()
  for i, key in ipairs(KEYS) do
    local kind = redis.call('TYPE', key).ok
    if kind ~= 'none' and KINDS[i] and kind ~= KINDS[i] then
      return redis.error_reply('WRONGTYPE a key holds something of another type')
    end
  end
end

-- An error if there are more or fewer messages and places than a session with this head has: keys were lost.
local function lost(head)
  for _, key in ipairs({ LOG, PLACES }) do
    if redis.call('HLEN', key) ~= tonumber(head) then
      return redis.error_reply('DAMAGED the messages are more or fewer than the session counts')
    end
  end
end

-- What these fields of a hash hold, false for one that is not there.
local function fields(key, names)
  local found = {}
  for first = 1, #names, ARGS_MAX do
    local last = math.min(first + ARGS_MAX - 1, #names)
    for _, value in ipairs(redis.call('HMGET', key, unpack(names, first, last))) do
      found[#found + 1] = value
    end
  end
  return found
end

-- The arguments from `at` on that follow their number, and where the next ones are.
local function list(at)
  local count = tonumber(ARGV[at])
  local values = {}
  for i = 1, count do
    values[i] = ARGV[at + i]
  end
  return values, at + count + 1
end

-- Whether every member that the commands from `at` on take out of a sorted set is in it.
local function whole(at)
  while ARGV[at] do
    local key, command, args = KEYS[tonumber(ARGV[at])], ARGV[at + 1], nil
    args, at = list(at + 2)
    if command == 'ZREM' then
      for _, member in ipairs(args) do
        if not redis.call('ZSCORE', key, member) then return false end
      end
    end
  end
  return true
end

-- Does the commands from `at` on: each is the number of its key, its name, and its arguments behind their number.
local function apply(at)
  while ARGV[at] do
    local key, command, args = KEYS[tonumber(ARGV[at])], ARGV[at + 1], nil
    args, at = list(at + 2)
    for first = 1, #args, ARGS_MAX do
      redis.call(command, key, unpack(args, first, math.min(first + ARGS_MAX - 1, #args)))
    end
  end
end

-- The stamp of the session. It changes with each prune and with each new session of the id.
local function stamp_now()
  local born = redis.call('HGET', SESSION, 'born')
  return born and born .. ' ' .. redis.call('ZCARD', PRUNES)
end

-- The stamp that the session had when its index of words was written; false if it has none.
local function indexed_at()
  return redis.call('TYPE', WORDS).ok == 'hash' and redis.call('HGET', WORDS, 'of')
end

-- The number of rows of a block by its first terms, of four bytes each, with a checksum of eight behind them; nil for other bytes.
local function rows_of(firsts)
  if #firsts >= 8 and #firsts % 4 == 0 then return #firsts / 4 - 2 end
end

-- Takes blocks off the index of words. Answers false if one of them is damaged: then the whole index is to go.
local function drop_words(blocks)
  for _, block in ipairs(blocks) do
    local firsts, count = unpack(redis.call('HMGET', WORDS, block, block .. '.rows'))
    if firsts or count then
      local rows = firsts and rows_of(firsts)
      if not rows or tonumber(count) ~= rows then return false end
      for row = 1, rows do
        redis.call('HDEL', WORDS, block .. '.' .. row)
      end
      redis.call('HDEL', WORDS, block, block .. '.rows')
    end
  end
  return true
end

-- Keeps a state.
local function keep_state(made, text, head)
  redis.call('HSET', SESSION, 'state_revision', made, 'state_head', head, 'state', text)
end

-- Lets the session end so many milliseconds after now: all its keys at one moment. '0' is never.
local function touch(ttl)
  if ttl == '0' and redis.call('PTTL', SESSION) < 0 then return end
  local now = redis.call('TIME')
  local ends = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000) + ttl)
  for _, key in ipairs(KEYS) do
    if key ~= INDEX then
      if ttl == '0' then redis.call('PERSIST', key) else redis.call('PEXPIREAT', key, ends) end
    end
  end
end

