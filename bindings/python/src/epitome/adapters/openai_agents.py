"""OpenAI Agents SDK: a filter of the model's input, and a session in a store of Epitome."""

from __future__ import annotations

import asyncio
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, List, Optional, Tuple, TypeVar

from agents.memory.session import SessionABC
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.run_config import CallModelData, ModelInputData

from .. import _options
from .. import session as _session
from .._errors import BadInput, EpitomeError
from .._functions import convert
from .._options import Options
from ._objects import DictCompactor

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class InputCompactor(DictCompactor):
    """Compacts lists of input items, which are dictionaries. The options are those of `epitome.compact`.

    >>> said = [{"role": "user", "content": f"Question {n}: " + "why? " * 50} for n in range(40)]
    >>> left = InputCompactor(goal=500)(said)
    >>> len(left) < 10, left[-1] is said[-1]
    (True, True)
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__("openai-responses", options)


def input_filter(**options: Unpack[Options]) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Returns a filter for `RunConfig(call_model_input_filter=input_filter(model="gpt-4o"))`.

    The instructions are sent as they are, and are not counted: leave room for them with `reserve`.
    """
    compactor = InputCompactor(**options)

    async def compact_input(data: CallModelData[Any]) -> ModelInputData:
        compacted = await asyncio.to_thread(compactor, data.model_data.input)
        return ModelInputData(input=compacted, instructions=data.model_data.instructions)

    return compact_input


#: The kinds of losses of items that could not be sent again.
_LOST = ("approval", "compaction", "hosted-tool", "media", "unknown-part")
#: An item behind those that are looked at.
_ASKED = {"role": "user", "content": "."}
#: The outputs that a request has for a call without a result: of the latest turn, and of an earlier one.
_INVENTED = ("[aborted: this call has no result]", "[no result is recorded for this call: the messages after it may hold it]")
#: The locks of the sessions in use: an item is taken back in several steps.
_locks: "weakref.WeakValueDictionary[Tuple[str, str], Any]" = weakref.WeakValueDictionary()


class Session(SessionABC):
    """A session of the SDK in a store of Epitome: `Runner.run(agent, "Hello", session=Session("demo", "sqlite:chats.db"))`.

    With `window`, `model` or another option of `epitome.compact`, the session is compacted whenever that is due after an
    addition. The log keeps every item; `history` is the `epitome.Session` with `undo` and `log`.

    `get_items` returns each item as it was added, but for the `id` of a message or a function call, which a service refuses if it has
    not stored the item. What a compaction or a repair has changed is written anew. The id of a call that was used before is replaced. Reasoning
    that no item follows is left out. A request for approval, and media and parts for which Responses has no form in their place, could not be
    written again. `add_items` refuses them, and stores none of the items: use `input_filter` with a session of the SDK there.
    """

    # `get_items` leaves ids out, so that the SDK does not look for them in what it takes back.
    _ignore_ids_for_matching = True

    def __init__(self, session_id: str, store: str, **options: Unpack[Options]) -> None:
        self.session_id = session_id
        self.history = _session.Session(store, session_id)
        self._options = _options.reusable(options)
        _options.arguments(**self._options)
        self._lock = _locks.setdefault((store, session_id), threading.Lock())

    async def get_items(self, limit: Optional[int] = None) -> List[Any]:
        """Returns the items of the next request, or the latest `limit` of them."""
        items = await asyncio.to_thread(self._items)
        limit = getattr(getattr(self, "session_settings", None), "limit", None) if limit is None else limit
        return items if limit is None else items[-limit:] if limit > 0 else []

    async def add_items(self, items: List[Any]) -> None:
        """Appends items, and compacts if that is due."""
        await asyncio.to_thread(self._locked, self._add, items)

    async def pop_item(self) -> Optional[Any]:
        """Hides the latest item, and returns it."""
        return await asyncio.to_thread(self._locked, self._pop)

    async def clear_session(self) -> None:
        """Hides all items. The log keeps them; `history.erase()` deletes them."""
        await asyncio.to_thread(self._locked, self._clear)

    def _locked(self, change: Callable[..., T], *arguments: Any) -> T:
        """Makes a change while no other thread of this process changes the session."""
        with self._lock:
            return change(*arguments)

    def _add(self, items: List[Any]) -> None:
        if not items:
            return
        # An open call and a late result are no losses: the other half comes with other items. A result alone is no conversation.
        for loss in convert([*items, _ASKED], to="openai-responses", format="openai-responses").losses:
            if loss["kind"] in _LOST:
                number, what = loss["message"], loss.get("what", "")
                raise BadInput(f"item {number} ({loss['kind']} {what}) could not be sent again: {loss['reason']}; nothing was stored")
        self.history.append(items, format="openai-responses")
        if self._options:
            try:
                _options.without_pins_ahead(self._options, lambda options: self.history.compact(**options))
            except EpitomeError as error:
                # The items are stored: who adds them again would have them twice.
                warnings.warn(f"the session was not compacted: {error}", RuntimeWarning, stacklevel=2)

    def _items(self) -> List[Any]:
        try:
            items = self.history.messages("openai-responses")
        except BadInput:
            # Reasoning alone and messages without content are in no request.
            if not all(_is_unsent(row["message"]) for row in self._rows()):
                raise
            return []
        for item in items:
            if item.get("type") == "message" and item["role"] == "assistant":
                # The SDK tells an answer by its id, and leaves this one out of a request.
                item.setdefault("id", FAKE_RESPONSES_ID)
        if not any(map(_is_invented, items)):
            return items
        # A request has a result for every call; the session has those that were added.
        said = [row["message"] for row in self._rows()]
        added = {message.get("tool_call_id") for message in said if message.get("role") == "tool"}
        return [item for item in items if not _is_invented(item) or item["call_id"] in added]

    def _rows(self) -> List[Dict[str, Any]]:
        return [row for row in self.history.log() if row["hidden_by"] is None]

    def _pop(self) -> Optional[Any]:
        items = self._items()
        if not items:
            return None
        rows = self._rows()
        own = _items_of(items, rows)
        latest = next((at for at, item in own.items() if item is items[-1]), None)
        if latest is None:
            raise BadInput("the latest item is a summary, which no message of the log has: show its messages with history.undo()")
        # What was said together is hidden together, and all but the latest item is appended again.
        for first in range(latest, -1, -1):
            try:
                self.history.rewind(at=rows[first]["seq"])
            except BadInput:
                if first == 0:
                    raise
                continue
            rest = [own[at] for at in range(first, len(rows)) if at in own and at != latest]
            if rest:
                self.history.append(rest, format="openai-responses")
            break
        return items[-1]

    def _clear(self) -> None:
        if self.history.messages("openai-responses"):
            self.history.clear()


def _is_output(item: Any) -> bool:
    """Returns whether an item is the result of a call, of a function or of another tool."""
    return str(item.get("type")).endswith("_call_output")


def _is_invented(item: Any) -> bool:
    """Returns whether an item is perhaps a result that nobody has added."""
    return _is_output(item) and item.get("output") in _INVENTED


def _items_of(items: List[Any], rows: List[Dict[str, Any]]) -> Dict[int, Any]:
    """Returns the items of the request by the places of their rows of the log. The request has results behind their calls, and summaries."""
    left = [(at, *_key_of_row(row["message"])) for at, row in reversed(list(enumerate(rows)))]
    found: Dict[int, Any] = {}
    for item in reversed(items):
        kind, id = _key_of_item(item)
        # Items of one kind are in the order of the log, but for results. An id that was used before is another one in a request.
        alike = [row for row in left if row[1] == kind]
        same = next((row for row in alike if id is None or id in row[2]), alike[0] if alike else None)
        if same is not None:
            left.remove(same)
            found[same[0]] = item
    return found


def _key_of_item(item: Any) -> Tuple[str, Optional[str]]:
    """Returns the kind of an item, and the id of the call that it makes or answers."""
    kind = str(item.get("type", "message"))
    if item.get("call_id") is not None:
        return "result" if _is_output(item) else "call", item["call_id"]
    if kind == "message":
        return str(item["role"]), None
    return "reasoning" if kind == "reasoning" else "hosted", None


def _key_of_row(message: Dict[str, Any]) -> Tuple[str, List[Any]]:
    """Returns the same for a message of the log. A call that the service ran itself is a message of the model without content."""
    if message["role"] == "tool":
        return "result", [message.get("tool_call_id")]
    if message.get("tool_calls"):
        return "call", [call.get("id") for call in message["tool_calls"]]
    if message.get("content") or message["role"] != "assistant" and "lost" in message:
        return message["role"], []
    if "reasoning_details" in message or "reasoning_content" in message:
        return "reasoning", []
    return "hosted" if message["role"] == "assistant" else "empty", []


def _is_unsent(message: Dict[str, Any]) -> bool:
    """Returns whether a message of the log is in no request: reasoning that nothing follows, or a message without content."""
    is_silent = not message.get("content") and not message.get("tool_calls") and message["role"] != "tool"
    return "reasoning_details" in message or is_silent
