"""The adapters, with the real packages. A package that is not installed skips its tests."""

from __future__ import annotations

import asyncio
import copy
import doctest
import importlib
import importlib.util
import json
import os
import tempfile
import unittest
import warnings
from typing import Any, Callable, List

import epitome
from epitome._records import NUMBER

from . import conversations

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
PACKAGES = {
    "langchain": "langchain_core",
    "langgraph": "langgraph",
    "pydantic_ai": "pydantic_ai",
    "openai_agents": "agents",
    "agent_framework": "agent_framework",
    "litellm": "litellm",
}
STRATEGIES = (
    "truncate",
    "tool-results:keep=2",
    "tool-results:keep=1:clear-inputs=true",
    "tool-results:keep=2 | truncate",
    "window",
    "truncate | tool-digest",
    "agent",
)


def has(name: str) -> bool:
    return importlib.util.find_spec(PACKAGES[name]) is not None


def load_tests(loader: Any, tests: unittest.TestSuite, pattern: Any) -> unittest.TestSuite:
    for name in PACKAGES:
        if has(name):
            tests.addTests(doctest.DocTestSuite(importlib.import_module(f"epitome.adapters.{name}")))
    return tests


def watched(seen: List[Any]) -> Any:
    """Returns a chat model of LangChain that answers once, and notes the messages that it gets."""
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Model(GenericFakeChatModel):
        def _generate(self, messages: Any, *rest: Any, **named: Any) -> Any:
            seen.append(list(messages))
            return super()._generate(messages, *rest, **named)

        def bind_tools(self, tools: Any, **named: Any) -> Any:
            return self

    return Model(messages=iter([AIMessage("Done.")]))


def plain(value: Any) -> Any:
    """Returns JSON without the members that number messages and parts, and without those that Agent Framework derives."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        derived = (NUMBER, "items", "additional_properties")
        return {name: plain(one) for name, one in value.items() if name not in derived and one != {}}
    return value


class Adapter(unittest.TestCase):
    def faithful(self, compactor: Any) -> Any:
        """Returns a compactor whose changed messages are checked: each is read again as the library has written it."""
        form = compactor._form
        changed = form.changed

        def checked(message: Any, record: Any) -> Any:
            wanted = plain(copy.deepcopy(record))
            done = changed(message, record)
            self.assertEqual(plain(json.loads(form.dump(done, 0))), wanted)
            return done

        form.changed = checked
        return compactor

    def check(self, make: Callable[[Any], List[Any]], compactor: Any, dump: Callable[[Any], Any]) -> None:
        """Compacts random conversations with every strategy: the objects that stay are the same, and no object is changed."""
        for seed in range(3):
            said = make(conversations.chat(seed, turns=8))
            before = copy.deepcopy(said)
            places = {id(message): place for place, message in enumerate(said)}
            for strategy in STRATEGIES:
                with self.subTest(seed=seed, strategy=strategy):
                    left = self.faithful(compactor(keep=0.5, strategy=strategy))(said)
                    self.assertEqual([dump(message) for message in said], [dump(message) for message in before])
                    own = [places[id(message)] for message in left if id(message) in places]
                    self.assertEqual(own, sorted(set(own)))
                    self.assertIs(left[-1], said[-1])
                    dumps = [dump(message) for message in said]
                    others = [message for message in left if id(message) not in places]
                    self.assertTrue(all(dump(message) not in dumps for message in others))
                    if strategy == "truncate":
                        self.assertEqual(others, [])
                    if strategy == "tool-results:keep=2":
                        self.assertEqual(len(left), len(said))
                        self.assertGreater(len(others), 0)
            same = compactor(window=1_000_000)(said)
            self.assertTrue(len(same) == len(said) and all(one is other for one, other in zip(same, said)))
        self.assertEqual(compactor(window=1_000)([]), [])


@unittest.skipUnless(has("langchain"), "langchain is not installed")
class LangChain(Adapter):
    def test_messages(self) -> None:
        from epitome.adapters.langchain import MessageCompactor

        self.check(conversations.langchain, MessageCompactor, lambda message: message.model_dump())

    def test_nothing_is_converted_twice_below_the_trigger(self) -> None:
        from langchain_core.messages import HumanMessage

        from epitome.adapters.langchain import MessageCompactor

        said = [HumanMessage(f"Question {number}: why, and what is it for?") for number in range(400)]
        compactor = MessageCompactor(window=20_000, trigger=3_000, goal=1_000)
        plain = MessageCompactor(window=20_000, trigger=3_000, goal=1_000)
        dumped: List[int] = []
        dump = compactor._form.dump
        compactor._form.dump = lambda message, number: dumped.append(number) or dump(message, number)  # type: ignore[method-assign, func-returns-value]
        for count in range(1, len(said) + 1):
            left = compactor(said[:count])
            self.assertTrue(all(one is other for one, other in zip(left, said)) or len(left) < count)
            if len(left) < count or count % 20 == 0:
                plain._checkpoint = None
                self.assertEqual([id(message) for message in left], [id(message) for message in plain(said[:count])])
            if len(left) < count:
                break
        self.assertGreater(count, 100)
        self.assertLess(count, 400)
        # Without the memory, every call converts every message.
        self.assertLess(len(dumped), count * count / 10)

    def test_another_list_is_looked_at(self) -> None:
        from langchain_core.messages import HumanMessage

        from epitome.adapters.langchain import MessageCompactor

        compactor = MessageCompactor(window=8_000, trigger=1_000, goal=500)
        short: List[Any] = [HumanMessage("Hello") for _ in range(40)]
        self.assertEqual(compactor(short), short)
        long = [HumanMessage("Why? " * 50) for _ in range(40)]
        self.assertLess(len(compactor(long)), 40)
        with self.assertRaisesRegex(epitome.BadInput, "'windw': expected keep, window"):
            MessageCompactor(windw=8_000)  # type: ignore[call-arg]

    def test_rare_messages(self) -> None:
        from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessage, HumanMessage, RemoveMessage, ToolMessage
        from langchain_core.prompts import ChatPromptTemplate

        from epitome.adapters.langchain import MessageCompactor, compact_messages, runnable

        # The results of calls that could not be read stay with them or go with them.
        wrong: List[Any] = [HumanMessage("go")]
        for number in range(4):
            call = {"id": f"c{number}", "name": "ls", "args": "{bad", "error": "e", "type": "invalid_tool_call"}
            wrong += [AIMessage("", invalid_tool_calls=[call]), ToolMessage("err " * 900, tool_call_id=f"c{number}", status="error")]
        left = compact_messages([*wrong, HumanMessage("and?")], goal=2_500)
        calls = [call["id"] for message in left for call in getattr(message, "invalid_tool_calls", [])]
        self.assertEqual(calls, [message.tool_call_id for message in left if message.type == "tool"])
        self.assertIn(len(calls), (1, 2, 3))
        # Their arguments are cleared as those of other calls are.
        clearing = MessageCompactor(goal=10, strategy="tool-results:keep=1:clear-inputs=true")
        left = clearing([*wrong, HumanMessage("and?")])
        self.assertEqual([call["args"] for message in left[1:-1:2] for call in message.invalid_tool_calls], ["{}"] * 3 + ["{bad"])

        said: List[Any] = []
        for number in range(10):
            said += [
                HumanMessage([{"type": "text", "text": "Look. " * 30}, {"type": "image_url", "image_url": {"url": "https://a/b.png"}}]),
                AIMessage(
                    [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "ok"}],
                    tool_calls=[{"name": "f", "args": {"x": 1.5}, "id": f"c{number}"}],
                    additional_kwargs={"reasoning_content": "Hm."},
                    usage_metadata={"input_tokens": 9, "output_tokens": 1, "total_tokens": 10},
                ),
                ToolMessage([{"type": "text", "text": "long " * 40}], tool_call_id=f"c{number}", status="error", artifact=object()),
                AIMessageChunk("chunk " * 20, id=f"run-{number}"),
                ChatMessage("words " * 20, role="user", name="anna"),
            ]
        for strategy in (*STRATEGIES, "reasoning:profile=permissive:keep=1"):
            left = self.faithful(MessageCompactor(keep=0.4, strategy=strategy))(said)
            self.assertIs(left[-1], said[-1])
        self.assertLess(len(runnable(keep=0.4).invoke(said)), len(said))
        with self.assertRaisesRegex(epitome.BadInput, "message 1: .*'remove'"):
            compact_messages([HumanMessage("x"), RemoveMessage("id")], keep=0.5)
        # As for `trim_messages`: what a chat model takes.
        self.assertEqual(compact_messages([("user", "x")], window=8_000), [HumanMessage("x")])  # type: ignore[list-item]
        prompt: Any = ChatPromptTemplate.from_messages([("system", "Be brief."), ("user", "{question}")])
        self.assertEqual(len((prompt | runnable(window=8_000)).invoke({"question": "Why?"})), 2)
        with self.assertRaisesRegex(epitome.BadInput, "lone surrogate"):
            compact_messages([HumanMessage("\ud800")], keep=0.5)

    @unittest.skipUnless(importlib.util.find_spec("langchain"), "langchain is not installed")
    def test_an_agent_with_the_middleware(self) -> None:
        from langchain.agents import create_agent
        from langchain_core.language_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage

        from epitome.adapters.langchain import CompactionMiddleware

        seen: List[int] = []

        class Model(GenericFakeChatModel):
            def _generate(self, messages: Any, *rest: Any, **named: Any) -> Any:
                seen.append(len(messages))
                return super()._generate(messages, *rest, **named)

        said = conversations.langchain(conversations.chat(1, turns=8))
        for call in ("invoke", "ainvoke"):
            model = Model(messages=iter([AIMessage("Done.")]))
            agent = create_agent(model, [], middleware=[CompactionMiddleware(keep=0.3)])
            state = {"messages": said}
            result: Any = asyncio.run(agent.ainvoke(state)) if call == "ainvoke" else agent.invoke(state)
            self.assertEqual(len(result["messages"]), len(said) + 1)
            self.assertLess(seen[-1], len(said))

    @unittest.skipUnless(importlib.util.find_spec("langchain"), "langchain is not installed")
    def test_the_system_prompt_and_the_tools_of_a_request_count(self) -> None:
        from langchain.agents import create_agent
        from langchain_core.tools import tool

        from epitome.adapters.langchain import CompactionMiddleware

        @tool
        def look(place: str) -> str:
            """Looks at a place."""
            return place

        look.description = "Looks at a place. " * 1_000
        seen: List[Any] = []

        said = conversations.langchain(conversations.chat(1, turns=8))
        for prompt, tools, is_short in (("Be brief.", [], False), ("Rule. " * 3_000, [], True), ("Be brief.", [look], True)):
            model = watched(seen)
            compaction = CompactionMiddleware(window=16_000, trigger=5_000, goal=4_500)
            agent: Any = create_agent(model, tools, system_prompt=prompt, middleware=[compaction])
            agent.invoke({"messages": said})
            self.assertEqual(len(seen[-1]) < len(said) + 1, is_short, prompt[:9])
            self.assertEqual((seen[-1][0].content, seen[-1][-1].content), (prompt, said[-1].content))

    @unittest.skipUnless(importlib.util.find_spec("langchain"), "langchain is not installed")
    def test_tools_of_a_provider_and_pins_beside_a_prompt(self) -> None:
        from langchain.agents import create_agent

        from epitome.adapters.langchain import CompactionMiddleware

        seen: List[Any] = []

        said = conversations.langchain(conversations.chat(1, turns=8))
        pinned = [place for place, message in enumerate(said) if message.type == "human"][3]
        for pins in ([pinned], [f"{pinned}-{pinned}"]):
            model = watched(seen)
            tools: Any = [{"google_search": {}}]
            middleware: Any = [CompactionMiddleware(goal=600, pins=pins)]
            agent: Any = create_agent(model, tools, system_prompt="Be brief.", middleware=middleware)
            agent.invoke({"messages": said})
            self.assertTrue(any(message is said[pinned] or message.content == said[pinned].content for message in seen[-1]))
            self.assertLess(len(seen[-1]), len(said))

    def test_results_of_the_older_form_stay_with_their_calls(self) -> None:
        from langchain_core.messages import AIMessage, FunctionMessage, HumanMessage

        from epitome.adapters.langchain import compact_messages

        said: List[Any] = []
        for turn in range(6):
            call = {"function_call": {"name": "f", "arguments": "{}"}}
            said += [HumanMessage(f"q{turn} " * 40), AIMessage("", additional_kwargs=call)]
            said += [FunctionMessage("result " * 60, name="f"), AIMessage(f"done {turn}")]
        left = compact_messages([*said, HumanMessage("now")], keep=0.4)
        kinds = [message.type for message in left]
        calls = [place for place, message in enumerate(left) if message.additional_kwargs]
        self.assertTrue(calls and len(left) < len(said))
        self.assertEqual([kinds[place + 1] for place in calls], ["function"] * len(calls))

    def test_a_result_beyond_the_window_is_told(self) -> None:
        from epitome.adapters.langchain import compact_messages

        said = conversations.langchain(conversations.chat(1, turns=8))
        with self.assertWarnsRegex(RuntimeWarning, "the strategy has left .* add `truncate` behind it"):
            compact_messages(said, window=1_000, strategy="media")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compact_messages(said, window=1_000, strategy="media, truncate")


@unittest.skipUnless(has("langgraph"), "langgraph is not installed")
class LangGraph(unittest.TestCase):
    def test_the_hook_in_an_agent(self) -> None:
        import warnings

        from langchain_core.language_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage
        from langgraph.prebuilt import create_react_agent

        from epitome.adapters.langgraph import pre_model_hook

        class Model(GenericFakeChatModel):
            def bind_tools(self, tools: Any, **named: Any) -> Any:
                return self

        said = conversations.langchain(conversations.chat(1, turns=8))
        for keep_state in (True, False):
            model = Model(messages=iter([AIMessage("Done.")]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                agent = create_react_agent(model, [], pre_model_hook=pre_model_hook(keep=0.3, keep_state=keep_state))
            left = agent.invoke({"messages": said})["messages"]
            self.assertEqual(left[-1].content, "Done.")
            self.assertEqual(len(left) == len(said) + 1, keep_state)


@unittest.skipUnless(has("pydantic_ai"), "pydantic_ai is not installed")
class PydanticAI(Adapter):
    def test_messages(self) -> None:
        from epitome.adapters.pydantic_ai import MessageCompactor

        self.check(conversations.pydantic_ai, MessageCompactor, repr)

    def test_rare_parts(self) -> None:
        import warnings

        warnings.simplefilter("ignore")
        self.addCleanup(warnings.resetwarnings)
        from pydantic_ai.messages import (
            BinaryContent,
            ImageUrl,
            ModelRequest,
            ModelResponse,
            RetryPromptPart,
            TextPart,
            ThinkingPart,
            ToolCallPart,
            ToolReturnPart,
            UserPromptPart,
        )

        from epitome.adapters.pydantic_ai import MessageCompactor

        said: List[Any] = []
        for number in range(10):
            files = [f"Look {number}. " * 30, ImageUrl("https://a/b.png"), BinaryContent(b"\x89PNG\xff", media_type="image/png")]
            said += [
                ModelRequest([UserPromptPart(files)], instructions="Be brief."),
                ModelResponse([ThinkingPart("Hm.", signature="c2ln"), TextPart("ok"), ToolCallPart("f", None, f"c{number}")]),
                ModelRequest([ToolReturnPart("f", {"rows": ["long " * 40, float("nan")]}, f"c{number}", metadata=object())]),
                ModelResponse([ToolCallPart("f", '{"x": 1}', f"d{number}")]),
                ModelRequest([RetryPromptPart("wrong " * 20, tool_name="f", tool_call_id=f"d{number}")]),
                ModelResponse([TextPart("ok")]),
            ]
        # Beside a result that is cleared, a part stays the same object.
        mixed = [UserPromptPart("Go on.") for _ in range(3)]
        for number, part in enumerate(mixed):
            said += [
                ModelResponse([ToolCallPart("f", "{}", f"e{number}")]),
                ModelRequest([ToolReturnPart("f", "long " * 200, f"e{number}"), part]),
            ]
        said.append(ModelRequest([UserPromptPart("And now?")]))
        places = {id(message) for message in said}
        for strategy in STRATEGIES:
            left = MessageCompactor(keep=0.4, strategy=strategy)(said)
            self.assertIs(left[-1], said[-1])
            if strategy == "tool-results:keep=2":
                changed = [message for message in left if id(message) not in places]
                self.assertGreater(len(changed), 0)
                self.assertTrue(all(type(message) in (ModelRequest, ModelResponse) for message in changed))
                kept = [message.parts[1] for message in changed if len(message.parts) == 2]
                self.assertTrue(kept and all(any(part is own for own in mixed) for part in kept))

    def test_an_agent(self) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart
        from pydantic_ai.models.function import FunctionModel

        from epitome.adapters.pydantic_ai import history_processor

        seen: List[int] = []

        def model(messages: Any, info: Any) -> Any:
            seen.append(len(messages))
            return ModelResponse([TextPart("Done.")])

        processor = history_processor(keep=0.3)
        try:
            from pydantic_ai.capabilities import ProcessHistory

            agent: Any = Agent(FunctionModel(model), capabilities=[ProcessHistory(processor)])
        except ImportError:
            agent = Agent(FunctionModel(model), history_processors=[processor])  # type: ignore[call-arg, unused-ignore]
        said = conversations.pydantic_ai(conversations.chat(1, turns=8)[:-1])
        self.assertEqual(agent.run_sync("And now?", message_history=said).output, "Done.")
        self.assertLess(seen[-1], len(said))


    def test_feedback_for_a_retry_stays(self) -> None:
        from pydantic_ai.messages import ModelRequest, ModelResponse, RetryPromptPart, TextPart, UserPromptPart

        from epitome.adapters.pydantic_ai import history_processor

        said: List[Any] = [ModelRequest([UserPromptPart("hi " * 200)])]
        for turn in range(6):
            said += [ModelResponse([TextPart("not json " * 300)]), ModelRequest([RetryPromptPart(f"Retry {turn}.")])]
        left = history_processor(goal=400)(said)
        self.assertLess(len(left), len(said))
        self.assertEqual((left[0] is said[0], left[-1] is said[-1]), (True, True))
        self.assertEqual(sum(message is said[-1] for message in left), 1)


@unittest.skipUnless(has("openai_agents"), "openai-agents is not installed")
class OpenAIAgents(Adapter):
    def test_items(self) -> None:
        from epitome.adapters.openai_agents import InputCompactor

        self.check(conversations.responses, InputCompactor, lambda item: json.dumps(item))

    def agent(self, seen: List[Any]) -> Any:
        from agents import Agent, Model, ModelResponse, Usage
        from openai.types.responses import ResponseOutputMessage, ResponseOutputText

        class Fake(Model):
            async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **named: Any) -> Any:
                seen.append(list(input))
                text = ResponseOutputText(text="Done. " * 40, type="output_text", annotations=[])
                message = ResponseOutputMessage(
                    id=f"msg_{len(seen)}", content=[text], role="assistant", status="completed", type="message"
                )
                return ModelResponse(output=[message], usage=Usage(), response_id=None)

            def stream_response(self, *rest: Any, **named: Any) -> Any:
                raise NotImplementedError

        return Agent(name="helper", instructions="Be brief.", model=Fake())

    def test_the_filter_in_a_run(self) -> None:
        from agents import RunConfig, Runner

        from epitome.adapters.openai_agents import input_filter

        seen: List[Any] = []
        said = conversations.responses(conversations.chat(1, turns=8))
        config = RunConfig(call_model_input_filter=input_filter(keep=0.3), tracing_disabled=True)
        asyncio.run(Runner.run(self.agent(seen), said, run_config=config))
        self.assertLess(len(seen[0]), len(said))

    def test_a_session_over_many_runs(self) -> None:
        from agents import RunConfig, Runner

        from epitome.adapters.openai_agents import Session

        with tempfile.TemporaryDirectory() as folder:
            store = "sqlite:" + os.path.join(folder, "chats.db")
            seen: List[Any] = []
            agent = self.agent(seen)
            config = RunConfig(tracing_disabled=True)

            async def talk() -> None:
                for turn in range(12):
                    # A new object each time, as after a restart.
                    session = Session("demo", store, window=2_000, trigger=500, goal=250)
                    await Runner.run(agent, f"Question {turn}: " + "why? " * 20, session=session, run_config=config)

            asyncio.run(talk())
            session = Session("demo", store)
            self.assertEqual(len(session.history.log()), 24)
            self.assertLess(max(len(items) for items in seen), 16)

            async def rest() -> None:
                items = await session.get_items()
                self.assertEqual(await session.get_items(limit=2), items[-2:])
                self.assertEqual(await session.pop_item(), items[-1])
                self.assertEqual(await session.get_items(), items[:-1])
                await session.clear_session()
                self.assertEqual((await session.get_items(), await session.pop_item()), ([], None))

            asyncio.run(rest())

    def test_items_of_a_session_come_back(self) -> None:
        from epitome.adapters.openai_agents import Session

        items: List[Any] = [
            {"role": "user", "content": "Which files?"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "ls", "arguments": "{}", "status": "completed"},
            {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "a.txt", "annotations": []}]},
        ]
        with tempfile.TemporaryDirectory() as folder:
            session = Session("demo", "sqlite:" + os.path.join(folder, "chats.db"))
            asyncio.run(session.add_items(items))
            back = asyncio.run(session.get_items())
            self.assertEqual([item.get("type", "message") for item in back], [item.get("type", "message") for item in items])
            self.assertEqual(back[1]["encrypted_content"], "c2ln")
            self.assertEqual((back[2]["call_id"], back[3]["output"]), ("c1", "a.txt"))
            search = {"type": "web_search_call", "id": "ws1", "status": "completed", "action": {"type": "search", "query": "x"}}
            asked = {"type": "mcp_approval_request", "id": "a1", "name": "pay", "arguments": "{}", "server_label": "bank"}
            with self.assertRaisesRegex(epitome.BadInput, "item 1 .*nothing was stored"):
                asyncio.run(session.add_items([items[0], asked]))
            self.assertEqual(len(asyncio.run(session.get_items())), len(items))
            # The service knows what it has searched.
            searched = Session("searched", "sqlite:" + os.path.join(folder, "chats.db"))
            asyncio.run(searched.add_items([items[0], search, items[4]]))
            self.assertEqual(asyncio.run(searched.get_items())[1], search)
            for kept in (2, 1, 0):
                popped = asyncio.run(searched.pop_item())
                self.assertEqual(popped and popped.get("type"), [None, "web_search_call", "message"][kept])
                self.assertEqual(len(asyncio.run(searched.get_items())), kept)
            # What was said together goes item by item.
            for kept, kind in ((4, "message"), (3, "function_call_output"), (1, "function_call"), (0, None)):
                popped = asyncio.run(session.pop_item())
                self.assertEqual((popped or {}).get("type"), kind)
                # Reasoning is not sent without the call that it led to.
                self.assertEqual(len(asyncio.run(session.get_items())), kept)
            self.assertIsNone(asyncio.run(session.pop_item()))

    def test_a_result_that_comes_after_an_approval(self) -> None:
        from epitome.adapters.openai_agents import Session

        call = {"type": "function_call", "call_id": "c", "name": "pay", "arguments": "{}"}
        result = {"type": "function_call_output", "call_id": "c", "output": "paid"}
        with tempfile.TemporaryDirectory() as folder:
            store = "sqlite:" + os.path.join(folder, "chats.db")
            session = Session("demo", store)
            asyncio.run(session.add_items([{"role": "user", "content": "pay"}, call]))
            asyncio.run(session.add_items([result]))
            back = asyncio.run(session.get_items())
            self.assertEqual([item.get("output") for item in back], [None, None, "paid"])
            # An empty message is in no request: the latest item is the one before it.
            asyncio.run(session.add_items([{"role": "user", "content": ""}]))
            self.assertEqual((asyncio.run(session.pop_item()) or {}).get("output"), "paid")
            self.assertEqual(len(asyncio.run(session.get_items())), 2)
            # A custom tool has calls and results of its own form.
            custom = {"type": "custom_tool_call", "call_id": "x", "name": "patch", "input": "text", "id": "ctc_1"}
            patched = {"type": "custom_tool_call_output", "call_id": "x", "output": "done"}
            tools = Session("tools", store)
            asyncio.run(tools.add_items([{"role": "user", "content": "patch it"}, custom, patched]))
            popped = [(asyncio.run(tools.pop_item()) or {}).get("type") for _ in range(3)]
            self.assertEqual(popped, ["custom_tool_call_output", "custom_tool_call", None])
            with self.assertRaisesRegex(epitome.BadInput, "no option 'windw'"):
                Session("demo", store, windw=3)  # type: ignore[call-arg]
            small = Session("small", store, window=300)
            with self.assertWarnsRegex(RuntimeWarning, "the session was not compacted"):
                asyncio.run(small.add_items([{"role": "user", "content": "word " * 600}]))
            self.assertEqual(len(small.history.log()), 1)

    def test_an_item_is_taken_back_behind_a_ledger(self) -> None:
        from epitome.adapters.openai_agents import Session

        with tempfile.TemporaryDirectory() as folder:
            session = Session("demo", "sqlite:" + os.path.join(folder, "chats.db"), window=3_000, strategy="agent")
            for turn in range(40):
                call = {"type": "function_call", "call_id": f"c{turn}", "name": "f", "arguments": "{}"}
                output = {"type": "function_call_output", "call_id": f"c{turn}", "output": f"line /x/{turn}.log\n" * 30}
                asyncio.run(session.add_items([{"role": "user", "content": f"q{turn} " + "w " * 60}, call, output]))
                if turn < 39:
                    asyncio.run(session.add_items([{"role": "assistant", "content": f"a{turn} " + "b " * 50}]))
            before = asyncio.run(session.get_items())
            self.assertEqual(sum("[Identifiers]" in json.dumps(item) for item in before), 1)
            self.assertEqual((asyncio.run(session.pop_item()) or {}).get("type"), "function_call_output")
            self.assertEqual((asyncio.run(session.pop_item()) or {}).get("type"), "function_call")
            self.assertEqual(asyncio.run(session.get_items()), before[:-2])

    def test_parallel_calls_with_results_in_another_order_are_taken_back(self) -> None:
        from epitome.adapters.openai_agents import Session

        def call(id: str) -> Dict[str, Any]:
            return {"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"}

        def output(id: str) -> Dict[str, Any]:
            return {"type": "function_call_output", "call_id": id, "output": f"result {id}"}

        said = [{"role": "user", "content": "go"}, call("a"), call("b"), call("c")]
        for order in ("abc", "cba", "bca"):
            with self.subTest(order=order), tempfile.TemporaryDirectory() as folder:
                session = Session("demo", "sqlite:" + os.path.join(folder, "chats.db"))
                asyncio.run(session.add_items(list(said)))
                for id in order:
                    asyncio.run(session.add_items([output(id)]))
                left = asyncio.run(session.get_items())
                self.assertEqual(len(left), 7)
                while left:
                    self.assertEqual(asyncio.run(session.pop_item()), left.pop())
                    self.assertEqual(asyncio.run(session.get_items()), left)
                self.assertIsNone(asyncio.run(session.pop_item()))

    def test_what_is_taken_back_leaves_the_other_items(self) -> None:
        from epitome.adapters.openai_agents import Session

        def said(text: str) -> Dict[str, Any]:
            return {"type": "message", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": text, "annotations": []}]}

        search = {"type": "web_search_call", "id": "ws1", "status": "completed", "action": {"type": "search", "query": "x"}}
        thought = {"type": "reasoning", "id": "rs_1", "summary": []}
        document = {"role": "user", "content": [{"type": "input_file", "file_url": "https://example.com/a.pdf"}]}
        call = {"type": "function_call", "call_id": "call_0", "name": "f", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": "call_0", "output": "r"}
        user = {"role": "user", "content": "Go on."}
        with tempfile.TemporaryDirectory() as folder:
            for name, items in {
                "reasoning without its sealed form behind a search": [user, search, said("a"), user, thought, said("b")],
                "a document alone in its message": [user, said("a"), user, said("b"), document],
                "an id of a call that was used before": [user, call, output, user, call, output],
                "a call without a result before a request": [call, user, said("a")],
            }.items():
                with self.subTest(name):
                    session = Session(name, "sqlite:" + os.path.join(folder, "chats.db"))
                    asyncio.run(session.add_items(items))
                    kinds = [item.get("type") for item in asyncio.run(session.get_items())]
                    self.assertEqual(kinds, [item.get("type") for item in items])
                    popped = asyncio.run(session.pop_item())
                    self.assertEqual(popped and popped.get("type"), items[-1].get("type"))
                    left = [item.get("type") for item in asyncio.run(session.get_items())]
                    # Reasoning that nothing follows is in no request.
                    self.assertEqual(left, [kind for kind in kinds[:-1] if kind != "reasoning"])

    def test_items_are_taken_back_one_after_the_other(self) -> None:
        from epitome.adapters.openai_agents import Session

        async def all_at_once(store: str) -> None:
            sessions = [Session("demo", store) for _ in range(2)]
            await sessions[0].add_items([{"role": "user", "content": str(number)} for number in range(20)])
            popped = await asyncio.gather(*[sessions[number % 2].pop_item() for number in range(10)])
            self.assertEqual({item["content"] for item in popped}, {str(number) for number in range(10, 20)})
            self.assertEqual([item["content"] for item in await sessions[0].get_items()], [str(number) for number in range(10)])
            for items, place in (
                ([{"role": "user", "content": "a\ud83d"}], "message 0 has a lone surrogate"),
                ([{"role": "user", "content": "a"}, {"content": "b"}], "at /1: expected an item"),
            ):
                with self.assertRaisesRegex(epitome.BadInput, place):
                    await sessions[0].add_items(items)

        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(all_at_once("sqlite:" + os.path.join(folder, "chats.db")))

    def test_items_for_other_models(self) -> None:
        """A model of Chat Completions tells an answer by its id, and needs what its provider has sent beside the items."""
        from agents.models.chatcmpl_converter import Converter

        from epitome.adapters.openai_agents import Session

        thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}],
                   "content": [{"type": "reasoning_text", "text": "c"}], "provider_data": {"model": "m"}}
        signed = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "provider_data": {"thought_signature": "s"}}
        items: List[Any] = [
            {"role": "user", "content": "Which files?"},
            thought,
            signed,
            {"type": "function_call_output", "call_id": "c", "output": "a.txt"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "a.txt", "annotations": [], "logprobs": []}]},
        ]
        with tempfile.TemporaryDirectory() as folder:
            store = "sqlite:" + os.path.join(folder, "chats.db")
            session = Session("demo", store)
            asyncio.run(session.add_items(items))
            back = asyncio.run(session.get_items())
            self.assertEqual(back[:4], items[:4])
            self.assertEqual({**back[4], "id": "msg_1"}, items[4])
            said = Converter.items_to_messages(back)
            self.assertEqual([message["role"] for message in said], ["user", "assistant", "tool", "assistant"])
            # Items that no request may have on their own.
            for silent in ([thought], [{"role": "user", "content": ""}]):
                alone = Session(f"alone {silent[0].get('type')}", store, window=2_000)
                asyncio.run(alone.add_items(silent))
                self.assertEqual(asyncio.run(alone.get_items()), [])
                asyncio.run(alone.add_items([{"role": "user", "content": "go"}]))
                self.assertEqual(asyncio.run(alone.get_items())[-1], {"role": "user", "content": "go"})

    def test_pins_of_a_session(self) -> None:
        from epitome.adapters.openai_agents import Session

        with tempfile.TemporaryDirectory() as folder:
            store = "sqlite:" + os.path.join(folder, "chats.db")
            session = Session("demo", store, window=2_000, trigger=500, goal=250, pins=iter([2, 900, "id:none"]))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for turn in range(12):
                    said = {"role": "user", "content": f"Question {turn}: " + "why? " * 20}
                    answer = {"role": "assistant", "content": f"Answer {turn}: " + "so " * 20}
                    asyncio.run(session.add_items([said, answer]))
            texts = json.dumps(asyncio.run(session.get_items()))
            self.assertTrue("Question 1:" in texts and "Question 11:" in texts and "Question 3:" not in texts, texts)

    def test_writers_at_the_same_time(self) -> None:
        from epitome.adapters.openai_agents import Session

        with tempfile.TemporaryDirectory() as folder:
            session = Session("demo", "sqlite:" + os.path.join(folder, "chats.db"))

            async def together() -> None:
                await asyncio.gather(*[session.add_items([{"role": "user", "content": str(n)}]) for n in range(12)])

            asyncio.run(together())
            texts = sorted(json.dumps(item) for item in asyncio.run(session.get_items()))
            self.assertEqual(len(set(texts)), 12)


@unittest.skipUnless(has("agent_framework"), "agent-framework-core is not installed")
class AgentFramework(Adapter):
    def test_messages(self) -> None:
        from epitome.adapters.agent_framework import MessageCompactor

        self.check(conversations.agent_framework, MessageCompactor, lambda message: message.to_dict())

    def test_the_strategy(self) -> None:
        from agent_framework import CharacterEstimatorTokenizer, apply_compaction

        from epitome.adapters.agent_framework import CompactionStrategy

        for strategy in STRATEGIES:
            said = conversations.agent_framework(conversations.chat(1, turns=8))
            count = len(said)
            last = said[-1]
            own = {id(message) for message in said}
            step = CompactionStrategy(keep=0.5, strategy=strategy)
            tokenizer = CharacterEstimatorTokenizer()
            left = asyncio.run(apply_compaction(said, strategy=step, tokenizer=tokenizer))
            self.assertIs(left[-1], last)
            self.assertGreaterEqual(len(said), count)
            if strategy == "truncate":
                self.assertLess(len(left), count)
                self.assertTrue(all(id(message) in own for message in left))
            if strategy == "tool-results:keep=2":
                self.assertEqual(len(left), count)
                self.assertTrue(any(id(message) not in own for message in left))
        calm = CompactionStrategy(window=1_000_000)
        self.assertFalse(asyncio.run(calm(conversations.agent_framework(conversations.chat(1)))))

    def test_pins_count_all_messages_and_properties_stay(self) -> None:
        from agent_framework import EXCLUDED_KEY, Content, Message

        from epitome.adapters.agent_framework import CompactionStrategy

        step = CompactionStrategy(window=2_500, strategy="agent", pins=iter([9]))
        messages: List[Any] = []
        for turn in range(40):
            call = Content.from_function_call(f"c{turn}", "read", arguments="{}")
            result = Content.from_function_result(f"c{turn}", result=f"line src/{turn}.rs\n" * 20)
            result.additional_properties["trace"] = turn
            messages += [Message("user", [f"Question {turn}"]), Message("assistant", [call]), Message("tool", [result])]
            asyncio.run(step(messages))
        self.assertGreater(len(messages), 120, "ledgers were added")
        shown = [message for message in messages if not message.additional_properties.get(EXCLUDED_KEY)]
        self.assertLess(len(shown), 110)
        # The tenth message of the whole list, which begins the fourth turn.
        self.assertEqual([message.text for message in shown if message.text in ("Question 2", "Question 3", "Question 4")], ["Question 3"])
        results = [content for message in messages for content in message.contents if content.type == "function_result"]
        self.assertTrue(any(len(result.result) < 50 for result in results), "results were shortened")
        self.assertEqual([result.additional_properties for result in results], [{"trace": turn} for turn in range(40)])

    def test_an_agent_with_a_session(self) -> None:
        """The framework marks the messages that it loads with their provider: they stay requests and instructions."""
        from agent_framework import Agent, BaseChatClient, ChatResponse, Message

        from epitome.adapters.agent_framework import CompactionStrategy

        sent: List[List[Any]] = []

        class Client(BaseChatClient):  # type: ignore[type-arg,misc]
            def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
                sent.append(list(messages))

                async def answer() -> ChatResponse[Any]:
                    return ChatResponse(messages=[Message("assistant", ["Answer. " * 50])])

                return answer()

        async def talk(strategy: str) -> None:
            agent = Agent(Client(), compaction_strategy=CompactionStrategy(window=3_000, strategy=strategy))
            session = agent.create_session()
            for turn in range(12):
                first = [Message("system", ["Never delete files."])] if turn == 0 else []
                await agent.run([*first, Message("user", [f"Question {turn} " + "why " * 150])], session=session)

        for strategy in ("truncate", "agent", "chat"):
            sent.clear()
            asyncio.run(talk(strategy))
            last = sent[-1]
            self.assertLess(len(last), 20, strategy)
            self.assertEqual((last[0].role, last[0].text), ("system", "Never delete files."), strategy)
            self.assertTrue(last[1].role == "user" and last[1].text.startswith("Question 0 "), strategy)
            self.assertTrue(last[-1].text.startswith("Question 11 "), strategy)


@unittest.skipUnless(has("litellm"), "litellm is not installed")
class LiteLLM(Adapter):
    def test_messages(self) -> None:
        from epitome.adapters.litellm import MessageCompactor

        self.check(lambda said: said, MessageCompactor, lambda message: json.dumps(message))

    def test_a_pin_may_name_a_message_that_is_yet_to_come(self) -> None:
        from epitome.adapters.litellm import MessageCompactor

        said = conversations.chat(1, turns=8)
        compactor = MessageCompactor(keep=0.3, pins=[3, "4-5"])
        self.assertIsNone(compactor.items(said[:1]))
        items = compactor.items(said)
        assert items is not None
        self.assertTrue({3, 4, 5} <= set(item for item in items if isinstance(item, int)))

    def test_the_callback(self) -> None:
        from epitome.adapters.litellm import CompactionCallback

        said = conversations.chat(1, turns=8)
        data = {"model": "m", "messages": said}
        done = asyncio.run(CompactionCallback(keep=0.3).async_pre_call_hook(None, None, data, "completion"))
        assert done is not None
        self.assertEqual((done["model"], data["messages"]), ("m", said))
        self.assertLess(len(done["messages"]), len(said))
        passed = asyncio.run(CompactionCallback(keep=0.3).async_pre_call_hook(None, None, data, "pass_through_endpoint"))
        self.assertIs(passed, data)
        # The endpoint for messages of Anthropic has calls and results of its own form.
        wire = epitome.convert(said, to="anthropic").document
        for keep in (0.2, 0.5):
            done = asyncio.run(CompactionCallback(keep=keep).async_pre_call_hook(None, None, dict(wire), "anthropic_messages"))
            assert done is not None
            self.assertEqual((epitome.validate(done, format="anthropic"), done["system"]), ([], wire["system"]))
            self.assertLess(len(done["messages"]), len(wire["messages"]))
        done = asyncio.run(CompactionCallback(keep=0.3).async_pre_call_hook(None, None, data, "completion"))
        assert done is not None
        import litellm

        answer = litellm.completion("gpt-4o", messages=done["messages"], mock_response="Done.")
        self.assertEqual(answer.choices[0].message.content, "Done.")


if __name__ == "__main__":
    unittest.main()
