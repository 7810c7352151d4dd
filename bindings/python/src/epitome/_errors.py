"""The errors of the package, one class for each exit code of the program `epitome`."""

from __future__ import annotations

import re


class EpitomeError(Exception):
    """An error of Epitome. The text is the message of the program: the fault, its place, and what to do.

    `code` is the exit code of the program.
    """

    code = -2


class BadInput(EpitomeError, ValueError):
    """The input or an option is wrong. Nothing was changed."""

    code = 2


class Infeasible(EpitomeError):
    """The protected messages do not fit the window: raise `window`, lower `reserve`, or remove pins."""

    code = 3


class StoreFailed(EpitomeError, OSError):
    """A file or a store failed. The store holds the same as before the call; the call can be repeated."""

    code = 4


class Unfaithful(EpitomeError):
    """The output reads back differently from the plan. No output was written. This is a fault of Epitome: please report it."""

    code = 5


def error_of(code: int, diagnostics: str) -> EpitomeError:
    """Returns the error for an exit code and a text on standard error."""
    # Behind a blank line stands the usage of the program.
    message = re.split("\n\n(?:Usage: |For more information)", diagnostics.strip())[0]
    message = message[len("epitome: ") :] if message.startswith("epitome: ") else message
    for of_program, here in _REMEDIES.items():
        message = message.replace(of_program, here)
    message = _OPTION.sub(_parameter, message)
    known = {kind.code: kind for kind in (BadInput, Infeasible, StoreFailed, Unfaithful)}
    kind = BadInput if code == -1 else known.get(code, EpitomeError)
    error = kind(message or f"the library returned {code}")
    error.code = code
    return error


#: Remedies that the program has and this package has not, with those in their place.
_REMEDIES = {
    "name one with --summarizer URL": "this package calls none, so take another strategy",
    ", or a table with a row for it (--window and --tokenizer, or --models FILE)": ", with `window` and `tokenizer`",
}

#: An option of the program that is a parameter of this package, as an error names it.
_OPTION = re.compile(
    "'?--(as|at|from|goal|keep|key-file|model|pin|profile|repair|reserve|revision|session|store|strategy|to|tokenizer|trigger|turns|window)"
    "(?![a-z-])(?: <[^>]*>| [A-Z]{2,})?'?"
)
_PARAMETERS = {"as": "id", "from": "format", "key-file": "key_file", "pin": "pins", "session": "id"}


def _parameter(option: "re.Match[str]") -> str:
    """Returns the parameter for an option, as an error names it."""
    return f"`{_PARAMETERS.get(option[1], option[1])}`"
