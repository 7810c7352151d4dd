"""Compaction of a list of a framework's own objects."""

from __future__ import annotations

import operator
import re
import warnings
from typing import (
    Any,
    Dict,
    Generic,
    List,
    NamedTuple,
    Optional,
    Sequence,
    TypeVar,
    Union,
)

from .. import _json, _options, _records
from .._errors import BadInput, EpitomeError
from .._options import Options

M = TypeVar("M")


class Form(Generic[M]):
    """The form of a framework's messages as records."""

    #: The name of the format, as `--from` takes it.
    format: str
    #: Whether `dump` writes the number of a message.
    numbered = True

    def dump(self, message: M, number: int) -> str:
        """Returns a message as a JSON object in one line, with its number under `epitome`."""
        raise NotImplementedError

    def changed(self, message: M, record: Dict[str, Any]) -> M:
        """Returns a copy of a message with the changes of its record."""
        raise NotImplementedError

    def built(self, record: Dict[str, Any]) -> M:
        """Returns a new message."""
        raise NotImplementedError


class _Checkpoint(NamedTuple):
    """A list below its trigger, and its size."""

    messages: Sequence[Any]
    #: The most tokens that it can have.
    tokens: int
    trigger: int


class Compactor(Generic[M]):
    """Compacts lists of messages with fixed options.

    It remembers the latest list below its trigger. Where the next list begins with the same objects, only the new messages are looked
    at until they may reach the trigger. So a message that was handed in is not to be changed in place. A pin whose message the list does
    not have yet is left out: the list may be growing.
    """

    def __init__(self, form: Form[M], options: Options) -> None:
        self._form = form
        self._options = _options.reusable(options)
        # Wrong options are an error here, and not at the first message.
        _options.arguments(**self._options)
        self._checkpoint: Optional[_Checkpoint] = None

    def items(
        self, messages: Sequence[M], numbers: Optional[Sequence[int]] = None
    ) -> Optional[List[Union[int, _records.Change]]]:
        """Returns the origin of each message that stays, or `None` if nothing changes. Pins name messages by `numbers`, if they are given."""
        if not messages or self._is_surely_below(messages):
            return None
        dump = self._form.dump
        try:
            records = [dump(message, number) for number, message in enumerate(messages)]
        except (AttributeError, KeyError, TypeError, BadInput):
            records = [self._dumped(message, number) for number, message in enumerate(messages)]
        outcome = self._compacted(records, numbers)
        self._checkpoint = _checkpoint_of(messages, outcome)
        _warn_of_size(outcome.diagnostics)
        return outcome.items

    def _compacted(self, records: List[str], numbers: Optional[Sequence[int]]) -> _records.Outcome:
        """Compacts the records, without the pins of messages that the list does not have yet."""
        fixed = [f"--from={self._form.format}", "--json"]
        return _options.without_pins_ahead(
            self._options if numbers is None else _options.renumbered(self._options, numbers),
            lambda options: _records.compact(records, [*fixed, *_options.arguments(**options)], self._form.numbered),
        )

    def _is_surely_below(self, messages: Sequence[M]) -> bool:
        """Returns whether the list begins with the list of the checkpoint, and its new messages cannot reach the trigger."""
        checkpoint = self._checkpoint
        if checkpoint is None or not len(checkpoint.messages) <= len(messages):
            return False
        if not all(map(operator.is_, checkpoint.messages, messages)):
            return False
        tokens = checkpoint.tokens
        for number in range(len(checkpoint.messages), len(messages)):
            record = self._dumped(messages[number], number)
            # A token has a byte or more, but for those of pictures and files.
            tokens += len(_json.encode(record))
            if tokens > checkpoint.trigger or _MEDIA.search(record):
                return False
        self._checkpoint = _Checkpoint(list(messages), tokens, checkpoint.trigger)
        return True

    def _dumped(self, message: M, number: int) -> str:
        """Returns a message as JSON, or an error that names the message."""
        try:
            return self._form.dump(message, number)
        except BadInput as error:
            raise BadInput(f"message {number}: {error}") from error
        except (AttributeError, KeyError, TypeError) as error:
            raise BadInput(f"message {number} is no message of {self._form.format}: {error!r}") from error

    def message(self, item: Union[int, _records.Change], messages: Sequence[M]) -> M:
        """Returns the object for an item: the same object, a changed copy, or a new one."""
        if isinstance(item, int):
            return messages[item]
        try:
            if item.number is None:
                return self._form.built(item.record)
            return self._form.changed(messages[item.number], item.record)
        except EpitomeError:
            raise
        except Exception as error:
            raise EpitomeError(
                f"the strategy has made a message that {self._form.format} has no form for: {error}; try another strategy"
            ) from error

    def __call__(self, messages: Sequence[M]) -> List[M]:
        """Returns the compacted messages; a list of the same objects if nothing changes."""
        items = self.items(messages)
        return list(messages) if items is None else [self.message(item, messages) for item in items]


class DictForm(Form[Any]):
    """Messages that are dictionaries, or objects with `model_dump`. They carry no number: services refuse unknown members."""

    numbered = False

    def __init__(self, format: str) -> None:
        self.format = format

    def dump(self, message: Any, number: int) -> str:
        plain = message if isinstance(message, dict) else message.model_dump(exclude_none=True)
        return _json.dump(plain, "its content")

    def changed(self, message: Any, record: Dict[str, Any]) -> Any:
        return record

    def built(self, record: Dict[str, Any]) -> Any:
        return record


class DictCompactor(Compactor[Any]):
    """Compacts lists of dictionaries in one format."""

    def __init__(self, format: str, options: Options) -> None:
        super().__init__(DictForm(format), options)


_MEDIA = re.compile("image|audio|video|file|document|binary|data:|uri")


#: A size in a report. The whole report of a long list takes long to read.
_SIZE = re.compile(r'"(tokens_after|window|reserve)": ?(\d+)')


def _warn_of_size(diagnostics: str) -> None:
    """Warns if the messages of a report do not fit the window beside the answer."""
    sizes: Dict[str, int] = {}
    for found in _SIZE.finditer(diagnostics):
        sizes.setdefault(found[1], int(found[2]))
        if len(sizes) == 3:
            break
    else:
        return
    tokens, limit = sizes["tokens_after"], sizes["window"] - sizes["reserve"]
    if tokens > limit:
        warnings.warn(
            f"the strategy has left {tokens} tokens, and the window has room for {limit}: add `truncate` behind it, or use `agent`",
            RuntimeWarning,
            stacklevel=2,
        )


def _checkpoint_of(messages: Sequence[Any], outcome: _records.Outcome) -> Optional[_Checkpoint]:
    """Returns the size of a list that was below its trigger."""
    if outcome.items is not None:
        return None
    documents, _ = _json.reports(outcome.diagnostics)
    report = documents[-1] if documents else {}
    trigger = report.get("budget", {}).get("trigger")
    if not isinstance(trigger, int) or report["tokens_before"] > trigger:
        return None
    return _Checkpoint(list(messages), report["tokens_before"], trigger)


def text(value: Any) -> str:
    """Returns a value as JSON."""
    return _json.quote(value) if isinstance(value, str) else _json.dump(value, "its content")
