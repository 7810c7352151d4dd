-- Keeps a state in place of the one that is expected. Answers whether it has. ARGV: how long the session lasts, the expected
-- revision of the state, the new one, and its text.
local ttl, known, made, text = unpack(ARGV)
local session = redis.call('HMGET', SESSION, 'head', 'state_revision')
if not session[1] or known ~= (session[2] or '0') then return 0 end
local wrong = foreign()
if wrong then return wrong end
keep_state(made, text, session[1])
touch(ttl)
return 1
