"""Microsoft Agent Framework: a compaction strategy."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Dict, List

from agent_framework import EXCLUDED_KEY, Content, Message

from .._json import dump as _dump
from .._json import loads, quote
from .._options import Options
from .._records import NUMBER
from ._objects import Compactor, Form, text

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The member of `additional_properties` that holds the group and the tokens of a message.
GROUP_KEY = "_group"
#: The member of `additional_properties` that says why a message is excluded.
REASON_KEY = "_exclude_reason"

#: The member of `additional_properties` of a message that a compaction has added, such as a ledger.
ADDED_KEY = "_epitome_added"


class AgentFrameworkForm(Form[Message]):
    """Messages as `Message.to_dict` writes them, without the members that no model sees."""

    format = "agent-framework"

    def dump(self, message: Message, number: int) -> str:
        contents = message.contents
        said = _content(contents[0]) if len(contents) == 1 else ",".join([_content(content) for content in contents])
        more = "" if message.author_name is None else f',"author_name":{quote(message.author_name)}'
        source = message.additional_properties.get("_attribution") if message.additional_properties else None
        if source:
            more += f',"additional_properties":{{"_attribution":{_dump(source, "_attribution")}}}'
        return f'{{"{NUMBER}":{number},"role":{quote(message.role)},"contents":[{said}]{more}}}'

    def changed(self, message: Message, record: Dict[str, Any]) -> Message:
        contents = [_changed(content, written) for content, written in zip(message.contents, record["contents"])]
        if len(contents) != len(record["contents"]):
            contents = [Content.from_dict(written) for written in record["contents"]]
        properties = dict(message.additional_properties)
        if isinstance(properties.get(GROUP_KEY), dict):
            # The framework counts the tokens anew.
            properties[GROUP_KEY] = {
                name: value for name, value in properties[GROUP_KEY].items() if not name.startswith("token_count")
            }
        return Message(
            message.role,
            contents,
            author_name=message.author_name,
            message_id=message.message_id,
            additional_properties=properties,
        )

    def built(self, record: Dict[str, Any]) -> Message:
        return Message.from_dict(record)


class MessageCompactor(Compactor[Message]):
    """Compacts lists of `Message`. The options are those of `epitome.compact`.

    >>> said = [Message("user", [f"Question {n}: " + "why? " * 50]) for n in range(40)]
    >>> left = MessageCompactor(goal=500)(said)
    >>> len(left) < 10, left[-1] is said[-1]
    (True, True)
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(AgentFrameworkForm(), options)


class CompactionStrategy:
    """A compaction strategy: `Agent(client, compaction_strategy=CompactionStrategy(model="gpt-4o"))`.

    It excludes messages as the strategies of the framework do: they stay in the list, with `_excluded` among their
    `additional_properties`. Messages that are excluded already are not looked at. A message that is shortened is replaced in the
    list. The numbers of `pins` count all messages of the list, also the excluded ones, but not those that a compaction has added.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self._compactor = MessageCompactor(**options)

    async def __call__(self, messages: List[Message]) -> bool:
        """Excludes messages, and returns whether it did."""
        numbers: List[int] = []
        shown: List[Message] = []
        number = -1
        for message in messages:
            number += 0 if message.additional_properties.get(ADDED_KEY) else 1
            if not message.additional_properties.get(EXCLUDED_KEY):
                shown.append(message)
                numbers.append(-1 if message.additional_properties.get(ADDED_KEY) else number)
        items = await asyncio.to_thread(self._compactor.items, shown, numbers)
        if items is None:
            return False
        kept = {item for item in items if isinstance(item, int)}
        shortened: Dict[int, Message] = {}
        ahead: Dict[int, List[Message]] = {}
        behind: List[Message] = []
        for item in items:
            if isinstance(item, int):
                if behind:
                    ahead[id(shown[item])], behind = behind, []
            elif item.number is None:
                added = self._compactor.message(item, shown)
                added.additional_properties[ADDED_KEY] = True
                behind.append(added)
            else:
                shortened[item.number] = self._compactor.message(item, shown)
                if behind:
                    ahead[id(shown[item.number])], behind = behind, []
        for number, message in enumerate(shown):
            if number not in kept and number not in shortened:
                message.additional_properties[EXCLUDED_KEY] = True
                message.additional_properties[REASON_KEY] = "epitome"
        if shortened or ahead or behind:
            places = {id(shown[number]): message for number, message in shortened.items()}
            rest: List[Message] = []
            for message in messages:
                rest += ahead.get(id(message), [])
                rest.append(places.get(id(message), message))
            messages[:] = rest + behind
        return True


def _content(content: Any) -> str:
    """Returns a content as JSON."""
    kind = content.type
    if kind == "text":
        return f'{{"type":"text","text":{quote(content.text or "")}}}'
    if kind == "function_call" and isinstance(content.arguments, str):
        id, name = quote(content.call_id), quote(content.name)
        return f'{{"type":"function_call","call_id":{id},"name":{name},"arguments":{quote(content.arguments)}}}'
    if kind == "function_result" and type(content.result) is str and content.exception is None and _is_text(content.items):
        return f'{{"type":"function_result","call_id":{quote(content.call_id)},"result":{quote(content.result)}}}'
    return text(content.to_dict())


def _changed(content: Any, written: Dict[str, Any]) -> Any:
    """Returns the content itself, or a copy with the changes of its record and the properties that the application has added."""
    if loads(_content(content)) == written:
        return content
    changed = Content.from_dict(written)
    if changed.type == content.type:
        changed.additional_properties = dict(content.additional_properties)
    return changed


def _is_text(items: Any) -> bool:
    """Returns whether the items of a result say the same as its text."""
    return not items or (len(items) == 1 and items[0].type == "text")
