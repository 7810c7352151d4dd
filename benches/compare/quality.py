"""One rival as a program of `epitome eval --command`: reads requests line by line, and answers each with a line.

    quality.py NAME     one of those that `quality.py` alone lists

A rival is called as its documentation says. Whoever counts tokens is given the counts of the request, so that all aim at the same number;
whoever is limited by a number of messages or groups gets the largest number whose result is within the goal. What its library cannot say (a
list of contents, arguments that are no JSON) is given as text, and taken back from the request.
"""

import json
import math
import re
import sys

NAMES = {}


def rival(name):
    def add(answer):
        NAMES[name] = answer
        return answer

    return add


class Request:
    """The messages in the shape that the rivals of contenders.py read, with their sizes and the goal."""

    def __init__(self, line):
        raw = json.loads(line)
        self.raw, self.tokens, self.goal = raw["messages"], raw["tokens"], raw["goal_tokens"]
        self.messages = [plain(message) for message in self.raw]

    def size(self, kept):
        return sum(self.tokens[at] for at in kept)


def plain(raw):
    """A message with a text as its content, a role that every library has, and arguments that are JSON objects."""
    content = raw.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(part.get("text") or f"[{part.get('type')}]" for part in content)
    message = {"role": "system" if raw["role"] == "developer" else raw["role"], "content": content}
    if raw["role"] == "tool":
        message["tool_call_id"] = raw["tool_call_id"]
    calls = [call for call in raw.get("tool_calls") or [] if "function" in call]
    if calls:
        message["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {"name": call["function"]["name"], "arguments": object_of(call)}}
            for call in calls
        ]
    return message


def object_of(call):
    arguments = call["function"].get("arguments") or "{}"
    try:
        if isinstance(json.loads(arguments), dict):
            return arguments
    except ValueError:
        pass
    return json.dumps({"input": arguments})


def largest(request, most, keep):
    """What `keep` leaves with the largest limit whose result is within the goal; with 1, if none is."""
    low, high = 1, max(most, 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if request.size(keep(middle)) <= request.goal else (low, middle - 1)
    return keep(low)


@rival("langchain trim_messages")
def langchain(request):
    """With the settings that its documentation recommends: from a message of the user on."""
    return trimmed(request, "human")


@rival("langchain trim_messages, from any answer")
def langchain_from_answers(request):
    """An agent's conversation may have one message of the user, so that the recommended settings leave next to nothing."""
    return trimmed(request, ("human", "ai"))


def trimmed(request, start_on):
    from contenders import LangChain
    from langchain_core.messages import trim_messages

    messages = [LangChain.message(raw) for raw in request.messages]
    for at, message in enumerate(messages):
        message.id = str(at)
    kept = trim_messages(
        messages,
        max_tokens=request.goal,
        token_counter=lambda some: sum(request.tokens[int(one.id)] for one in some),
        strategy="last",
        start_on=start_on,
        include_system=True,
    )
    return {"keep": sorted(int(message.id) for message in kept)}


def agent_framework(request, strategy):
    """What a strategy leaves. `strategy` is made of a counter and the goal."""
    from agent_framework import CharacterEstimatorTokenizer, apply_compaction
    from agent_framework._compaction import _serialize_message
    from contenders import AgentFramework

    messages = AgentFramework.convert(AgentFramework, request.messages)
    places = {id(message): at for at, message in enumerate(messages)}
    sizes = {_serialize_message(message): tokens for message, tokens in zip(messages, request.tokens)}

    class Tokenizer(CharacterEstimatorTokenizer):
        def count_tokens(self, text):
            return sizes[text] if text in sizes else super().count_tokens(text)

    call = apply_compaction(messages, strategy=strategy(Tokenizer()), tokenizer=Tokenizer())
    left = AgentFramework.loop.run_until_complete(call)
    if all(id(message) in places for message in left):
        return {"keep": sorted(places[id(message)] for message in left)}
    said = AgentFramework.said(left)
    return {"messages": [request.raw[places[id(one)]] if id(one) in places else new for one, new in zip(left, said)]}


def truncation_strategy(request, tokenizer):
    from agent_framework import TruncationStrategy

    return TruncationStrategy(max_n=request.goal, compact_to=request.goal, tokenizer=tokenizer)


@rival("agent-framework truncation")
def truncation(request):
    return agent_framework(request, lambda tokenizer: truncation_strategy(request, tokenizer))


@rival("agent-framework context window")
def context_window(request):
    from agent_framework import ContextWindowCompactionStrategy

    def made(tokenizer):
        return ContextWindowCompactionStrategy(max_context_window_tokens=request.goal, max_output_tokens=0, tokenizer=tokenizer)

    return agent_framework(request, made)


@rival("agent-framework tool results, truncation")
def composed(request):
    from agent_framework import TokenBudgetComposedStrategy, ToolResultCompactionStrategy

    def made(tokenizer):
        steps = [ToolResultCompactionStrategy(), truncation_strategy(request, tokenizer)]
        return TokenBudgetComposedStrategy(token_budget=request.goal, tokenizer=tokenizer, strategies=steps)

    return agent_framework(request, made)


@rival("agent-framework sliding window")
def sliding_window(request):
    from agent_framework import SlidingWindowStrategy

    def keep(groups):
        return agent_framework(request, lambda _: SlidingWindowStrategy(keep_last_groups=groups))["keep"]

    return {"keep": largest(request, len(request.raw), keep)}


@rival("pydantic-ai messages[-n:]")
def pydantic_ai(request):
    from contenders import PydanticAI

    contender = PydanticAI()
    messages = contender.convert(request.messages)
    # One message of the library holds several of the request: an answer is one, what stands between two answers is another.
    held, before = [], None
    for at, message in enumerate(request.messages):
        mine = message["role"] == "assistant"
        if mine or before is not False:
            held.append([])
        held[-1].append(at)
        before = mine
    assert len(held) == len(messages), (len(held), len(messages))

    def keep(limit):
        kept = contender.compact(messages, limit)
        return [at for one in held[len(messages) - len(kept) :] for at in one]

    return {"keep": largest(request, len(messages), keep)}


# What supercompact looks for, and the weight of each kind; the expressions are written anew from its description.
ENTITIES = {
    "url": (0.8, re.compile(r"https?://[^\s<>\"'`\])]+")),
    "file_path": (1.0, re.compile(r"(?<![:/\w])[.~]?(?:/[\w.\-]+){2,}")),
    "exception": (0.9, re.compile(r"\b[A-Z][A-Za-z]*(?:Error|Exception|Warning|Fault)\b")),
    "port": (0.8, re.compile(r"(?:\b[Pp]ort[ =]+|:)(\d{2,5})\b")),
    "command": (0.7, re.compile(r"(?m)(?:^|\$ +)((?:git|docker|npm|pip|python|node|cargo|make|curl|kubectl|uv) +[a-z][\w\- ]{2,40})")),
    "package": (0.7, re.compile(r"(?:pip3? install|npm install|yarn add|cargo install|go install) +([A-Za-z][\w\-]+)")),
    "http_status": (0.6, re.compile(r"\b([1-5]\d\d) +(?:[Ee]rror|OK|Not Found|Unauthorized|Bad Request|Internal Server Error)")),
    "function": (0.5, re.compile(r"\b([a-z_][a-z0-9_.]{3,})\s*\(")),
    "class_name": (0.4, re.compile(r"\b(?:[A-Z][a-z]+){2,}\b")),
    "env_var": (0.4, re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")),
}
SHORT = 300
RECENCY = 0.15


def entities(text):
    return {(kind, found.group(found.re.groups).lower()) for kind, (_, pattern) in ENTITIES.items() for found in pattern.finditer(text)}


def scored(request):
    """Its turns as lists of messages, whether the user wrote each, and the score of each with the bonus for newer ones.

    A turn is a message of the user, or an answer of the model with its results: where the user writes once, what supercompact calls a turn
    is the whole conversation. The score: over the distinct entities of a turn the sum of weight times log(turns / turns with it), by the
    square root of the tokens, by the highest of them; and 0.15 times the place of the turn.
    """
    turns, by_user = [], []
    for at, message in enumerate(request.messages):
        if message["role"] != "tool" or not turns:
            turns.append([])
            by_user.append(message["role"] in ("user", "system"))
        turns[-1].append(at)
    found = [entities(json.dumps([request.messages[at] for at in turn], ensure_ascii=False).replace("\\n", "\n")) for turn in turns]
    often = {}
    for entity in (entity for own in found for entity in own):
        often[entity] = often.get(entity, 0) + 1

    def weigh(own):
        return sum(ENTITIES[kind][0] * math.log(len(turns) / often[kind, value]) for kind, value in sorted(own))

    scores = [weigh(own) / math.sqrt(max(request.size(turn), 1)) for own, turn in zip(found, turns)]
    highest = max(scores, default=0) or 1
    return turns, by_user, [score / highest + RECENCY * at / len(turns) for at, score in enumerate(scores)]


def best_first(request, turns, scores, kept):
    left = request.goal - sum(request.size(turns[at]) for at in kept)
    for at in sorted(range(len(turns)), key=lambda at: -scores[at]):
        size = request.size(turns[at])
        if at not in kept and size <= left:
            kept.add(at)
            left -= size
    return {"keep": sorted(message for at in kept for message in turns[at])}


@rival("supercompact")
def supercompact(request):
    turns, by_user, scores = scored(request)
    kept = {at for at, turn in enumerate(turns) if by_user[at] or request.size(turn) <= SHORT}
    answers = [at for at in range(len(turns)) if not by_user[at]]
    kept.update(answers[-1:])
    return best_first(request, turns, scores, kept)


@rival("supercompact, the score alone")
def supercompact_score(request):
    turns, _, scores = scored(request)
    return best_first(request, turns, scores, set())


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in NAMES:
        print("\n".join(NAMES))
        sys.exit(0 if len(sys.argv) == 1 else 2)
    answer = NAMES[sys.argv[1]]
    for line in sys.stdin:
        print(json.dumps(answer(Request(line)), ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
