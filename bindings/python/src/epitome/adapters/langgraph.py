"""LangGraph: a hook before each call of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict

from langchain_core.messages import RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from .._options import Options
from .langchain import MessageCompactor

if TYPE_CHECKING:
    from typing_extensions import Unpack


def pre_model_hook(*, keep_state: bool = True, **options: Unpack[Options]) -> Callable[[Any], Dict[str, Any]]:
    """Returns a `pre_model_hook` for `create_react_agent`, or a node that stands before the node of the model.

    A prompt that the graph adds behind the hook does not count, and neither do the tools: leave room for them with `reserve`.

    `keep_state`: the state keeps every message, and the model gets `llm_input_messages`. With `False`, the compacted messages
    replace those of the state: the next compaction then begins where this one has ended, and a prompt cache keeps more.

    >>> from langchain_core.messages import HumanMessage
    >>> hook = pre_model_hook(window=8_000)
    >>> hook({"messages": [HumanMessage("Hello")]})["llm_input_messages"][0].content
    'Hello'
    """
    compactor = MessageCompactor(**options)

    def hook(state: Any) -> Dict[str, Any]:
        messages = state["messages"] if isinstance(state, dict) else state.messages
        items = compactor.items(messages)
        if items is None:
            return {"llm_input_messages": list(messages)} if keep_state else {}
        compacted = [compactor.message(item, messages) for item in items]
        if keep_state:
            return {"llm_input_messages": compacted}
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *compacted]}

    return hook
