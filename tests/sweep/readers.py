"""Reads the transcripts of every format into one list of messages, with no code of the project.

A message keeps the bytes that stand for it in its file, so that a kept message can be compared with the original one.
"""
import json
import re

DECODER = json.JSONDecoder(strict=False)
SPACE = re.compile(r"[ \t\r\n]*")
# Keys that name another record. A compaction changes them where it bridges a gap.
LINK = re.compile(r'"(?:parentUuid|parentId|logicalParentUuid)"\s*:\s*(?:"[^"]*"|null)')
REASONING = {"reasoning", "thinking", "redacted_thinking", "text_reasoning", "think"}


class Message:
    def __init__(self, raw, body, role, calls=(), results=(), text=""):
        self.raw, self.body, self.role = LINK.sub('"link":0', raw), body, role
        self.calls, self.results, self.text = list(calls), list(results), text

    @property
    def is_request(self):
        """Whether a user asks something in it."""
        return self.role == "user" and not self.results and bool(self.text.strip())

    @property
    def is_step(self):
        return self.role == "assistant" and bool(self.calls or self.text.strip())


def elements(text, path=()):
    """The elements of the array at `path` in a document: (text, value)."""
    at = SPACE.match(text, 1 if text.startswith("\ufeff") else 0).end()
    for key in path:
        at = member(text, at, key)
        if at is None:
            return []
    if at >= len(text) or text[at] != "[":
        return []
    found, at = [], SPACE.match(text, at + 1).end()
    while text[at] != "]":
        value, end = DECODER.raw_decode(text, at)
        found.append((text[at:end], value))
        at = SPACE.match(text, end).end()
        if text[at] == ",":
            at = SPACE.match(text, at + 1).end()
    return found


def member(text, at, key):
    """Where the value of `key` begins in the object at `at`, or of an element in an array."""
    if text[at] not in "{[":
        return None
    is_object, number, at = text[at] == "{", 0, SPACE.match(text, at + 1).end()
    while text[at] not in "}]":
        name = number
        if is_object:
            name, at = DECODER.raw_decode(text, at)
            at = SPACE.match(text, SPACE.match(text, at).end() + 1).end()
        if name == key:
            return at
        _, end = DECODER.raw_decode(text, at)
        at, number = SPACE.match(text, end).end(), number + 1
        if text[at] == ",":
            at = SPACE.match(text, at + 1).end()
    return None


def one(text, key):
    """The value of a key of the document, as a list of one or none."""
    at = SPACE.match(text, 0).end()
    place = member(text, at, key) if text[at : at + 1] == "{" else None
    if place is None:
        return []
    value, end = DECODER.raw_decode(text, place)
    return [(text[place:end], value)]


def lines(text):
    """The lines that hold something: (text, value)."""
    return [(line, json.loads(line, strict=False)) for line in text.lstrip("\ufeff").split("\n") if line.strip()]


def array(text, *paths):
    """The first of the arrays at these paths that is there, else the lines."""
    for path in paths:
        found = elements(text, path)
        if found:
            return found
    try:
        DECODER.raw_decode(text, SPACE.match(text, 0).end())
        return lines(text) if len(text.strip().split("\n")) > 1 and text.lstrip()[:1] == "{" else []
    except ValueError:
        return []


def words(value):
    """All that is said in a value, without reasoning."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(words, value))
    if isinstance(value, dict) and value.get("type") not in REASONING and not value.get("thought"):
        return "".join(words(value[key]) for key in ("text", "Text", "content", "parts", "output", "result") if key in value)
    return ""


def chat(text, paths=(("messages",), ("history",), ())):
    found = []
    for raw, it in array(text, *paths):
        role = {"developer": "system", "function": "tool", "ai": "assistant"}.get(it.get("role"), it.get("role"))
        calls = [call.get("id") for call in it.get("tool_calls") or []]
        calls += ["fn:" + it["function_call"]["name"]] if it.get("function_call") else []
        ids = it.get("tool_call_ids") or [it.get("tool_call_id") or "fn:" + str(it.get("name"))]
        results = [(id, words(it.get("content"))) for id in ids] if role == "tool" else []
        found.append(Message(raw, it, role, calls, results, words(it.get("content"))))
    return found


def blocks(raw, it, role, content):
    """A message whose content is a list of typed blocks."""
    calls, results, said = [], [], []
    for block in content if isinstance(content, list) else [{"type": "text", "text": content or ""}]:
        kind = block.get("type", "") if isinstance(block, dict) else "text"
        if kind in ("tool_use", "server_tool_use", "mcp_tool_use", "toolCall", "toolRequest", "function_call"):
            calls.append(block.get("id") if kind != "function_call" else block.get("call_id"))
        elif kind.endswith("tool_result") or kind in ("toolResponse", "function_result"):
            id = next((block[key] for key in ("tool_use_id", "call_id", "id") if key in block), None)
            results.append((id, words(block)))
        elif kind not in REASONING:
            said.append(words(block) or kind)
    return Message(raw, it, role, calls, results, "".join(said))


def anthropic(text):
    system = [Message(raw, it, "system", text=words(it)) for raw, it in one(text, "system")]
    return system + [blocks(raw, it, it.get("role"), it.get("content")) for raw, it in array(text, ("messages",), ())]


def item(raw, it, whole):
    """An item of Responses; `whole` is the record around it."""
    kind, id = it.get("type", "message"), it.get("call_id")
    if kind == "message" or "role" in it and "type" not in it:
        role = {"developer": "system"}.get(it.get("role"), it.get("role"))
        return Message(raw, whole, role, text=words(it.get("content")) or "media")
    if kind.endswith("_output") and id:
        return Message(raw, whole, "tool", results=[(id, words(it))])
    calls = [id] if kind.endswith("_call") and id else []
    return Message(raw, whole, "reasoning" if kind in REASONING else "assistant", calls)


def responses(text):
    system = [Message(raw, it, "system", text=words(it)) for raw, it in one(text, "instructions") if it]
    return system + [item(raw, it, it) for raw, it in array(text, ("input",), ("output",), ())]


def codex(text):
    found = []
    for raw, it in lines(text):
        payload = it.get("payload")
        if it.get("type") == "compacted" and isinstance(payload.get("replacement_history"), list):
            # The conversation begins anew with what is listed in it.
            found = [item(inner, body, body) for inner, body in elements(raw, ("payload", "replacement_history"))]
        elif it.get("type") == "response_item" and isinstance(payload, dict):
            found.append(item(raw, payload, it))
    return found


def gemini(text):
    system = [Message(raw, it, "system", text=words(it)) for key in ("systemInstruction", "system_instruction") for raw, it in one(text, key)]
    found = []
    for raw, it in array(text, ("contents",), ()):
        parts = [part for part in it.get("parts") or [] if isinstance(part, dict)]
        both = lambda part, *keys: next((part[key] for key in keys if key in part), None)
        calls = [both(part, "functionCall", "function_call") for part in parts]
        results = [both(part, "functionResponse", "function_response") for part in parts]
        name = lambda call: call.get("id") or call.get("name")
        said = "".join(words(part) or ("media" if "inlineData" in part or "fileData" in part else "") for part in parts)
        answers = [(name(result), json.dumps(result)) for result in results if result]
        role = {"model": "assistant"}.get(it.get("role"), it.get("role", "user"))
        found.append(Message(raw, it, role, [name(call) for call in calls if call], answers, said))
    return system + found


def claude_code(text):
    said = [(raw, it) for raw, it in lines(text) if it.get("type") in ("user", "assistant") and "message" in it]
    main = [(raw, it) for raw, it in said if not it.get("isSidechain")]
    found = []
    for raw, it in main:
        found.append(blocks(raw, it, it["type"], it["message"].get("content")))
        if it.get("isCompactSummary"):
            found[-1].role = "note"
    return found


def pi(text):
    found = []
    for raw, it in lines(text):
        if it.get("type") == "message":
            message = it["message"]
            read = blocks(raw, it, message.get("role"), message.get("content"))
            if message.get("role") == "toolResult":
                read = Message(raw, it, "tool", results=[(message.get("toolCallId"), words(message.get("content")))])
            found.append(read)
    return found


def gemini_cli(text):
    found = []
    for raw, it in elements(text, ("messages",)):
        calls = it.get("toolCalls") or []
        results = [(call.get("id"), json.dumps(call.get("result"))) for call in calls if call.get("result")]
        role = {"gemini": "assistant"}.get(it.get("type"), it.get("type"))
        found.append(Message(raw, it, role, [call.get("id") for call in calls], results, words(it.get("content"))))
    return [message for message in found if message.role in ("user", "assistant")]


def openhands(text):
    found, calls = [], {}
    for raw, it in elements(text) or elements(text.split("\n")[0], ("history",)):
        args, id = it.get("args") or {}, it.get("id")
        action = it.get("action")
        if action in ("message", "system"):
            role = "system" if action == "system" else {"user": "user"}.get(it.get("source"), "assistant")
            found.append(Message(raw, it, role, text=args.get("content") or ""))
        elif action == "finish":
            found.append(Message(raw, it, "assistant", text=it.get("message") or ""))
        elif action and it.get("tool_call_metadata"):
            calls[id] = it["tool_call_metadata"]["tool_call_id"]
            found.append(Message(raw, it, "assistant", [calls[id]]))
        elif "observation" in it and it.get("cause") in calls:
            found.append(Message(raw, it, "tool", results=[(calls[it["cause"]], it.get("content") or "")]))
    return found


def langchain(text):
    found = []
    for raw, it in array(text, ("values", "messages"), ("messages",), ()):
        data = it.get("data") or it.get("kwargs") or it
        kind = it.get("id", [""])[-1].removesuffix("Message").removesuffix("MessageChunk").lower() if "kwargs" in it else it.get("type")
        role = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}.get(kind, kind)
        results = [(data.get("tool_call_id"), words(data.get("content")))] if role == "tool" else []
        calls = [call.get("id") for call in data.get("tool_calls") or []]
        found.append(Message(raw, it, role, calls, results, words(data.get("content"))))
    return found


def semantic_kernel(text):
    found = []
    for raw, it in elements(text):
        role = it["Role"]["Label"]
        items = [part for part in it.get("Items") or [] if isinstance(part, dict)]
        kind = lambda part: part.get("$type", "")
        calls = [part.get("Id") for part in items if kind(part) == "FunctionCallContent"]
        results = [(part.get("CallId"), str(part.get("Result"))) for part in items if kind(part) == "FunctionResultContent"]
        said = "".join(words(part) for part in items if kind(part) == "TextContent")
        answered = (it.get("Metadata") or {}).get("ChatCompletionsToolCall.Id")
        if role == "tool" and not results:
            results = [(answered, said)]
        found.append(Message(raw, it, role, calls, results, said))
    return found


def agent_framework(text):
    return [blocks(raw, it, it.get("role"), it.get("contents")) for raw, it in array(text, ("messages",), ())]


def goose(text):
    return [blocks(raw, it, it.get("role"), it.get("content")) for raw, it in lines(text) if "role" in it]


READERS = {
    "openai-chat": chat, "openai-responses": responses, "anthropic": anthropic, "gemini": gemini,
    "claude-code": claude_code, "codex": codex, "pi": pi, "gemini-cli": gemini_cli, "openhands": openhands,
    "langchain": langchain, "semantic-kernel": semantic_kernel, "agent-framework": agent_framework,
    "swe-agent": chat, "goose": goose,
}


def format_of(text):
    """The name of the format, by its own signs; None for what is none of these."""
    try:
        document = json.loads(text.lstrip("\ufeff"), strict=False)
        first = document[0] if isinstance(document, list) and document else document
    except ValueError:
        try:
            rows = [it for _, it in lines(text)]
        except ValueError:
            return None
        document, first = rows, rows[0] if rows else None
    if not isinstance(first, dict):
        return None
    some = document if isinstance(document, list) else [document]
    has = lambda *keys: any(isinstance(it, dict) and all(key in it for key in keys) for it in some)
    if has("parentUuid", "uuid"):
        return "claude-code"
    if any(isinstance(it, dict) and it.get("type") in ("session_meta", "response_item") for it in some):
        return "codex"
    if first.get("type") == "session" and has("parentId"):
        return "pi"
    if has("projectHash", "messages"):
        return "gemini-cli"
    if has("values"):
        return "langchain"
    if has("observation") or has("history", "instance_id"):
        return "openhands"
    if has("trajectory", "history"):
        return "swe-agent"
    if has("Role"):
        return "semantic-kernel"
    if has("contents") and isinstance(document, dict):
        return "gemini"
    if has("input"):
        return "openai-responses"
    messages = first.get("messages") if isinstance(document, dict) else some
    if isinstance(messages, list) and messages and all(isinstance(it, dict) and "role" in it for it in messages):
        if any("contents" in it for it in messages):
            return "agent-framework"
        kinds = {part.get("type") for it in messages for part in it.get("content") or [] if isinstance(part, dict)}
        return "anthropic" if kinds & {"tool_use", "tool_result", "thinking"} or has("system") else "openai-chat"
    return None
