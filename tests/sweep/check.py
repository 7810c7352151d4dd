"""Compacts transcripts with every strategy to several goals, and checks each result without any code of the project.

    check.py PROGRAM [--all] [FOLDER...]

Reads every transcript below the folders and one of its own in nine formats. Without `--all`, of a folder only the files of at
most 200 kB, of a file the three longest conversations (else 20), and two goals. Prints a table of violations and ends with 1 if there is one.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import made
from readers import READERS, REASONING, elements, format_of, lines, member

STRATEGIES = [
    "truncate", "window:turns=1", "window:groups=6", "tool-results", "tool-drop", "tool-digest", "supersede", "clamp:max=60",
    "reasoning:profile=anthropic", "ephemeral", "context-window:window=8000:output=1000", "tool-results | truncate", "truncate --repair",
    "salience", "chat", "agent", "truncate | ledger",
]
GOALS, GOALS_SHORT = ["5%", "10%", "25%", "50%"], ["10%", "50%"]
FILE_BYTES_MAX, SECONDS_MAX = 200_000, 300
CONVERSATIONS_MAX, CONVERSATIONS_MAX_SHORT = 20, 3
REFUSED = "(refused)"  # Counted, but no violation.
SUMMARY = "[Conversation Summary]"
# What stands in place of something says so in brackets, but for arguments of calls, which stay JSON: empty, or with notes of what was cut.
MARK = re.compile(r"\[[^\[\]]{2,}\]")
CUT = re.compile(r"\[(\d+) (character|element|member)s? cut\]")
ARGUMENTS = {"arguments", "input", "args"}


def is_reasoning(part):
    return isinstance(part, dict) and (part.get("type") in REASONING or bool(part.get("thought")))


def is_cut(old, new):
    """Whether JSON `new` is `old` with notes where something of a string, a list or an object is left out, each with the right number."""
    if old == new:
        return True
    if isinstance(old, str) and isinstance(new, str):
        notes = [note for note in CUT.finditer(new) if len(old) - (len(new) - len(note[0])) == int(note[1])]
        return any(old.startswith(new[:note.start()]) and old.endswith(new[note.end():]) for note in notes)
    if isinstance(old, list) and isinstance(new, list):
        notes = [(at, CUT.fullmatch(it)) for at, it in enumerate(new) if isinstance(it, str) and CUT.fullmatch(it)]
        wholes = [new] + [new[:at] + old[at:at + int(note[1])] + new[at + 1:] for at, note in notes]
        return any(len(old) == len(whole) and all(map(is_cut, old, whole)) for whole in wholes)
    if isinstance(old, dict) and isinstance(new, dict):
        gone = [key for key in old if key not in new]
        notes = [int(CUT.fullmatch(key)[1]) for key in new if key not in old and CUT.fullmatch(key)]
        same = all(is_cut(old[key], new[key]) for key in old if key in new)
        return same and (not gone if not notes else notes == [len(gone)]) and len(new) == len(old) - len(gone) + len(notes)
    return False


def are_stand_in(old, new):
    """Whether arguments are empty or cut. Some formats write them as a text, and some tools take a text that is no JSON."""
    try:
        old, new = [json.loads(it) if isinstance(it, str) else it for it in (old, new)]
    except ValueError:
        return is_stand_in(old, new)
    return new == {} or is_cut(old, new)


def is_stand_in(old, new):
    """Whether `new` is `old` with marked texts in place of longer ones, and without some of its reasoning."""
    if old == new:
        return True
    if isinstance(new, str):
        said = old if isinstance(old, str) else json.dumps(old, ensure_ascii=False)
        return bool(MARK.search(new)) and (len(new) < len(said) or "[cleared" in new)
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in new if key not in old or old[key] != new[key]]
        gone = [key for key in old if key not in new and key not in REASONING | {"reasoning_content", "encrypted_content", "thoughtSignature"}]
        links = {"parentUuid", "parentId", "logicalParentUuid"}
        stands = lambda key: (are_stand_in if key in ARGUMENTS else is_stand_in)(old[key], new[key])
        return not gone and all(key in links or key in old and stands(key) for key in keys)
    if isinstance(new, list):
        before = [part for part in old if not is_reasoning(part)] if isinstance(old, list) else [old]
        after = [part for part in new if not is_reasoning(part)]
        if len(before) == len(after) and all(is_stand_in(one, other) for one, other in zip(before, after)):
            return True
        # All of a list, as one marked text.
        return len(after) == 1 and isinstance(after[0], dict) and any(isinstance(text, str) and MARK.search(text) for text in after[0].values())
    return False


def is_rest(old, new):
    """Whether `new` is the request in a message of results and a request: the results went with their calls."""
    if not old.results or old.calls or new.results or not new.text:
        return False
    lists = [key for key in old.body if isinstance(old.body[key], list) and old.body[key] != new.body.get(key)]
    others = all(old.body[key] == new.body.get(key) for key in old.body if key not in lists)
    return others and len(lists) == 1 and [part for part in old.body[lists[0]] if "text" in part] == new.body[lists[0]]


def is_summary(message):
    return SUMMARY in json.dumps(message.body, ensure_ascii=False)


def unasked(messages):
    """The numbers of the messages that answer a call that is not before them."""
    open_calls, found = collections.Counter(), set()
    for at, message in enumerate(messages):
        open_calls.update(message.calls)
        for id, _ in message.results:
            open_calls[id] -= 1
            if open_calls[id] < 0:
                found.add(at)
    return found


class Checker:
    """Compares the messages of one result with those of its original."""

    def __init__(self, old, new, repairs):
        self.old, self.new, self.repairs, self.found = old, new, repairs, collections.Counter()
        self.example = {}
        self.place = self.aligned()  # of each new message: the number of the original, or None
        self.kept = {at for at in self.place if at is not None}

    def say(self, kind, what):
        self.found[kind] += 1
        self.example.setdefault(kind, what)

    def aligned(self):
        by_raw, last, places, used = collections.defaultdict(list), -1, [], set()
        for at, message in enumerate(self.old):
            by_raw[message.raw].append(at)
        for number, message in enumerate(self.new):
            same = [at for at in by_raw[message.raw] if at not in used]
            if not same and is_summary(message):
                places.append(None)
                continue
            at = next((at for at in same if at > last), same[0] if same else self.changed(message, last, used))
            if at is None:
                self.added(number, message)
            else:
                used.add(at)
                # A repair puts results directly behind their calls.
                if at < last and not self.repairs:
                    self.say("order", f"message {at} of the original stands behind {last}")
            places.append(at)
            last = last if at is None else max(last, at)
        return places

    def changed(self, message, last, used):
        names = lambda it: (it.role, it.calls, [id for id, _ in it.results])
        same = lambda old: names(old) == names(message) and is_stand_in(old.body, message.body)
        like = [at for at, it in enumerate(self.old) if at not in used and (same(it) or is_rest(it, message))]
        return min(like, key=lambda at: at < last, default=None)

    def added(self, number, message):
        if not self.repairs:
            self.say("changed", f"message {number} of the result is neither an original nor a marked stand-in")

    def check(self):
        self.pairing()
        self.invented()
        if not self.repairs:
            self.held()
            self.beginning()
            self.questions()
        return self.found, self.example

    def pairing(self):
        """A call keeps its result and a result its call, in that order."""
        before = collections.Counter(id for message in self.old for id, _ in message.results)
        known = unasked(self.old)
        calls, results = collections.Counter(), collections.Counter()
        for number, (message, at) in enumerate(zip(self.new, self.place)):
            calls.update(message.calls)
            for id, _ in message.results:
                results[id] += 1
                if results[id] > calls[id] and (at not in known or self.repairs):
                    self.say("result-without-call", f"message {number} answers a call that is not before it")
        for id, count in calls.items():
            if min(count, before[id]) > results[id]:
                self.say("call-without-result", f"{before[id]} results of a call became {results[id]}")
            if self.repairs and results[id] != count:
                self.say("repair-left-a-call-open", f"a call has {results[id]} results")

    def invented(self):
        real = {id for message in self.old for id, said in message.results}
        known = [message.text + "".join(said for _, said in message.results) for message in self.old]
        for message in self.new:
            for id, said in message.results:
                if said.startswith("[aborted") and id in real and said not in known:
                    self.say("invented-failure", "a call that has a result is said to be aborted")

    def held(self):
        for at, message in enumerate(self.old):
            if message.role == "system" and not self.is_same(at):
                self.say("system-message", f"system message {at} is not as it was")
        requests = [at for at, message in enumerate(self.old) if message.is_request]
        for name, at in (("first-request", requests[:1]), ("last-request", requests[-1:])):
            if at and not self.is_same(at[0]):
                self.say(name, f"message {at[0]} is not as it was")
        steps = [at for at, message in enumerate(self.old) if message.is_step]
        if steps and steps[-1] not in self.kept:
            self.say("newest-step", f"message {steps[-1]} is gone")

    def beginning(self):
        """A conversation that begins with the user, or in the place of the user, still does."""
        old, new = (next((it for it in messages if it.role != "system"), None) for messages in (self.old, self.new))
        is_user = lambda it: it.role in ("user", "note") and bool(it.text.strip())
        if old and new and is_user(old) and not is_user(new):
            self.say("begins-otherwise", f"the first message is of {new.role}")

    def is_same(self, at):
        return any(place == at and message.raw == self.old[at].raw for place, message in zip(self.place, self.new))

    def questions(self):
        """A kept step has the request that it belongs to, or a summary before it."""
        asked = None
        request = []
        for at, message in enumerate(self.old):
            asked = at if message.is_request else asked
            request.append(asked)
        for message, at in zip(self.new, self.place):
            if at is None and is_summary(message):
                return
            if at is not None and message.is_step and request[at] is not None and request[at] not in self.kept:
                self.say("answer-without-question", f"message {at} is kept, its request {request[at]} is not")


def parents(old, new):
    """Records that name a record that is not there, although it was."""
    def named(text):
        rows = [it for _, it in lines(text)]
        return {it.get("uuid") or it.get("id") for it in rows}, [it.get("parentUuid") or it.get("parentId") for it in rows]
    (before, _), (there, above) = named(old), named(new)
    return [name for name in above if name and name in before and name not in there]


def run(program, case, strategy, goal, folder):
    """The violations of one compaction, by kind, with an example of each."""
    name, kind, path, text = case
    out = tempfile.mktemp(dir=folder)
    strategy, *options = strategy.split(" --")
    command = [program, "compact", path, "--from", kind, "--keep", goal, "--strategy", strategy, "-o", out]
    try:
        done = subprocess.run(command + ["--" + option for option in options], capture_output=True, text=True, timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return {"time": 1}, {"time": f"more than {SECONDS_MAX} s"}
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [""]
        # A text that is none of the format, or a format that cannot hold the result, is refused.
        if done.returncode == 2 or "write it in another format" in said[0]:
            return {REFUSED: 1}, {REFUSED: said[0].replace(path, "")[:160]}
        return {f"exit-{done.returncode}": 1}, {f"exit-{done.returncode}": said[0].replace(path, "")[:160]}
    try:
        with open(out, encoding="utf-8", newline="") as file:
            written = file.read()
        os.remove(out)
        if kind in ("claude-code", "codex", "pi", "goose"):
            lines(written)
        else:
            json.loads(written.lstrip("\ufeff"), strict=False) if is_document(text) else lines(written)
        new = READERS[kind](written)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return {"not-readable": 1}, {"not-readable": f"{type(error).__name__}: {error}"[:160]}
    found, example = Checker(READERS[kind](text), new, bool(options)).check()
    if kind in ("claude-code", "pi"):
        for lost in parents(text, written):
            found["parent"] += 1
            example.setdefault("parent", f"{lost} is named and not there")
    return found, example


def is_document(text):
    try:
        json.loads(text.lstrip("\ufeff"), strict=False)
        return True
    except ValueError:
        return False


def conversations(path, takes_all):
    """The conversations of a file, each as a text of its own: (name, format, text)."""
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    name = os.path.join(os.path.basename(os.path.dirname(path)), os.path.basename(path))
    kind = format_of(text)
    found = []
    if kind and READERS[kind](text):
        return [(name, kind, text)]
    try:
        # Lists of runs, and recorded requests.
        inner = [(raw, "/traj" if "traj" in it else "") for raw, it in elements(text)] if text.lstrip()[:1] == "[" else [(raw, "/body") for raw, _ in lines(text)]
    except (ValueError, TypeError):
        return []
    for number, (raw, key) in enumerate(inner):
        if key:
            at = member(raw, 0, key[1:])
            if at is None:
                continue
            value, end = json.JSONDecoder(strict=False).raw_decode(raw, at)
            raw = raw[at:end]
        kind = format_of(raw)
        if kind and len(READERS[kind](raw)) > 3:
            found.append((f"{name}#{number}", kind, raw))
    found.sort(key=lambda it: -len(it[2]))
    return found[: CONVERSATIONS_MAX if takes_all else CONVERSATIONS_MAX_SHORT]


def cases(folders, takes_all):
    for name, text in made.texts():
        yield f"made/{name}", name, text
    for folder in folders:
        for root, _, names in sorted(os.walk(folder)):
            for path in sorted(os.path.join(root, name) for name in names):
                if path.endswith((".json", ".jsonl", ".traj")) and (takes_all or os.path.getsize(path) <= FILE_BYTES_MAX):
                    try:
                        yield from conversations(path, takes_all)
                    except (UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError, IndexError):
                        continue


def report(results):
    """A row for each kind of violation: how many compactions have it, how many places, and one example."""
    runs, places, example = collections.Counter(), collections.Counter(), {}
    for name, strategy, goal, (found, examples) in results:
        for kind, count in found.items():
            runs[kind] += 1
            places[kind] += count
            example.setdefault(kind, f"{name}, {strategy}, {goal}: {examples[kind]}")
    print(f"{'violation':26} {'compactions':>11} {'places':>7}  first example")
    for kind, count in runs.most_common():
        print(f"{kind:26} {count:11} {places[kind]:7}  {example[kind]}")
    return sum(runs.values()) - runs[REFUSED]


def main(program, arguments):
    takes_all, folders = "--all" in arguments, [it for it in arguments if not it.startswith("--")]
    goals, by_format, tasks = GOALS if takes_all else GOALS_SHORT, collections.Counter(), []
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(2) as pool:
        for number, (name, kind, text) in enumerate(cases(folders, takes_all)):
            path = os.path.join(work, f"{number}.json")
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            by_format[kind] += 1
            for strategy in STRATEGIES:
                for goal in goals:
                    task = pool.submit(run, program, (name, kind, path, text), strategy, goal, work)
                    tasks.append((name, strategy, goal, task))
        results = [(name, strategy, goal, task.result()) for name, strategy, goal, task in tasks]
    for name, strategy, goal, (found, examples) in results:
        for kind, count in found.items():
            if "--verbose" in arguments:
                print(f"{kind}\t{count}\t{name}\t{strategy}\t{goal}\t{examples[kind]}")
    print(f"{sum(by_format.values())} conversations ({', '.join(f'{kind} {count}' for kind, count in by_format.items())}), {len(results)} compactions")
    violations = report(results)
    print(f"sweep: {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
