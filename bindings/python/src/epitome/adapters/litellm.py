"""LiteLLM: a callback of the proxy, and compaction before a call of the library."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from litellm.integrations.custom_logger import CustomLogger

from .. import _json, _options, _records
from ._objects import Options

if TYPE_CHECKING:
    from typing_extensions import Unpack


class MessageCompactor:
    """Compacts lists of Chat Completions messages: `completion(model, messages=compactor(messages))`.

    >>> said = [{"role": "user", "content": f"Question {n}: " + "why? " * 50} for n in range(40)]
    >>> left = MessageCompactor(goal=500)(said)
    >>> len(left) < 10, left[-1] is said[-1]
    (True, True)
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self._arguments = ["--from=openai-chat", *_options.arguments(**options)]

    def __call__(self, messages: List[Any]) -> List[Any]:
        """Returns the compacted messages; a list of the same objects if nothing changes."""
        if not messages:
            return list(messages)
        plain = [message if isinstance(message, dict) else message.model_dump(exclude_none=True) for message in messages]
        records = [_json.dump(message, f"message {number}") for number, message in enumerate(plain)]
        items = _records.compact(records, self._arguments).items
        if items is None:
            return list(messages)
        return [messages[item] if isinstance(item, int) else item.record for item in items]


class CompactionCallback(CustomLogger):
    """A callback of the proxy that compacts every request for a chat: `litellm.callbacks = [CompactionCallback(window=128_000)]`."""

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__()
        self._compactor = MessageCompactor(**options)

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: Dict[str, Any], call_type: Any
    ) -> Optional[Dict[str, Any]]:
        """Returns the request with compacted messages."""
        messages = data.get("messages")
        if not isinstance(messages, list) or not messages:
            return data
        return {**data, "messages": await asyncio.to_thread(self._compactor, messages)}
