"""One conversation, written in every format that has an easy form: what the sweep runs on where there is no other transcript."""
import json

TURNS, RESULT_WORDS = 9, 120


def conversation():
    """Rows (role, text, calls, call id): three questions without a tool, the others with one to three calls, some at once."""
    rows = [("system", "You are a careful assistant. Answer in one sentence.", [], None)]
    number = 0
    for turn in range(TURNS):
        rows.append(("user", f"Question {turn}: what does file {turn % 4} say about item {turn}?", [], None))
        for step in range(turn % 3):
            calls = []
            for _ in range(1 + (turn + step) % 2):
                number += 1
                calls.append((f"call_{number:03}", "read_file", {"path": f"src/file_{number % 4}.txt"}))
            rows.append(("assistant", f"I look into it, step {step}." if step else "", calls, None))
            for id, _, arguments in calls:
                said = " ".join(f"{arguments['path']}:{line}" for line in range(RESULT_WORDS))
                rows.append(("tool", said, [], id))
        rows.append(("assistant", f"Answer {turn}: it says {turn * 7}. " + "And this is why. " * 12, [], None))
    return rows


def openai_chat(rows):
    messages = []
    for role, text, calls, id in rows:
        it = {"role": role, "content": text}
        if calls:
            it["tool_calls"] = [{"id": call, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}} for call, name, given in calls]
        if id:
            it["tool_call_id"] = id
        messages.append(it)
    return json.dumps({"model": "m", "messages": messages}, indent=1)


def items(rows):
    for role, text, calls, id in rows:
        if id:
            yield {"type": "function_call_output", "call_id": id, "output": text}
        elif text:
            kind = "output_text" if role == "assistant" else "input_text"
            yield {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        for call, name, given in calls:
            yield {"type": "function_call", "call_id": call, "name": name, "arguments": json.dumps(given)}


def openai_responses(rows):
    return json.dumps({"model": "m", "instructions": rows[0][1], "input": list(items(rows[1:]))})


def codex(rows):
    time = "2025-09-25T10:00:00.000Z"
    head = {"id": "0199", "timestamp": time, "cwd": "/", "originator": "codex_cli_rs", "cli_version": "0.41.0", "instructions": None}
    records = [{"timestamp": time, "type": "session_meta", "payload": head}]
    records += [{"timestamp": time, "type": "response_item", "payload": it} for it in items(rows[1:])]
    return "".join(json.dumps(it) + "\n" for it in records)


def joined(rows):
    """The same with the results of one step in one row: (role, text, calls, [(id, text)])."""
    found = []
    for role, text, calls, id in rows:
        if id and found[-1][3]:
            found[-1][3].append((id, text))
        elif id:
            found.append(("user", "", [], [(id, text)]))
        else:
            found.append((role, text, calls, []))
    return found


def anthropic_message(role, text, calls, results):
    content = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool_use", "id": id, "name": name, "input": given} for id, name, given in calls]
    content += [{"type": "tool_result", "tool_use_id": id, "content": said} for id, said in results]
    return {"role": role, "content": content}


def anthropic(rows):
    messages = [anthropic_message(*row) for row in joined(rows[1:])]
    return json.dumps({"model": "m", "max_tokens": 1000, "system": rows[0][1], "messages": messages})


def gemini(rows):
    contents = []
    for role, text, calls, results in joined(rows[1:]):
        parts = [{"text": text}] if text else []
        parts += [{"functionCall": {"id": id, "name": name, "args": given}} for id, name, given in calls]
        parts += [{"functionResponse": {"id": id, "name": "read_file", "response": {"output": said}}} for id, said in results]
        contents.append({"role": "model" if role == "assistant" else "user", "parts": parts})
    return json.dumps({"systemInstruction": {"parts": [{"text": rows[0][1]}]}, "contents": contents})


def claude_code(rows):
    lines, above = [], None
    for number, row in enumerate(joined(rows[1:])):
        message, id = anthropic_message(*row), f"00000000-0000-4000-8000-{number:012}"
        if row[0] == "assistant":
            message = {"id": f"msg_{number}", "type": "message", "model": "m", **message}
        elif not row[3]:
            message["content"] = row[1]
        lines.append({"parentUuid": above, "isSidechain": False, "userType": "external", "cwd": "/", "sessionId": "s", "version": "2.0.0",
                      "type": row[0], "message": message, "uuid": id, "timestamp": f"2025-09-25T10:00:{number % 60:02}.000Z"})
        above = id
        if row[0] == "assistant" and not row[2]:
            # What the hooks said at the end of a turn: a line without a message that the next one names.
            above = id.replace("0000-4000", "0001-4000")
            lines.append({"parentUuid": id, "isSidechain": False, "sessionId": "s", "type": "system", "subtype": "stop_hook_summary",
                          "hookCount": 1, "uuid": above, "timestamp": f"2025-09-25T10:00:{number % 60:02}.500Z"})
    return "".join(json.dumps(it) + "\n" for it in lines)


def pi(rows):
    lines, above = [{"type": "session", "version": 3, "id": "s", "timestamp": "2025-09-25T10:00:00.000Z", "cwd": "/"}], None
    for number, (role, text, calls, id) in enumerate(rows[1:]):
        content = [{"type": "text", "text": text}] if text else []
        content += [{"type": "toolCall", "id": call, "name": name, "arguments": given} for call, name, given in calls]
        message = {"role": "toolResult" if id else role, "content": content, "timestamp": 1758794400000 + number}
        if id:
            message |= {"toolCallId": id, "toolName": "read_file", "isError": False}
        name = f"{number:08x}"
        lines.append({"type": "message", "id": name, "parentId": above, "timestamp": "2025-09-25T10:00:00.000Z", "message": message})
        above = name
    return "".join(json.dumps(it) + "\n" for it in lines)


def langchain(rows):
    messages = []
    for role, text, calls, id in rows:
        kind = {"user": "human", "assistant": "ai"}.get(role, role)
        data = {"content": text, "additional_kwargs": {}, "response_metadata": {}, "type": kind, "id": f"m{len(messages)}"}
        if calls:
            data["tool_calls"] = [{"name": name, "args": given, "id": call, "type": "tool_call"} for call, name, given in calls]
        if id:
            data["tool_call_id"] = id
        messages.append({"type": kind, "data": data})
    return json.dumps(messages)


def agent_framework(rows):
    messages = []
    for role, text, calls, id in rows:
        contents = [{"type": "text", "text": text}] if text and not id else []
        contents += [{"type": "function_call", "call_id": call, "name": name, "arguments": json.dumps(given)} for call, name, given in calls]
        contents += [{"type": "function_result", "call_id": id, "result": text}] if id else []
        messages.append({"type": "message", "role": role, "contents": contents})
    return json.dumps(messages)


WRITERS = {
    "openai-chat": openai_chat, "openai-responses": openai_responses, "anthropic": anthropic, "gemini": gemini,
    "claude-code": claude_code, "codex": codex, "pi": pi, "langchain": langchain, "agent-framework": agent_framework,
}


def texts():
    """The conversation in each format: (name, text)."""
    return [(name, write(conversation())) for name, write in WRITERS.items()]
