"""Compaction of a list of a framework's own objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Generic, Iterable, List, Optional, Sequence, TypedDict, TypeVar, Union

from .. import _json, _options, _records
from .._errors import BadInput, EpitomeError

if TYPE_CHECKING:
    from .._options import Amount

M = TypeVar("M")


class Options(TypedDict, total=False):
    """The options of a compaction, as for `epitome.compact`."""

    keep: Union[float, str]
    window: int
    reserve: int
    trigger: Amount
    goal: Amount
    strategy: str
    model: str
    tokenizer: str
    pins: Iterable[Union[int, str]]


class Form(Generic[M]):
    """The form of a framework's messages as records."""

    #: The name of the format, as `--from` takes it.
    format: str

    def dump(self, message: M, number: int) -> str:
        """Returns a message as a JSON object in one line, with its number under `epitome`."""
        raise NotImplementedError

    def changed(self, message: M, record: Dict[str, Any]) -> M:
        """Returns a copy of a message with the changes of its record."""
        raise NotImplementedError

    def built(self, record: Dict[str, Any]) -> M:
        """Returns a new message."""
        raise NotImplementedError


class Compactor(Generic[M]):
    """Compacts lists of messages with fixed options."""

    def __init__(self, form: Form[M], options: Options) -> None:
        self._form = form
        self._arguments = [f"--from={form.format}", *_options.arguments(**options)]

    def items(self, messages: Sequence[M]) -> Optional[List[Union[int, _records.Change]]]:
        """Returns the origin of each message that stays, or `None` if nothing changes."""
        if not messages:
            return None
        dump = self._form.dump
        try:
            records = [dump(message, number) for number, message in enumerate(messages)]
        except (AttributeError, KeyError, TypeError, BadInput):
            records = [self._dumped(message, number) for number, message in enumerate(messages)]
        return _records.compact(records, self._arguments).items

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


def text(value: Any) -> str:
    """Returns a value as JSON."""
    return _json.quote(value) if isinstance(value, str) else _json.dump(value, "its content")
