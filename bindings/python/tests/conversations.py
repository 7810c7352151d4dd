"""Conversations for the tests, in the forms of Chat Completions and of the frameworks."""

from __future__ import annotations

import json
import random
from typing import Any, Dict, List


def chat(seed: int, turns: int = 30) -> List[Dict[str, Any]]:
    """Returns a random legal conversation of Chat Completions: texts, parallel calls, results, reasoning and Unicode."""
    draw = random.Random(seed)
    words = ["why", "path/to/file.py", "größer", "日本語", "🙂", "\\", '"quoted"', "line\nbreak", "tab\t", "\u2028", "ok"]

    def text(most: int) -> str:
        return " ".join(draw.choice(words) for _ in range(draw.randint(1, most)))

    said: List[Dict[str, Any]] = [{"role": "system", "content": "You are an agent. " + text(5)}] if draw.random() < 0.7 else []
    number = 0
    for _ in range(turns):
        said.append({"role": "user", "content": text(40), **({"name": "anna"} if draw.random() < 0.1 else {})})
        for _ in range(draw.randint(0, 3)):
            calls = []
            for _ in range(draw.randint(1, 3)):
                number += 1
                arguments = json.dumps({"text": text(8), "n": number}, ensure_ascii=draw.random() < 0.5)
                calls.append({"id": f"call_{number}", "type": "function", "function": {"name": "run", "arguments": arguments}})
            said.append({"role": "assistant", "content": text(10) if draw.random() < 0.5 else None, "tool_calls": calls})
            said += [{"role": "tool", "tool_call_id": call["id"], "content": text(120)} for call in calls]
        said.append({"role": "assistant", "content": text(60)})
    said.append({"role": "user", "content": text(10)})
    return said


def langchain(messages: List[Dict[str, Any]]) -> List[Any]:
    """Returns a conversation of Chat Completions as messages of LangChain."""
    from langchain_core.messages import convert_to_messages

    return convert_to_messages(messages)


def pydantic_ai(messages: List[Dict[str, Any]]) -> List[Any]:
    """Returns a conversation of Chat Completions as messages of Pydantic AI."""
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    found: List[Any] = []

    def asked(part: Any) -> None:
        if found and isinstance(found[-1], ModelRequest):
            found[-1] = ModelRequest(parts=[*found[-1].parts, part])
        else:
            found.append(ModelRequest(parts=[part]))

    for message in messages:
        role, content = message["role"], message["content"]
        if role == "system":
            asked(SystemPromptPart(content))
        elif role == "user":
            asked(UserPromptPart(content))
        elif role == "tool":
            asked(ToolReturnPart("run", content, message["tool_call_id"]))
        else:
            parts: List[Any] = [TextPart(content)] if content else []
            for call in message.get("tool_calls", []):
                arguments = call["function"]["arguments"]
                parts.append(ToolCallPart("run", json.loads(arguments) if len(parts) % 2 else arguments, call["id"]))
            found.append(ModelResponse(parts=parts))
    return found


def responses(messages: List[Dict[str, Any]]) -> List[Any]:
    """Returns a conversation of Chat Completions as input items of Responses."""
    items: List[Any] = []
    for message in messages:
        if message["role"] == "tool":
            items.append({"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]})
            continue
        if message["content"]:
            items.append({"role": message["role"], "content": message["content"]})
        for call in message.get("tool_calls", []):
            items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
    return items


def agent_framework(messages: List[Dict[str, Any]]) -> List[Any]:
    """Returns a conversation of Chat Completions as messages of Agent Framework."""
    from agent_framework import Content, Message

    found = []
    for message in messages:
        contents: List[Any] = []
        if message["role"] == "tool":
            contents.append(Content.from_function_result(message["tool_call_id"], result=message["content"]))
        elif message["content"]:
            contents.append(Content.from_text(message["content"]))
        for call in message.get("tool_calls", []):
            function = call["function"]
            contents.append(Content.from_function_call(call["id"], function["name"], arguments=function["arguments"]))
        found.append(Message(message["role"], contents))
    return found
