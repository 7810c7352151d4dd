"""The Python side of python.sh: truncates with Agent Framework, and lays both results side by side.

Everything that is said of a result (messages, tokens, orphans, first role) is found out by the same code for both.
"""

import asyncio
import json
import statistics
import sys
import time
from importlib.metadata import version

from agent_framework import (
    CharacterEstimatorTokenizer,
    Content,
    Message,
    TruncationStrategy,
    apply_compaction,
)
from agent_framework._compaction import (
    _serialize_message,
    annotate_message_groups,
    annotate_token_counts,
)

TOKENIZER = CharacterEstimatorTokenizer()


def read(path):
    """The conversation as Agent Framework's messages, each with its position as its id."""
    with open(path, encoding="utf-8") as file:
        return [to_message(at, raw) for at, raw in enumerate(json.load(file))]


def to_message(at, raw):
    contents = []
    if raw["role"] == "tool":
        contents.append(Content.from_function_result(raw["tool_call_id"], result=raw["content"]))
    elif raw["content"]:
        contents.append(Content.from_text(raw["content"]))
    for call in raw.get("tool_calls", []):
        function = call["function"]
        contents.append(
            Content.from_function_call(call["id"], function["name"], arguments=function["arguments"])
        )
    return Message(raw["role"], contents, message_id=f"m{at}")


def tokens(messages):
    """Agent Framework's count, from scratch."""
    return sum(TOKENIZER.count_tokens(_serialize_message(message)) for message in messages)


def about(messages):
    """What a model would receive: sizes, results without their call, calls without their result, the first role."""
    called, orphans, answered = set(), 0, set()
    for message in messages:
        for content in message.contents:
            if content.type == "function_call":
                called.add(content.call_id)
            elif content.type == "function_result":
                orphans += content.call_id not in called
                answered.add(content.call_id)
    roles = [message.role for message in messages if message.role != "system"]
    return {
        "messages": f"{len(messages):,}",
        "tokens, by Agent Framework": f"{tokens(messages):,}",
        "results without call": orphans,
        "calls without result": len(called - answered),
        "first role but system": roles[0] if roles else "none",
    }


def strategy(total, percent):
    """Defaults, but for the size to reach and the tokenizer that makes it one of tokens."""
    goal = total * percent // 100
    return TruncationStrategy(max_n=goal, compact_to=goal, tokenizer=TOKENIZER)


def truncate(path, total, percent):
    """The call as users make it, on a conversation that was never compacted."""
    messages = read(path)
    start = time.perf_counter()
    kept = asyncio.run(apply_compaction(messages, strategy=strategy(total, percent), tokenizer=TOKENIZER))
    return (time.perf_counter() - start) * 1e3, kept


def strategy_alone(path, total, percent):
    """The strategy on messages that are grouped and counted already."""
    messages = read(path)
    start = time.perf_counter()
    annotate_message_groups(messages)
    annotated = time.perf_counter()
    annotate_token_counts(messages, tokenizer=TOKENIZER)
    counted = time.perf_counter()
    asyncio.run(strategy(total, percent)(messages))
    return (
        (annotated - start) * 1e3,
        (counted - annotated) * 1e3,
        (time.perf_counter() - counted) * 1e3,
    )


def main():
    path, epitome_path, percent = sys.argv[1], sys.argv[2], int(sys.argv[3])
    messages = read(path)
    total = tokens(messages)
    with open(epitome_path, encoding="utf-8") as file:
        epitome = json.load(file)

    rounds = 1 if len(messages) > 2_000 else 3
    runs = [truncate(path, total, percent) for _ in range(rounds)]
    whole, kept = statistics.median(ms for ms, _ in runs), runs[0][1]
    parts = [strategy_alone(path, total, percent) for _ in range(rounds)]
    grouping, counting, planning = (statistics.median(column) for column in zip(*parts))
    ours_whole = epitome["count_ms"] + epitome["group_ms"] + epitome["plan_ms"]
    theirs, ours = about(kept), about([messages[at] for at in epitome["kept"]])

    print(
        f"Given: {len(messages):,} messages, {total:,} tokens by Agent Framework "
        f"(characters of JSON / 4), {epitome['tokens_before']:,} by Epitome's estimate; "
        f"truncate to {percent} % of that.\n"
    )
    print(f"| | agent-framework-core {version('agent-framework-core')} | Epitome | ratio |")
    print("|---|---|---|---|")
    row = lambda name, left, right, ratio="": print(f"| {name} | {left} | {right} | {ratio} |")
    timed = lambda name, left, right: row(
        name, f"{left:,.2f} ms", f"{right:,.3f} ms", f"{left / right:,.0f}x"
    )
    timed("the call: count, group, truncate", whole, ours_whole)
    timed("of it, group", grouping, epitome["group_ms"])
    timed("of it, count", counting, epitome["count_ms"])
    timed("of it, truncate", planning, epitome["plan_ms"])
    timed("truncate, against Epitome's group and truncate", planning, epitome["group_ms"] + epitome["plan_ms"])
    for what in theirs:
        row(f"kept: {what}", theirs[what], ours[what])


if __name__ == "__main__":
    main()
