"""The commands of the program as functions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import (
    Any,
    Dict,
    Generic,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
    cast,
)

from . import _json, _options, _records
from ._errors import BadInput
from ._library import call
from ._options import Amount

#: A transcript: a text in any format that the program reads, a list of messages, or a document such as a request.
Transcript = Union[str, bytes, Sequence[Mapping[str, Any]], Mapping[str, Any]]

T = TypeVar("T", bound=Transcript)

#: The members under which a document holds its messages.
_LISTS = ("messages", "input", "contents", "history", "output")


@dataclass(frozen=True)
class Compacted(Generic[T]):
    """A compacted transcript, and the report on it."""

    #: The output, of the type of the input. In a list, an untouched message is the same object as in the input.
    value: T
    #: The output as text.
    text: str
    #: Whether the output differs from the input.
    changed: bool
    _diagnostics: str = field(repr=False)

    @cached_property
    def report(self) -> Dict[str, Any]:
        """The report of `epitome compact --json`, with its names."""
        documents, _ = _json.reports(self._diagnostics)
        return cast(Dict[str, Any], documents[-1])

    @property
    def warnings(self) -> List[str]:
        """The warnings of the program, one for each line."""
        return _json.reports(self._diagnostics)[1]

    @property
    def messages(self) -> List[Any]:
        """The messages of the output: a list, the list of a document, or the values of JSON lines."""
        if isinstance(self.value, list):
            return self.value
        return messages_of(self.text)


@dataclass(frozen=True)
class Converted:
    """A transcript in another format."""

    text: str
    #: One entry for each thing without a counterpart in the other format: `message` (its number), `kind`, `what`, `reason`.
    losses: List[Dict[str, Any]]

    @property
    def document(self) -> Any:
        """The output as a value."""
        return _json.loads(self.text)

    @property
    def messages(self) -> List[Any]:
        """The messages of the output."""
        return messages_of(self.text)


def compact(
    messages: T,
    *,
    keep: Optional[Union[float, str]] = None,
    window: Optional[int] = None,
    reserve: Optional[int] = None,
    trigger: Optional[Amount] = None,
    goal: Optional[Amount] = None,
    strategy: Optional[str] = None,
    model: Optional[str] = None,
    tokenizer: Optional[str] = None,
    pins: Iterable[Union[int, str]] = (),
    format: Optional[str] = None,
    to: Optional[str] = None,
    repair: bool = False,
    profile: Optional[str] = None,
) -> Compacted[T]:
    """Compacts a transcript so that the next request fits its budget. The input is not changed.

    A call of a tool and its results stay together or go together. An untouched message stays byte for byte.

    `messages`: a text in any format that the program reads, a list of messages, or a document such as a request.
    `keep`: the share of the tokens to keep, 0.3 or "30%". With `keep` or `goal`, the compaction is due now.
    `window`: the size of the model's context in tokens; 128,000 if neither `window` nor `model` is given.
    `reserve`: the tokens that stay free for the answer; an eighth of the window, at most 8,192.
    `trigger`: the size above which a compaction is due, in tokens, or as a share of `window - reserve`; 78 % of the window.
    `goal`: the size to reach, in tokens or as such a share; half of the trigger.
    `strategy`: the strategies in their order, such as "tool-results:keep=5,truncate"; "truncate".
    `model`: a name such as "gpt-4o", for the window, the reserve, and the token counter.
    `tokenizer`: "estimate", "o200k_base", "cl100k_base" or "o200k_harmony".
    `pins`: messages that stay: a number from 0, a range "3-5", "id:ID" of a call, "source:NAME".
    `format`: the format of the input; detected if not given.
    `to`: the format of the output; that of the input if not given. A list then becomes a document.
    `repair`: whether the output is made legal for `profile`, a provider such as "anthropic".

    Raises `BadInput`, `Infeasible` if the protected messages do not fit the window, and `Unfaithful`.

    >>> said = [{"role": "user", "content": f"Question {n}: " + "why? " * 50} for n in range(40)]
    >>> done = compact(said, keep=0.3)
    >>> len(done.messages) < 14, done.messages[-1] is said[-1], done.changed
    (True, True, True)
    >>> compact(said, window=128_000).changed
    False
    """
    options = ["--json"]
    options += _options.arguments(
        keep=keep,
        window=window,
        reserve=reserve,
        trigger=trigger,
        goal=goal,
        strategy=strategy,
        model=model,
        tokenizer=tokenizer,
        pins=pins,
    )
    options += _reader(format)
    options += [f"--to={to}"] if to is not None else []
    options += [f"--profile={profile}"] if profile is not None else []
    options += ["--repair"] if repair else []
    if isinstance(messages, (str, bytes, Mapping)):
        return _compact_text(messages, options)
    said = listed(messages)
    outcome = _records.compact(records_of(said), options)
    if to is not None:
        value: Any = _json.loads(outcome.text)
    elif outcome.items is None:
        value = list(said)
    else:
        value = [said[item] if isinstance(item, int) else item.record for item in outcome.items]
    return Compacted(value, outcome.text, outcome.items is not None, outcome.diagnostics)


def stats(messages: Transcript, *, tokenizer: Optional[str] = None, format: Optional[str] = None) -> Dict[str, Any]:
    """Returns the statistics of a transcript, with the names of `epitome stats --json`.

    `tokenizer` is the counter of the tokens; "o200k_base" if not given. The report has the estimate too.

    >>> stats([{"role": "user", "content": "Hello"}])["messages"]
    1
    """
    options = [f"--tokenizer={tokenizer}"] if tokenizer is not None else []
    answer = call(["stats", "-", "--json", *_reader(format), *options], text_of(messages))
    return cast(Dict[str, Any], _json.loads(answer.output.decode("utf-8")))


def count(messages: Transcript, *, tokenizer: str = "estimate", format: Optional[str] = None) -> int:
    """Returns the tokens of a transcript, by the counter that compactions use.

    A text that is not a transcript is counted alone, without the tokens of a message around it. `tokenizer` is as for `compact`.

    >>> count("Hello, world", tokenizer="o200k_base")
    3
    """
    if isinstance(messages, str) and format is None:
        try:
            return _count(messages, tokenizer, None)
        except BadInput:
            alone = _count([{"role": "user", "content": messages}], tokenizer, "openai-chat")
            # The tokens around a message are those of an empty one.
            return alone - _count([{"role": "user", "content": ""}], tokenizer, "openai-chat")
    return _count(messages, tokenizer, format)


def validate(
    messages: Transcript, *, profile: Optional[str] = None, format: Optional[str] = None
) -> List[Dict[str, Any]]:
    """Returns every breach of the rules of a provider; an empty list for a legal transcript.

    `profile` is the provider, such as "openai-chat" or "anthropic"; that of the format if not given.

    >>> validate([{"role": "tool", "tool_call_id": "c", "content": "4"}], format="openai-chat") != []
    True
    """
    options = [f"--profile={profile}"] if profile is not None else []
    answer = call(["validate", "-", "--json", *_reader(format), *options], text_of(messages), (0, 1))
    return cast(List[Dict[str, Any]], _json.loads(answer.output.decode("utf-8"))["violations"])


def repair(messages: T, *, profile: Optional[str] = None, format: Optional[str] = None) -> Compacted[T]:
    """Makes a transcript legal for a provider. Only what breaks a rule is left out.

    A result without a call is left out, and a call without a result gets an aborted one.

    >>> call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    >>> asked = [{"role": "user", "content": "Which files?"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    >>> done = repair([*asked, {"role": "user", "content": "And now?"}])
    >>> [message["role"] for message in done.messages]
    ['user', 'assistant', 'tool', 'user']
    """
    # No transcript is as large as this window.
    return compact(messages, window=_HUGE, trigger=_HUGE // 2, repair=True, profile=profile, format=format)


def convert(messages: Transcript, *, to: str, format: Optional[str] = None) -> Converted:
    """Returns a transcript in another format, and the list of its losses.

    >>> done = convert([{"role": "user", "content": "Hello"}], to="gemini")
    >>> done.document["contents"], done.losses
    ([{'role': 'user', 'parts': [{'text': 'Hello'}]}], [])
    """
    answer = call(["convert", "-", f"--to={to}", "--json", *_reader(format)], text_of(messages))
    documents, _ = _json.reports(answer.diagnostics)
    losses = documents[0]["losses"] if documents else []
    return Converted(answer.output.decode("utf-8"), losses)


def detect(messages: Transcript) -> str:
    """Returns the name of the format of a transcript.

    >>> detect('{"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}')
    'gemini'
    """
    return cast(str, stats(messages, tokenizer="estimate")["format"])


def text_of(messages: Transcript) -> bytes:
    """Returns a transcript as the text that the library reads."""
    if isinstance(messages, bytes):
        return messages
    if isinstance(messages, str):
        return _json.encode(messages)
    if isinstance(messages, Mapping):
        return _json.encode(_json.dump(_plain(messages)))
    return _json.encode_list(records_of(listed(messages)))


def records_of(messages: Sequence[Any]) -> List[str]:
    """Returns each message as JSON."""
    return [_json.dump(_plain(message), f"message {number}") for number, message in enumerate(messages)]


def messages_of(text: str) -> List[Any]:
    """Returns the messages in a text: those of a list, of a document, or of JSON lines."""
    text = text.lstrip("\ufeff")
    try:
        document = json.loads(text)
    except ValueError:
        return _json.lines(text)
    if isinstance(document, list):
        return document
    for name in _LISTS:
        if isinstance(document, dict) and isinstance(document.get(name), list):
            return cast(List[Any], document[name])
    return [document]


_HUGE = 1 << 40


def _reader(format: Optional[str]) -> List[str]:
    return [f"--from={format}"] if format is not None else []


def listed(messages: Any) -> Sequence[Any]:
    """Returns messages as a list. Raises `BadInput` for a value that is no transcript."""
    if isinstance(messages, (list, tuple)):
        return messages
    if isinstance(messages, (bytearray, memoryview)) or not isinstance(messages, Iterable):
        raise BadInput(f"messages is a {type(messages).__name__}: give a list of messages, a dictionary, a text or bytes")
    return list(messages)


def _plain(value: Any) -> Any:
    """Returns a mapping, or an object of a client that has `model_dump`, as a dictionary, which is what is written as JSON."""
    if isinstance(value, (dict, str)):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) else value


def _count(messages: Transcript, tokenizer: str, format: Optional[str]) -> int:
    options = ["--json", f"--tokenizer={tokenizer}", f"--window={_HUGE}", f"--trigger={_HUGE // 2}", *_reader(format)]
    answer = call(["compact", "-", *options], text_of(messages))
    return int(_json.loads(answer.output.decode("utf-8"))["tokens_before"])


def _compact_text(messages: Any, options: List[str]) -> Compacted[Any]:
    text = text_of(messages)
    output, diagnostics = _records.run(text, options)
    written = output.decode("utf-8")
    value: Any = written
    if isinstance(messages, bytes):
        value = output
    elif not isinstance(messages, str):
        value = _json.loads(written)
    return Compacted(value, written, output != text, diagnostics)
