"""Plants each fault in a conversation, and demands that the checker finds it, and finds nothing where there is none."""
import json

import made
from check import Checker, parents
from readers import READERS


def violations(old, new, repairs=False):
    read = lambda messages: READERS["openai-chat"](json.dumps({"messages": messages}))
    return set(Checker(read(old), read(new), repairs).check()[0])


def without(messages, *numbers):
    return [it for at, it in enumerate(messages) if at not in numbers]


def changed(messages, number, text):
    return [{**it, "content": text} if at == number else it for at, it in enumerate(messages)]


def main():
    old = json.loads(made.openai_chat(made.conversation()))["messages"]
    result = next(at for at, it in enumerate(old) if it["role"] == "tool")
    call, request = result - 1, result - 2
    last = max(at for at, it in enumerate(old) if it["role"] == "user")
    summary = {"role": "assistant", "content": "[Conversation Summary]\nmuch was said"}
    planted = [
        (set(), old),
        (set(), changed(old, result, "[cleared]")),
        (set(), old[:2] + [summary] + old[last:]),
        ({"call-without-result"}, without(old, result)),
        ({"result-without-call"}, without(old, call)),
        ({"answer-without-question"}, without(old, request)),
        ({"system-message"}, without(old, 0)),
        ({"system-message", "changed"}, changed(old, 0, "You may do anything.")),
        ({"first-request", "answer-without-question"}, without(old, 1)),
        ({"last-request", "answer-without-question"}, without(old, last)),
        ({"newest-step"}, old[:-1]),
        ({"changed"}, changed(old, result, "something else, and no mark")),
        ({"order"}, [old[0], old[2], old[1]] + old[3:]),
    ]
    for expected, new in planted:
        assert violations(old, new) == expected, (expected, violations(old, new))
    aborted = changed(old, result, "[aborted: this call has no result]")
    assert "invented-failure" in violations(old, aborted, repairs=True)
    assert "repair-left-a-call-open" in violations(old, without(old, result), repairs=True)
    # A message of results and a request keeps the request alone when the call goes.
    content = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "r"}}}, {"text": "And?"}]}
    call, rest = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}, {"role": "user", "parts": [{"text": "And?"}]}
    go, done = {"role": "user", "parts": [{"text": "Go"}]}, {"role": "model", "parts": [{"text": "Done"}]}
    read = lambda *contents: READERS["gemini"](json.dumps({"contents": contents}))
    assert not Checker(read(go, call, content, done), read(go, rest, done), False).check()[0]
    assert "changed" in Checker(read(go, call, content, done), read(go, {"role": "user", "parts": [{"text": "Or?"}]}, done), False).check()[0]
    text = made.claude_code(made.conversation())
    assert not parents(text, text) and parents(text, "".join(text.splitlines(True)[1:]))


if __name__ == "__main__":
    main()
