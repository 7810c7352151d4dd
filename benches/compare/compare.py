"""The Python side of a comparison: does what it is told on the command line, and answers with JSON.

    compare.py plan FILE TOKENS MESSAGES TOOL_USES ROUNDS SECONDS
    compare.py sweep FILE FIRST LAST STEP
    compare.py loop FILE TOKENS MESSAGES TOOL_USES SECONDS

FILE is a conversation as Chat Completions JSON. A contender turns it into messages of its own, calls its library as the
library's documentation says, and turns what comes back into Chat Completions JSON: who asked judges that, with the same
code for everybody.
"""

import json
import sys
import time

import contenders

UNITS = ("tokens", "messages", "tool uses")


def of_unit(contender, limits):
    return limits[UNITS.index(contender.unit)]


def about(contender):
    return {"name": contender.name, "call": contender.call, "unit": contender.unit}


def own(contender, messages):
    """What the limit is one of, by the contender's own count."""
    if contender.unit == "tool uses":
        return None
    return contender.tokens(messages) if contender.unit == "tokens" else len(messages)


def timed(contender, said, limit):
    """One call on a conversation that was never compacted; what it kept, and how long it took."""
    messages = contender.convert(said)
    start = time.process_time()
    kept = contender.compact(messages, limit)
    return kept, time.process_time() - start


def too_slow(contender, said, limit, most):
    """Why the whole is not tried, found out on shorter ones: each has twice the messages of the one before."""
    turns = [at for at, message in enumerate(said) if message["role"] == "user"] + [len(said)]
    last, messages = None, 500
    while messages < len(said):
        short = said[: next(at for at in turns if at >= messages)]
        took = timed(contender, short, limit)[1]
        if last and last > 0.05 and took / last > 3:
            predicted = took * (len(said) / len(short)) ** 2
            if predicted > most:
                return (
                    f"would take {predicted:,.0f} s of the processor: {took:.1f} s for {len(short):,} messages, "
                    "and it grows with the square"
                )
        last, messages = took, 2 * messages
    return None


def plan(contender, said, limits, rounds, most):
    limit = of_unit(contender, limits)
    given = contender.convert(said)
    assert contender.said(given) == said, contender.call
    row = about(contender) | {"own_given": contender.tokens(given)}
    why = too_slow(contender, said, limit, 10 * most)
    if why:
        return row | {"not_run": why}
    # What is loaded at the first call is no part of any time.
    timed(contender, said[:2], limit)
    seconds, bare = [], []
    while not seconds or (len(seconds) < rounds and sum(seconds) < most / 4):
        kept, took = timed(contender, said, limit)
        seconds.append(took)
        alone = contender.alone(said, limit) if took < most else None
        if alone is not None:
            bare.append(alone)
    returned = {"own_returned": own(contender, kept), "returned": contender.said(kept)}
    return row | returned | {"seconds": seconds, "bare": bare}


def sweep(contender, said, first, last, step):
    total, runs = contender.tokens(contender.convert(said)) or 0, []
    for at in range(first, last + 1, step):
        limit = of_unit(contender, (total * at // len(said), at, at - first))
        kept = contender.compact(contender.convert(said), limit)
        runs.append({"limit": limit, "own": own(contender, kept), "returned": contender.said(kept)})
    return about(contender) | {"runs": runs}


def loop(contender, said, limits, most):
    """Turn after turn: appends it to a history that stays, and compacts for the next request."""
    starts = [at for at, message in enumerate(said) if message["role"] == "user"]
    bounds = list(zip([0, *starts[1:]], [*starts[1:], len(said)]))
    limit, took, size, course, history = of_unit(contender, limits), 0.0, 0, [(0, 0.0)], contender.begin()
    for turn, (start, end) in enumerate(bounds, 1):
        heard = contender.convert(said[start:end])
        before = time.process_time()
        history.extend(heard)
        request = contender.request(history, limit)
        took += time.process_time() - before
        size += sum(len(message["content"] or "") for message in contender.said(request))
        if turn % max(len(bounds) // 50, 1) == 0 or turn == len(bounds):
            course.append((turn, took))
        if took > most:
            break
    if course[-1][0] != turn:
        course.append((turn, took))
    return about(contender) | {"turns": turn, "seconds": took, "course": course, "bytes": size}


def main():
    what, path, *numbers = sys.argv[1:]
    numbers = [int(number) for number in numbers]
    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    does = {
        "plan": lambda contender: plan(contender, said, numbers[:3], *numbers[3:]),
        "sweep": lambda contender: sweep(contender, said, *numbers),
        "loop": lambda contender: loop(contender, said, numbers[:3], *numbers[3:]),
    }
    json.dump([does[what](contender) for contender in contenders.ALL], sys.stdout)


if __name__ == "__main__":
    main()
