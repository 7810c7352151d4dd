"""LangChain: compaction in the place of `trim_messages`, and a middleware for `create_agent`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, List, Optional, Sequence, Tuple, Union

from langchain_core.messages import BaseMessage, SystemMessage, convert_to_messages, messages_from_dict
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool

from .._errors import BadInput
from .._json import dump as _dump
from .._json import quote
from .._options import Options
from .._records import NUMBER
from ._objects import Compactor, Form, text

if TYPE_CHECKING:
    from typing_extensions import Unpack

try:
    from langchain.agents.middleware import AgentMiddleware
except ImportError:  # langchain-core alone
    AgentMiddleware = object  # type: ignore[assignment, misc]


class LangChainForm(Form[BaseMessage]):
    """Messages as the state of LangGraph has them, without the members that no model sees."""

    format = "langchain"

    def dump(self, message: BaseMessage, number: int) -> str:
        fields = message.__dict__
        kind = fields["type"]
        content = fields["content"]
        said = quote(content) if type(content) is str else text(content)
        more = "" if fields["name"] is None else f',"name":{quote(fields["name"])}'
        if kind == "tool":
            more += f',"tool_call_id":{quote(fields["tool_call_id"])}'
            if fields["status"] == "error":
                more += ',"status":"error"'
        elif kind == "ai" or kind == "AIMessageChunk":
            kind = "ai"
            if fields["tool_calls"] or fields["invalid_tool_calls"] or fields["additional_kwargs"]:
                more += _of_model(fields)
        elif kind != "human" and kind != "system":
            kind, added = _of_other(kind, fields)
            more += added
        return f'{{"{NUMBER}":{number},"type":"{kind}","content":{said}{more}}}'

    def changed(self, message: BaseMessage, record: Dict[str, Any]) -> BaseMessage:
        update: Dict[str, Any] = {"content": record["content"]}
        written = record.get("tool_calls", [])
        if written:
            calls, invalid = message.tool_calls, message.invalid_tool_calls  # type: ignore[attr-defined]
            update["tool_calls"] = list(map(_changed_call, calls, written))
            update["invalid_tool_calls"] = list(map(_changed_invalid_call, invalid, written[len(calls) :]))
        is_told = message.type == "ai" and isinstance(message.additional_kwargs.get("reasoning_content"), str)
        if is_told and "reasoning_content" not in record.get("additional_kwargs", {}):
            kept = message.additional_kwargs.items()
            update["additional_kwargs"] = {name: value for name, value in kept if name != "reasoning_content"}
        return message.model_copy(update=update)

    def built(self, record: Dict[str, Any]) -> BaseMessage:
        return messages_from_dict([record])[0]


class MessageCompactor(Compactor[BaseMessage]):
    """Compacts lists of LangChain messages. The options are those of `epitome.compact`.

    >>> from langchain_core.messages import HumanMessage
    >>> said = [HumanMessage(f"Question {n}: " + "why? " * 50) for n in range(40)]
    >>> left = MessageCompactor(goal=500)(said)
    >>> len(left) < 10, left[-1] is said[-1]
    (True, True)
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(LangChainForm(), options)

    def __call__(self, messages: Any) -> List[BaseMessage]:
        """Returns the compacted messages of a list, a prompt, or anything else that a chat model takes."""
        if not (isinstance(messages, (list, tuple)) and all(isinstance(one, BaseMessage) for one in messages)):
            messages = convert_to_messages([messages] if isinstance(messages, str) else messages)
        return super().__call__(messages)


def compact_messages(
    messages: Optional[Sequence[BaseMessage]] = None, **options: Unpack[Options]
) -> List[BaseMessage]:
    """Returns compacted messages, as `trim_messages` returns trimmed ones. `runnable` makes a step of a chain.

    >>> from langchain_core.messages import HumanMessage
    >>> compact_messages([HumanMessage("Hello")], window=8_000)
    [HumanMessage(content='Hello', additional_kwargs={}, response_metadata={})]
    """
    return MessageCompactor(**options)(messages or [])


def runnable(**options: Unpack[Options]) -> Runnable[Sequence[BaseMessage], List[BaseMessage]]:
    """Returns a step of a chain that compacts the messages that it gets, such as `runnable(model="gpt-4o") | chat_model`."""
    return RunnableLambda(MessageCompactor(**options).__call__, name="epitome")


class CompactionMiddleware(AgentMiddleware):  # type: ignore[type-arg, unused-ignore]
    """Compacts each request of an agent before the model gets it.

    The system prompt and the tools of the request count, and stay as they are. The state of the agent keeps every message. Put it behind
    middlewares that add messages. It needs the package `langchain`.

    `create_agent(model, tools, middleware=[CompactionMiddleware(model="gpt-4o")])`
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__()
        self._compactor = MessageCompactor(**options)
        self._instruction: Optional[SystemMessage] = None
        self._tools: Dict[int, Tuple[Any, str]] = {}

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Compacts the messages of a request, and sends it on."""
        return handler(self._request(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Compacts the messages of a request in a thread, and sends it on."""
        return await handler(await asyncio.to_thread(self._request, request))

    def _request(self, request: Any) -> Any:
        beside = self._counted(request)
        messages = request.messages if beside is None else [beside, *request.messages]
        # The numbers of pins count the messages, without the instruction in front of them.
        numbers = None if beside is None else range(-1, len(request.messages))
        items = self._compactor.items(messages, numbers)
        if items is None:
            return request
        left = [self._compactor.message(item, messages) for item in items]
        return request.override(messages=[message for message in left if message is not beside])

    def _counted(self, request: Any) -> Optional[SystemMessage]:
        """Returns an instruction with the text of the system prompt and the tools, so that they count; the same one as long as they are the same."""
        prompt = getattr(request, "system_message", None)
        said = prompt.text if prompt is not None else getattr(request, "system_prompt", None) or ""
        text = "\n".join([str(said), *map(self._tool, getattr(request, "tools", None) or ())]).strip()
        if not text:
            return None
        instruction = self._instruction
        if instruction is None or instruction.content != text:
            instruction = self._instruction = SystemMessage(text)
        return instruction

    def _tool(self, tool: Any) -> str:
        """Returns the description of a tool that a model gets, as text."""
        known = self._tools.get(id(tool))
        if known is not None and known[0] is tool:
            return known[1]
        # A dictionary is in the form of a provider already.
        text = _dump(tool if isinstance(tool, dict) else convert_to_openai_tool(tool), "a tool")
        if len(self._tools) > _TOOLS_MAX:
            self._tools = {}
        self._tools[id(tool)] = (tool, text)
        return text


#: Maximum number of tools whose descriptions are remembered.
_TOOLS_MAX = 1_000


def _of_model(fields: Dict[str, Any]) -> str:
    """Returns the members of a model's message that only such messages have."""
    more = ""
    calls = fields["tool_calls"]
    if fields["invalid_tool_calls"]:
        # A model client sends them as calls too, so that their results belong to them.
        invalid = [{"name": call["name"] or "", "args": {"invalid": call["args"]}, "id": call["id"]} for call in fields["invalid_tool_calls"]]
        calls = [*calls, *invalid]
    legacy = fields["additional_kwargs"].get("function_call")
    if not calls and isinstance(legacy, dict):
        # The result is a `FunctionMessage`, which has the name of the function and no id.
        calls = [{"name": legacy["name"], "args": {"arguments": legacy.get("arguments")}, "id": legacy["name"]}]
    if len(calls) == 1 and "type" in calls[0]:
        # The most frequent form, without a dictionary in between.
        call = calls[0]
        id = "null" if call["id"] is None else quote(call["id"])
        more = f',"tool_calls":[{{"name":{quote(call["name"])},"args":{_dump(call["args"])},"id":{id}}}]'
    elif calls:
        more = f',"tool_calls":{_dump(calls, "its calls")}'
    thought = fields["additional_kwargs"].get("reasoning_content")
    if isinstance(thought, str):
        more += f',"additional_kwargs":{{"reasoning_content":{quote(thought)}}}'
    return more


def _changed_call(call: Any, record: Dict[str, Any]) -> Any:
    """Returns the call itself, or a copy with the arguments of its record."""
    return call if call["args"] == record["args"] else {**call, "args": record["args"]}


def _changed_invalid_call(call: Any, record: Dict[str, Any]) -> Any:
    """Returns the call itself, or a copy with the arguments of its record."""
    return call if record["args"] == {"invalid": call["args"]} else {**call, "args": _dump(record["args"])}


def _of_other(kind: str, fields: Dict[str, Any]) -> Tuple[str, str]:
    """Returns the type and the further members of a message of a rare type."""
    if kind == "chat":
        role = fields["role"]
        return {"assistant": "ai", "user": "human"}.get(role, role), ""
    if kind == "function":
        return kind, f',"tool_call_id":{quote(fields["name"])}'
    plain = kind[: -len("MessageChunk")].lower() if kind.endswith("MessageChunk") else ""
    if plain in ("human", "system"):
        return plain, ""
    if plain == "tool":
        return plain, f',"tool_call_id":{quote(fields["tool_call_id"])},"status":"{fields["status"]}"'
    raise BadInput(f"a message of type {kind!r} cannot be sent: remove it")
