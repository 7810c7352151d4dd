"""The options of a compaction, as arguments of the program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Sequence, TypedDict, TypeVar, Union

from ._errors import BadInput

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")

#: Tokens (8000), a share (0.5), or either as the program writes it ("8_000", "50%").
Amount = Union[int, float, str]


class Options(TypedDict, total=False):
    """The options of a compaction, as for `epitome.compact`. Each has its default where it is `None`."""

    keep: Optional[Union[float, str]]
    window: Optional[int]
    reserve: Optional[int]
    trigger: Optional[Amount]
    goal: Optional[Amount]
    strategy: Optional[str]
    model: Optional[str]
    tokenizer: Optional[str]
    pins: Iterable[Union[int, str]]


def arguments(**options: Unpack[Options]) -> List[str]:
    """Returns the arguments for these options. Every command that compacts takes them."""
    unknown = [name for name in options if name not in Options.__annotations__]
    if unknown:
        raise BadInput(f"there is no option {unknown[0]!r}: expected {', '.join(Options.__annotations__)}")
    pins: Any = options.get("pins") or ()
    if isinstance(pins, str):
        raise BadInput(f"pins is the text {pins!r}: give a list, such as [{pins!r}]")
    if not isinstance(pins, Iterable):
        raise BadInput(f"pins is {pins!r}: give a list, such as [3]")
    written: Dict[str, Callable[[str, Any], str]] = {
        "keep": share, "window": tokens, "reserve": tokens, "trigger": amount, "goal": amount,
        "strategy": text, "model": text, "tokenizer": text,
    }
    given = [(name, options.get(name)) for name in written]
    # One argument for each option: a value may begin with a hyphen.
    return [f"--{name}={written[name](name, value)}" for name, value in given if value is not None] + [
        f"--pin={pin}" for pin in pins
    ]


def reusable(options: Options) -> Options:
    """Returns the options with a list of pins, which an iterator would have once only."""
    pins = options.get("pins")
    if not isinstance(pins, Iterable) or isinstance(pins, str):
        return options
    return {**options, "pins": list(pins)}


def renumbered(options: Options, numbers: Sequence[int]) -> Options:
    """Returns the options with pins by places in a list, for pins by the numbers of its messages."""
    pins: List[Union[int, str]] = []
    for pin in options.get("pins") or ():
        ends = str(pin).split("-")
        if len(ends) <= 2 and all(end.isdecimal() for end in ends):
            pins += [place for place, number in enumerate(numbers) if int(ends[0]) <= number <= int(ends[-1])]
        else:
            pins.append(pin)
    return {**options, "pins": pins}


def without_pins_ahead(options: Options, compact: Callable[[Options], T]) -> T:
    """Compacts without the pins of messages that the history does not have yet: it may be growing."""
    while True:
        try:
            return compact(options)
        except BadInput as error:
            ahead = _PIN_AHEAD.match(str(error))
            pins = list(options.get("pins") or ())
            left = [pin for pin in pins if not ahead or str(pin) != ahead[1]]
            if len(left) == len(pins):
                raise
            options = {**options, "pins": left}


#: The errors for a pin of a message that a list, or a session, does not have.
_PIN_AHEAD = re.compile(r"`pins` (\S+): (?:there is no such message|no message that is shown)")


def text(name: str, value: Any) -> str:
    """Returns `value` if it is a text."""
    if isinstance(value, str):
        return value
    raise BadInput(f"{name} is a {type(value).__name__}: give a text")


def share(name: str, value: Union[float, str]) -> str:
    """Returns a share of 0 to 1, or a text like 30%, as a percentage."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise BadInput(f"{name} is {value!r}: give a share, such as 0.3 or '30%'")
    return f"{value * 100:.3f}%"


def tokens(name: str, value: Union[int, float, str]) -> str:
    """Returns a number of tokens as the program writes it."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise BadInput(f"{name} is {value!r}: give a number of tokens, such as 8000")
    return str(value)


def amount(name: str, value: Amount) -> str:
    """Returns a number of tokens, or a float from 0 to 1 as a share, as the program writes it."""
    if isinstance(value, float) and value > 1:
        return tokens(name, value)
    if isinstance(value, float):
        return share(name, value)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise BadInput(f"{name} is {value!r}: give a number of tokens, such as 8000, or a share, such as 0.5")
    return str(value)
