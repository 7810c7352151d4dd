"""The packages that compare.py calls, each as its documentation says.

A contender has a name, a call and the unit of its limit; `convert` and `said` turn Chat Completions JSON into its messages
and back, `tokens` is its own count, `compact` the call of a user, `alone` the time of the call without what it does to
messages that it sees for the first time, if that can be told.
"""

import asyncio
import json
import time
from importlib.metadata import version

from agent_framework import (
    CharacterEstimatorTokenizer,
    Content,
    ContextWindowCompactionStrategy,
    Message,
    ToolResultCompactionStrategy,
    TruncationStrategy,
    apply_compaction,
    included_messages,
)
from agent_framework._compaction import (
    _serialize_message,
    annotate_message_groups,
    annotate_token_counts,
)
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from pydantic_ai import ModelRequest, ModelResponse, SystemPromptPart, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart


def package(name):
    return f"{name} {version(name)} (Python)"


def message(role, text, calls=(), answers=None):
    """A message as Chat Completions JSON, its calls as (id, name, arguments)."""
    json_ = {"role": role, "content": text}
    if answers is not None:
        json_["tool_call_id"] = answers
    if calls:
        json_["tool_calls"] = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id_, name, arguments in calls
        ]
    return json_


def calls_of(raw):
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in raw.get("tool_calls", [])]


class Contender:
    def begin(self):
        return []

    def request(self, history, limit):
        return self.compact(history, limit)

    def alone(self, said, limit):
        return None


class AgentFramework(Contender):
    """One of its strategies. A history that was compacted keeps its marks, and the next call goes on from there."""

    name = package("agent-framework-core")
    tokenizer = CharacterEstimatorTokenizer()
    loop = asyncio.new_event_loop()

    def __init__(self, call, unit, strategy):
        self.call, self.unit, self.strategy = call, unit, strategy

    def convert(self, said):
        return [self.message(raw) for raw in said]

    @staticmethod
    def message(raw):
        contents = []
        if raw["role"] == "tool":
            contents.append(Content.from_function_result(raw["tool_call_id"], result=raw["content"]))
        elif raw["content"]:
            contents.append(Content.from_text(raw["content"]))
        for id_, name, arguments in calls_of(raw):
            contents.append(Content.from_function_call(id_, name, arguments=arguments))
        return Message(raw["role"], contents)

    @staticmethod
    def said(messages):
        def said_of(message_):
            text, calls, answers = "", [], None
            for content in message_.contents:
                if content.type == "function_call":
                    calls.append((content.call_id, content.name, content.arguments))
                elif content.type == "function_result":
                    text, answers = content.result, content.call_id
                else:
                    text += content.text
            return message(str(message_.role), text, calls, answers)

        return [said_of(message_) for message_ in messages]

    def tokens(self, messages):
        return sum(self.tokenizer.count_tokens(_serialize_message(message_)) for message_ in messages)

    def compact(self, messages, limit):
        call = apply_compaction(messages, strategy=self.strategy(limit), tokenizer=self.tokenizer)
        return self.loop.run_until_complete(call)

    def alone(self, said, limit):
        """The strategy on messages that are grouped and counted already."""
        messages = self.convert(said)
        annotate_message_groups(messages)
        annotate_token_counts(messages, tokenizer=self.tokenizer)
        start = time.process_time()
        self.loop.run_until_complete(self.strategy(limit)(messages))
        included_messages(messages)
        return time.process_time() - start


class LangChain(Contender):
    """With the settings that its documentation recommends for a history that a model is to take."""

    name, call, unit = package("langchain-core"), "`trim_messages`", "tokens"

    def convert(self, said):
        return [self.message(raw) for raw in said]

    @staticmethod
    def message(raw):
        match raw["role"]:
            case "system":
                return SystemMessage(raw["content"])
            case "user":
                return HumanMessage(raw["content"])
            case "tool":
                return ToolMessage(raw["content"], tool_call_id=raw["tool_call_id"])
        calls = [
            {"id": id_, "name": name, "args": json.loads(arguments), "type": "tool_call"}
            for id_, name, arguments in calls_of(raw)
        ]
        return AIMessage(raw["content"], tool_calls=calls)

    @staticmethod
    def said(messages):
        roles = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}

        def said_of(message_):
            calls = [
                (call["id"], call["name"], json.dumps(call["args"], separators=(",", ":"), ensure_ascii=False))
                for call in getattr(message_, "tool_calls", [])
            ]
            return message(roles[message_.type], message_.content, calls, getattr(message_, "tool_call_id", None))

        return [said_of(message_) for message_ in messages]

    def tokens(self, messages):
        return count_tokens_approximately(messages)

    def compact(self, messages, limit):
        return trim_messages(
            messages,
            max_tokens=limit,
            token_counter=count_tokens_approximately,
            strategy="last",
            start_on="human",
            include_system=True,
        )


class PydanticAI(Contender):
    """The processor that its documentation shows for the recent messages; it counts no tokens. Results of one step are
    one message of its own, as it makes them itself, and the instructions are in the first."""

    name, call, unit = package("pydantic-ai-slim"), "history processor `messages[-n:]`", "messages"

    def convert(self, said):
        messages, tools = [], {}
        for raw in said:
            tools |= {id_: name for id_, name, _ in calls_of(raw)}
            match raw["role"]:
                case "assistant":
                    text = [TextPart(raw["content"])] if raw["content"] else []
                    calls = [ToolCallPart(name, arguments, id_) for id_, name, arguments in calls_of(raw)]
                    messages.append(ModelResponse([*text, *calls]))
                    continue
                case "system":
                    part = SystemPromptPart(raw["content"])
                case "user":
                    part = UserPromptPart(raw["content"])
                case "tool":
                    part = ToolReturnPart(tools.get(raw["tool_call_id"], "tool"), raw["content"], raw["tool_call_id"])
            if messages and isinstance(messages[-1], ModelRequest):
                messages[-1].parts.append(part)
            else:
                messages.append(ModelRequest([part]))
        return messages

    @staticmethod
    def said(messages):
        said = []
        for message_ in messages:
            if isinstance(message_, ModelResponse):
                text = "".join(part.content for part in message_.parts if isinstance(part, TextPart))
                calls = [
                    (part.tool_call_id, part.tool_name, part.args)
                    for part in message_.parts
                    if isinstance(part, ToolCallPart)
                ]
                said.append(message("assistant", text, calls))
                continue
            for part in message_.parts:
                match part:
                    case SystemPromptPart():
                        said.append(message("system", part.content))
                    case UserPromptPart():
                        said.append(message("user", part.content))
                    case ToolReturnPart():
                        said.append(message("tool", part.content, answers=part.tool_call_id))
        return said

    def tokens(self, messages):
        return None

    def compact(self, messages, limit):
        return messages[-limit:] if len(messages) > limit else messages


ALL = [
    AgentFramework(
        "`TruncationStrategy`",
        "tokens",
        lambda limit: TruncationStrategy(max_n=limit, compact_to=limit, tokenizer=AgentFramework.tokenizer),
    ),
    AgentFramework(
        "`ContextWindowCompactionStrategy`",
        "tokens",
        lambda limit: ContextWindowCompactionStrategy(max_context_window_tokens=limit, max_output_tokens=0),
    ),
    AgentFramework(
        "`ToolResultCompactionStrategy`",
        "tool uses",
        lambda limit: ToolResultCompactionStrategy(keep_last_tool_call_groups=limit),
    ),
    LangChain(),
    PydanticAI(),
]
