"""LiteLLM: a callback of the proxy, and compaction before a call of the library."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Dict, Optional

from litellm.integrations.custom_logger import CustomLogger

from .. import _options
from .._options import Options
from ._objects import DictCompactor

if TYPE_CHECKING:
    from typing_extensions import Unpack


class MessageCompactor(DictCompactor):
    """Compacts lists of Chat Completions messages: `completion(model, messages=compactor(messages))`.

    >>> said = [{"role": "user", "content": f"Question {n}: " + "why? " * 50} for n in range(40)]
    >>> left = MessageCompactor(goal=500)(said)
    >>> len(left) < 10, left[-1] is said[-1]
    (True, True)
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__("openai-chat", options)


class CompactionCallback(CustomLogger):
    """A callback of the proxy that compacts every request for a chat: `litellm.callbacks = [CompactionCallback(window=128_000)]`.

    A request for `/v1/messages` has messages of Anthropic, every other one has those of Chat Completions. A request that the proxy passes
    through to a provider is in a form of that provider, and stays as it is.
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__()
        options = _options.reusable(options)
        self._chat = MessageCompactor(**options)
        self._anthropic = DictCompactor("anthropic", options)

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: Dict[str, Any], call_type: Any
    ) -> Optional[Dict[str, Any]]:
        """Returns the request with compacted messages."""
        messages = data.get("messages")
        # The type of a call is a text or a member of an enumeration of texts.
        kind = getattr(call_type, "value", call_type)
        if not isinstance(messages, list) or not messages or kind == "pass_through_endpoint":
            return data
        compactor = self._anthropic if kind == "anthropic_messages" else self._chat
        return {**data, "messages": await asyncio.to_thread(compactor, messages)}
