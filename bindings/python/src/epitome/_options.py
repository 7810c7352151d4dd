"""The options of a compaction, as arguments of the program."""

from __future__ import annotations

from typing import Any, Iterable, List, Optional, Union

from ._errors import BadInput

#: Tokens (8000), a share (0.5), or either as the program writes it ("8_000", "50%").
Amount = Union[int, float, str]


def arguments(
    *,
    keep: Optional[Union[float, str]] = None,
    window: Optional[int] = None,
    reserve: Optional[int] = None,
    trigger: Optional[Amount] = None,
    goal: Optional[Amount] = None,
    strategy: Optional[str] = None,
    model: Optional[str] = None,
    tokenizer: Optional[str] = None,
    pins: Optional[Iterable[Union[int, str]]] = (),
) -> List[str]:
    """Returns the arguments for these options. Every command that compacts takes them."""
    if isinstance(pins, str):
        raise BadInput(f"pins is the text {pins!r}: give a list, such as [{pins!r}]")
    if isinstance(pins, int):
        raise BadInput(f"pins is the number {pins}: give a list, such as [{pins}]")
    values = [
        ("--keep", None if keep is None else share("keep", keep)),
        ("--window", None if window is None else tokens("window", window)),
        ("--reserve", None if reserve is None else tokens("reserve", reserve)),
        ("--trigger", None if trigger is None else amount("trigger", trigger)),
        ("--goal", None if goal is None else amount("goal", goal)),
        ("--strategy", strategy),
        ("--model", model),
        ("--tokenizer", tokenizer),
        *[("--pin", str(pin)) for pin in pins or ()],
    ]
    # One argument for each option: a value may begin with a hyphen.
    return [f"{name}={text(name, value)}" for name, value in values if value is not None]


def text(name: str, value: Any) -> str:
    """Returns `value` if it is a text."""
    if isinstance(value, str):
        return value
    raise BadInput(f"{name.lstrip('-')} is a {type(value).__name__}: give a text")


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
