"""The errors of the package, one class for each exit code of the program `epitome`."""

from __future__ import annotations


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
    message = diagnostics.strip().partition("\n\nUsage: ")[0]
    message = message[len("epitome: ") :] if message.startswith("epitome: ") else message
    known = {kind.code: kind for kind in (BadInput, Infeasible, StoreFailed, Unfaithful)}
    kind = BadInput if code == -1 else known.get(code, EpitomeError)
    error = kind(message or f"the library returned {code}")
    error.code = code
    return error
