"""OpenAI Agents SDK: a filter of the model's input, and a session in a store of Epitome."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Awaitable, Callable, List, Optional

from agents.memory.session import SessionABC
from agents.run_config import CallModelData, ModelInputData

from .. import session as _session
from ._objects import DictCompactor, Options

if TYPE_CHECKING:
    from typing_extensions import Unpack


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


class Session(SessionABC):
    """A session of the SDK in a store of Epitome: `Runner.run(agent, "Hello", session=Session("demo", "sqlite:chats.db"))`.

    With `window`, `model` or another option of `epitome.compact`, the session is compacted whenever that is due after an
    addition. The log keeps every item; `history` is the `epitome.Session` with `undo` and `log`. An item that the store can say
    in other words, such as a content that is a text, may come back in the other form.
    """

    def __init__(self, session_id: str, store: str, **options: Unpack[Options]) -> None:
        self.session_id = session_id
        self.history = _session.Session(store, session_id)
        self._options = options

    async def get_items(self, limit: Optional[int] = None) -> List[Any]:
        """Returns the items of the next request, or the latest `limit` of them."""
        items = await asyncio.to_thread(self.history.messages, "openai-responses")
        return items if limit is None else items[-limit:] if limit > 0 else []

    async def add_items(self, items: List[Any]) -> None:
        """Appends items, and compacts if that is due."""
        await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> Optional[Any]:
        """Hides the latest item, and returns it."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Hides all items. The log keeps them; `history.erase()` deletes them."""
        await asyncio.to_thread(self._clear)

    def _add(self, items: List[Any]) -> None:
        self.history.append(items, format="openai-responses")
        if self._options and items:
            self.history.compact(**self._options)

    def _pop(self) -> Optional[Any]:
        items = self.history.messages("openai-responses")
        shown = [row for row in self.history.log() if row["hidden_by"] is None] if items else []
        if not shown:
            return None
        self.history.rewind(at=shown[-1]["seq"])
        return items[-1]

    def _clear(self) -> None:
        if self.history.messages("openai-responses"):
            self.history.clear()
