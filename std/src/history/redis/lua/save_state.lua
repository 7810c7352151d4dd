-- Keeps a state. ARGV: how long the session lasts, the state's three texts.
local ttl, made_from, made, text = unpack(ARGV)
local head = redis.call('HGET', SESSION, 'head')
if not head then return '' end
local wrong = foreign()
if wrong then return wrong end
local outcome = keep_state(made_from, made, text, head)
touch(ttl)
return outcome
