"""One half of session.sh: what Microsoft Agent Framework makes of a session."""

import asyncio
import json
import sys

from agent_framework import (
    AgentSession,
    Content,
    InMemoryHistoryProvider,
    Message,
    SlidingWindowStrategy,
    apply_compaction,
)


def make(out):
    """A session with contents of every kind that its constructors make."""
    call = Content.from_function_call("c9", "delete", arguments='{"all":true}')
    request = Content.from_function_approval_request("a1", call)
    messages = [
        Message("system", ["Be brief."]),
        Message(
            "user",
            [
                Content.from_text("Hi"),
                Content.from_uri("https://example.com/y.png", media_type="image/png"),
                Content.from_data(b"\x89PNG", "image/png"),
            ],
            author_name="Al",
            message_id="m1",
            additional_properties={"k": [1, 2.5, None]},
        ),
        Message(
            "assistant",
            [
                Content.from_text_reasoning(text="hm", protected_data="sealed", id="rs_1"),
                Content.from_function_call("c1", "f", arguments='{"a":1}'),
                Content.from_function_call("c2", "g", arguments={"b": 2}),
            ],
        ),
        Message(
            "tool",
            [
                Content.from_function_result("c1", result="ok"),
                Content.from_function_result("c2", result={"x": [1]}, exception="boom"),
            ],
        ),
        Message(
            "assistant",
            [
                Content.from_usage({"input_token_count": 3}),
                Content.from_error(message="e", error_code="1"),
                Content.from_hosted_file("f1"),
                Content.from_hosted_vector_store("v1"),
            ],
        ),
        Message(
            "assistant",
            [
                Content.from_code_interpreter_tool_call(call_id="ci", inputs=[Content.from_text("print(1)")]),
                Content.from_code_interpreter_tool_result(call_id="ci", outputs=[Content.from_text("1")]),
                Content.from_mcp_server_tool_call("mc", "t", server_name="srv", arguments={"q": 1}),
                Content.from_mcp_server_tool_result("mc", output=[Content.from_text("r")]),
            ],
        ),
        Message("assistant", [call, request]),
        Message("user", [request.to_function_approval_response(True)]),
        Message("tool", [Content.from_function_result("c9", result="deleted")]),
    ]
    session = AgentSession(session_id="from-python")
    session.state["in_memory"] = {"messages": messages}
    session.state["custom"] = {"type": "unheard_of", "deep": [1, 0.1, {"x": None}]}
    write(out, session.to_dict())


def compact(out):
    """A session of which a compaction has excluded the older part. Prints how many messages it then shows."""
    messages = [Message("system", ["Be brief."])]
    for turn in range(3):
        messages += [
            Message("user", [f"Question {turn}"]),
            Message("assistant", [Content.from_function_call(f"c{turn}", "f", arguments="{}")]),
            Message("tool", [Content.from_function_result(f"c{turn}", result="ok")]),
            Message("assistant", [f"Answer {turn}"]),
        ]
    shown = asyncio.run(apply_compaction(messages, strategy=SlidingWindowStrategy(keep_last_groups=4)))
    session = AgentSession(session_id="compacted")
    session.state["in_memory"] = {"messages": messages}
    write(out, session.to_dict())
    print(len(shown))


def sent(path):
    """Prints what an agent sends of a session whose history provider leaves out what is excluded."""
    session = AgentSession.from_dict(read(path))
    provider = InMemoryHistoryProvider(skip_excluded=True)
    state = session.state["in_memory"]
    messages = asyncio.run(provider.get_messages(session.session_id, state=state))
    # A strategy of theirs that has nothing to do groups and projects them too, and must not bring back what is excluded.
    strategy = SlidingWindowStrategy(keep_last_groups=100)
    projected = asyncio.run(apply_compaction(list(state["messages"]), strategy=strategy))
    assert [message.to_dict()["contents"] for message in projected] == [
        message.to_dict()["contents"] for message in messages
    ], "a projection of theirs differs"
    for message in messages:
        print(f"{message.role}: {message.text}".replace("\n", " "))


def check(before, after, out):
    """`after` is `before` and what was said since; it is added to, and written again."""
    before, after = read(before), read(after)
    assert after["type"] == "session" and after["session_id"] == before["session_id"]
    # A list that a provider of theirs has loaded is theirs; ours may have become typed state in between.
    known = before["state"]["in_memory"]["messages"]
    session = AgentSession.from_dict(after)
    state = session.state["in_memory"]
    messages = asyncio.run(InMemoryHistoryProvider().get_messages(session.session_id, state=state))
    assert all(isinstance(message, Message) for message in messages)
    written = session.to_dict()
    # They write what they read as we wrote it: ours is their own form.
    assert written["state"] == after["state"], "their form differs"
    now = written["state"]["in_memory"]["messages"]
    assert now[: len(known)] == known, "messages were changed"
    assert written["state"].get("custom") == before["state"].get("custom")
    if before != after:
        assert [message["contents"][0].get("text") for message in now[len(known) :]] == ["And now?", "Done."]
    state["messages"].append(Message("user", ["Said in Python."]))
    write(out, session.to_dict())


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


if __name__ == "__main__":
    {"make": make, "compact": compact, "sent": sent, "check": check}[sys.argv[1]](*sys.argv[2:])
