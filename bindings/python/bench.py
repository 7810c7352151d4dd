"""Compares a compaction by Epitome with `trim_messages` of LangChain and `TruncationStrategy` of Agent Framework.

python bench.py [MESSAGES]

Both sides get the same messages and the same target, half of the tokens by the framework's own estimate. The time of Epitome includes
the conversion of all objects to JSON and back. Times are processor time, the shortest of some runs; a release build of the library
is needed (`pip install ./bindings/python` makes one).
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any, Callable, List

WORK = "def f():\n    return 1\n" * 10


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"{count:,} messages, half of the tokens kept\n")
    print(f"{'':<40}{'theirs':>12}{'Epitome':>12}{'ratio':>10}")
    langchain(count)
    agent_framework(count)


def langchain(size: int) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, trim_messages
    from langchain_core.messages.utils import count_tokens_approximately

    from epitome.adapters.langchain import MessageCompactor

    said: List[Any] = [SystemMessage("You are an agent.")]
    for n in range(size // 4 + 1):
        said.append(HumanMessage(f"Please look at file {n} and say what it does. " * 3))
        said.append(AIMessage("I will look.", tool_calls=[{"name": "read", "args": {"path": f"src/{n}.py"}, "id": f"c{n}"}]))
        said.append(ToolMessage(f"{WORK}{n}", tool_call_id=f"c{n}"))
        said.append(AIMessage(f"File {n} defines a function. " * 4))
    said = said[:size]
    goal = count_tokens_approximately(said) // 2
    compactor = MessageCompactor(goal=goal, window=100 * goal)

    def trim() -> Any:
        return trim_messages(
            said, max_tokens=goal, token_counter=count_tokens_approximately, strategy="last", include_system=True, start_on="human"
        )

    report("LangChain trim_messages", best(trim), best(lambda: compactor(said)))
    # A turn below the limit: the same messages as in the call before, and a new one.
    calm = MessageCompactor(window=100 * goal)
    calm(said)
    grown = [*said, HumanMessage("And now?")]

    def count() -> Any:
        return trim_messages(grown, max_tokens=100 * goal, token_counter=count_tokens_approximately, strategy="last")

    report("  the next turn below the limit", best(count), best(lambda: calm(grown)))


def agent_framework(count: int) -> None:
    from agent_framework import CharacterEstimatorTokenizer, Content, Message, TruncationStrategy, apply_compaction
    from agent_framework import included_token_count

    from epitome.adapters.agent_framework import CompactionStrategy

    def conversation() -> List[Any]:
        said: List[Any] = [Message("system", ["You are an agent."])]
        for n in range(count // 4 + 1):
            said.append(Message("user", [f"Please look at file {n} and say what it does. " * 3]))
            said.append(Message("assistant", [Content.from_function_call(f"c{n}", "read", arguments=f'{{"path":"src/{n}.py"}}')]))
            said.append(Message("tool", [Content.from_function_result(f"c{n}", result=f"{WORK}{n}")]))
            said.append(Message("assistant", [f"File {n} defines a function. " * 4]))
        return said[:count]

    tokenizer = CharacterEstimatorTokenizer()
    said = conversation()
    asyncio.run(apply_compaction(said, strategy=TruncationStrategy(max_n=1 << 40, compact_to=1, tokenizer=tokenizer)))
    goal = included_token_count(said) // 2
    theirs = TruncationStrategy(max_n=goal, compact_to=goal, tokenizer=tokenizer)
    ours = CompactionStrategy(goal=goal // 2, window=100 * goal)

    def run(strategy: Any) -> Callable[[], Any]:
        # Both mark the messages, so each run has its own.
        messages = conversation()
        return lambda: asyncio.run(apply_compaction(messages, strategy=strategy))

    whole = time_of(run(theirs))
    report("Agent Framework TruncationStrategy", whole, min(time_of(run(ours)) for _ in range(3)))
    alone = min(time_of(direct(ours, conversation())) for _ in range(3))
    report("  without the groups of the framework", whole, alone)


def direct(strategy: Any, messages: List[Any]) -> Callable[[], Any]:
    return lambda: asyncio.run(strategy(messages))


def best(run: Callable[[], Any]) -> float:
    return min(time_of(run) for _ in range(5))


def time_of(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def report(name: str, theirs: float, ours: float) -> None:
    print(f"{name:<40}{theirs * 1000:>9,.0f} ms{ours * 1000:>9,.0f} ms{theirs / ours:>9,.1f}x", flush=True)


if __name__ == "__main__":
    main()
