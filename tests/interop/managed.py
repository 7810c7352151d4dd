"""One half of managed.sh: what the vendors' typed models make of requests and answers.

  managed.py check FOLDER   each request there fits the parameters of its method, and has nothing that they do not know
  managed.py make FOLDER    answers, as the typed models write them
  managed.py told FILE      what was read of those answers is what they say
"""

import json
import pathlib
import sys
from collections.abc import Mapping
from typing import Any

import pydantic
from anthropic._models import construct_type as anthropic_model
from anthropic.types.beta import BetaMessage
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming
from openai._models import construct_type as openai_model
from openai.types.responses import CompactedResponse, Response
from openai.types.responses.response_compact_params import ResponseCompactParams
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

PARAMETERS = {
    "responses.compact": ResponseCompactParams,
    "responses.create": ResponseCreateParamsNonStreaming,
    "beta.messages.create": MessageCreateParamsNonStreaming,
}


def plain(value):
    """What a validation made, with its lazy iterators told to the end."""
    if isinstance(value, pydantic.BaseModel):
        # The models of answers are parameters too. They keep what they do not know apart.
        assert not value.model_extra, f"the type does not know {sorted(value.model_extra)}"
        return {key: plain(getattr(value, key)) for key in value.model_fields_set}
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if hasattr(value, "__iter__"):
        return [plain(inner) for inner in value]
    return value


def check(folder):
    adapters = {kind: pydantic.TypeAdapter(of) for kind, of in PARAMETERS.items()}
    files = sorted(pathlib.Path(folder).glob("*.json"))
    for file in files:
        request = json.loads(file.read_text())
        # A dictionary keeps only the members that its type names, so that what is left says whether there were others.
        body = identified(request["body"])
        kept = plain(adapters[request["kind"]].validate_python(body, strict=True))
        differs(file.stem, body, kept)
    assert len(files) >= int(sys.argv[3]), f"{len(files)} requests"
    print(len(files))


def identified(body):
    """The request with what only the service can know of an answer of its model. The type asks for it; Codex sends none either."""
    for item in body["input"] if isinstance(body.get("input"), list) else []:
        if item.get("role") == "assistant":
            item.update(id="msg_0", status="completed")
            for part in item["content"]:
                part["annotations"] = []
    return body


def differs(path, given, kept):
    """Fails where what was kept is not what was given."""
    if isinstance(given, dict):
        unknown = given.keys() - kept.keys() if isinstance(kept, dict) else given.keys()
        assert not unknown, f"{path}: the type does not know {sorted(unknown)}"
        for key, inner in given.items():
            differs(f"{path}/{key}", inner, kept[key])
    elif isinstance(given, list):
        assert len(given) == len(kept), path
        for at, inner in enumerate(given):
            differs(f"{path}/{at}", inner, kept[at])
    else:
        assert given == kept, f"{path}: {given!r} became {kept!r}"


SEALED = "gAAAA_-+/=é\u2028\U0001f980\"\\"
OPENAI_USAGE = {
    "input_tokens": 900,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 7},
    "output_tokens": 70,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 970,
}
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": SEALED, "created_by": "m"}
USERS = [
    {
        "type": "message",
        "id": "msg_1",
        "role": "user",
        "status": "completed",
        "content": [
            {"type": "input_text", "text": "What is in notes.txt?"},
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw0KGgo="},
        ],
    },
    {"type": "message", "id": "msg_2", "role": "user", "status": "completed", "content": [{"type": "input_text", "text": "And here?"}]},
]
OPENAI_TOLD = {
    "opaque": SEALED,
    "text": "",
    "before": 2,
    "tokens": 70,
    "input": 900,
    "output": 70,
    "cached": 60,
    "written": 7,
    "reasoning": 5,
}
BLOCK = {
    "type": "compaction",
    "content": "They read \"notes.txt\". é",
    "signature": "EuYB+/=",
    "tool_changes": [{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "look"}}],
}


def iteration(kind, read, written):
    counts = {"input_tokens": read, "output_tokens": written}
    return {"type": kind, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 60, **counts}


def message(content, stop, iterations, **more):
    said = [step for step in iterations if step["type"] == "message"]
    usage = {
        "input_tokens": sum(step["input_tokens"] for step in said),
        "output_tokens": sum(step["output_tokens"] for step in said),
        "cache_creation_input_tokens": 7 * len(said),
        "cache_read_input_tokens": 60 * len(said),
        "iterations": iterations,
    }
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "stop_sequence": None}
    return {**head, "content": content, "stop_reason": stop, "usage": usage, **more}


EDITS = {
    "applied_edits": [
        {"type": "clear_thinking_20251015", "cleared_thinking_turns": 3, "cleared_input_tokens": 15000},
        {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50000},
    ]
}
ASKED = [iteration("compaction", 900, 70)]
CROSSED = [iteration("compaction", 180000, 3500), iteration("message", 23000, 1000)]
COMPACTED = {"id": "resp_1", "object": "response.compaction", "created_at": 1, "output": [*USERS, ITEM], "usage": OPENAI_USAGE}
RESPONDED = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "gpt-5.5",
    "output": [ITEM],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": OPENAI_USAGE,
}
# Each with the type of the answer and what is to be read of it.
ANSWERS = {
    "compact": (openai_model, CompactedResponse, COMPACTED, OPENAI_TOLD),
    # Before the item stands what was sent, because the answer does not repeat it.
    "trigger": (openai_model, Response, RESPONDED, OPENAI_TOLD),
    "summary": (
        anthropic_model,
        BetaMessage,
        message([BLOCK], "compaction", ASKED),
        {"text": BLOCK["content"], "before": 0, "tokens": None, "input": 967, "output": 70, "cached": 60, "written": 7, "reasoning": None},
    ),
    "summary-refused": (
        anthropic_model,
        BetaMessage,
        message([], "max_tokens", ASKED),
        {"error": "anthropic: there is no summary: max_tokens"},
    ),
    "replay": (anthropic_model, BetaMessage, message([BLOCK], "compaction", ASKED), {"text": BLOCK["content"]}),
    "threshold": (
        anthropic_model,
        BetaMessage,
        message(
            [{"type": "compaction", "content": "So far.", "encrypted_content": "Zm9v"}, {"type": "text", "text": "Yes."}],
            "end_turn",
            CROSSED,
            context_management=EDITS,
        ),
        {
            "text": "So far.",
            "paused": False,
            "edits": "[Thinking { turns: 3, input_tokens: 15000 }, ToolUses { tool_uses: 8, input_tokens: 50000 }]",
            "input": 23067,
            "output": 1000,
        },
    ),
}


def make(folder):
    for name, (construct, of, payload, _) in ANSWERS.items():
        model: Any = construct(type_=of, value=payload)
        # As it came, and with all that its type has beside: every member that was not sent is null then.
        whole = model.model_dump(mode="json", warnings=False)
        sent = model.model_dump(mode="json", exclude_unset=True, warnings=False)
        assert sent == payload, f"{name}: the type has changed what it was made of"
        for form, value in [("sent", sent), ("whole", whole)]:
            (pathlib.Path(folder) / f"{name}.{form}.json").write_text(json.dumps(value, ensure_ascii=False))


def told(file):
    lines = [json.loads(line) for line in pathlib.Path(file).read_text().split("\n") if line]
    assert len(lines) == 2 * len(ANSWERS), f"{len(lines)} answers"
    for line in lines:
        expected = ANSWERS[line["name"].split(".")[0]][3]
        read = {key: line["read"].get(key) for key in expected}
        assert read == expected, f"{line['name']}: {read} instead of {expected}"
        if "signature" in (line["read"].get("opaque") or ""):
            left = json.loads(line["read"]["opaque"])
            assert left["signature"] == BLOCK["signature"] and left["tool_changes"], left
    print(len(lines))


if __name__ == "__main__":
    {"check": check, "make": make, "told": told}[sys.argv[1]](sys.argv[2])
