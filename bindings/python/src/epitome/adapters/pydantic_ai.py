"""Pydantic AI: a history processor."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Union

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_core import PydanticSerializationError, to_json

from .._errors import BadInput
from .._json import quote
from .._options import Options
from .._records import NUMBER, Change, numbered
from ._objects import Compactor, Form, text

if TYPE_CHECKING:
    from typing_extensions import Unpack


class PydanticAIForm(Form[ModelMessage]):
    """Messages as `ModelMessagesTypeAdapter` writes them, without the members that no model sees."""

    format = "pydantic-ai"

    def dump(self, message: ModelMessage, number: int) -> str:
        parts = ",".join([numbered(place, _part(part)) for place, part in enumerate(message.parts)])
        instructions = getattr(message, "instructions", None)
        more = f',"instructions":{quote(instructions)}' if instructions else ""
        return f'{{"{NUMBER}":{number},"kind":"{message.kind}"{more},"parts":[{parts}]}}'

    def changed(self, message: ModelMessage, record: Dict[str, Any]) -> ModelMessage:
        parts: List[Any] = []
        for part in record["parts"]:
            number = part.pop(NUMBER, None)
            if number is None:
                parts += ModelMessagesTypeAdapter.validate_python([{"kind": message.kind, "parts": [part]}])[0].parts
            else:
                parts.append(_changed_part(message.kind, message.parts[number], part))
        changes: Dict[str, Any] = {"parts": parts}
        return replace(message, **changes)

    def built(self, record: Dict[str, Any]) -> ModelMessage:
        return ModelMessagesTypeAdapter.validate_python([record])[0]


class MessageCompactor(Compactor[ModelMessage]):
    """Compacts lists of `ModelMessage`. The options are those of `epitome.compact`."""

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(PydanticAIForm(), options)

    def items(
        self, messages: Sequence[ModelMessage], numbers: Optional[Sequence[int]] = None
    ) -> Optional[List[Union[int, Change]]]:
        """Returns the origin of each message that stays. The latest request is one of them: feedback for a retry is no request of the user."""
        items = super().items(messages, numbers)
        last = len(messages) - 1
        if items is not None and messages[last].kind == "request" and not any(map(_is_result, messages[last].parts)):
            if last not in (item if isinstance(item, int) else item.number for item in items[-1:]):
                items.append(last)
        return items


def _is_result(part: Any) -> bool:
    """Returns whether a part answers a call, without which it could not be sent."""
    return part.part_kind == "tool-return" or getattr(part, "tool_name", None) is not None


def history_processor(**options: Unpack[Options]) -> Callable[[List[ModelMessage]], List[ModelMessage]]:
    """Returns a history processor: `Agent(model, capabilities=[ProcessHistory(history_processor(model="gpt-4o"))])`.

    Before version 2 of Pydantic AI: `Agent(model, history_processors=[history_processor(model="gpt-4o")])`.

    >>> from pydantic_ai.messages import ModelRequest, UserPromptPart
    >>> said = [ModelRequest([UserPromptPart(f"Question {n}: " + "why? " * 50)]) for n in range(40)]
    >>> left = history_processor(goal=500)(said)
    >>> len(left) < 10, left[-1] is said[-1]
    (True, True)
    """
    compactor = MessageCompactor(**options)

    def process(messages: List[ModelMessage]) -> List[ModelMessage]:
        return compactor(messages)

    return process


def _part(part: Any) -> str:
    """Returns a part as JSON."""
    kind = part.part_kind
    if kind in ("user-prompt", "text", "system-prompt") and type(part.content) is str:
        return f'{{"part_kind":"{kind}","content":{quote(part.content)}}}'
    if kind == "tool-return":
        outcome = getattr(part, "outcome", "success")
        outcome = "" if outcome == "success" else f',"outcome":{quote(outcome)}'
        name, id = quote(part.tool_name), quote(part.tool_call_id)
        content = quote(part.content) if type(part.content) is str else _json(part.content, kind)
        return f'{{"part_kind":"{kind}","tool_name":{name},"tool_call_id":{id},"content":{content}{outcome}}}'
    if kind == "tool-call":
        args = "null" if part.args is None else text(part.args)
        name, id = quote(part.tool_name), quote(part.tool_call_id)
        return f'{{"part_kind":"{kind}","tool_name":{name},"tool_call_id":{id},"args":{args}}}'
    return _json(part, kind)


def _json(value: Any, kind: str) -> str:
    """Returns a value of a part of this kind as JSON."""
    try:
        # Metadata of the application may be any object.
        return to_json(value, bytes_mode="base64", inf_nan_mode="null", serialize_unknown=True).decode("utf-8")
    except (PydanticSerializationError, UnicodeError) as error:
        raise BadInput(f"a part of kind {kind} is not JSON: {error}") from error


def _changed_part(kind: str, part: Any, record: Dict[str, Any]) -> Any:
    """Returns the part itself, or a copy with the changes of its record."""
    before = json.loads(_part(part))
    changes = {name: value for name, value in record.items() if before.get(name) != value}
    if not changes:
        return part
    if set(changes) <= {"content", "args"} and isinstance(changes.get("content", ""), str):
        return replace(part, **changes)
    whole = {**json.loads(_json(part, part.part_kind)), **changes}
    return ModelMessagesTypeAdapter.validate_python([{"kind": kind, "parts": [whole]}])[0].parts[0]
