"""The functions for asyncio: each runs in a thread, and the event loop goes on meanwhile.

>>> import asyncio
>>> done = asyncio.run(compact([{"role": "user", "content": "Hello"}], keep="100%"))
>>> done.changed
False

`in_thread` does the same for a method, such as `await in_thread(session.append)(messages)`. A call that has begun cannot be
cancelled: if its task is cancelled, the call goes on and its result is dropped.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any, Awaitable, Callable, TypeVar

from . import _functions

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")
R = TypeVar("R")


def in_thread(function: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Returns a coroutine function that calls `function` in a thread.

    >>> asyncio.run(in_thread(len)("four"))
    4
    """

    @functools.wraps(function)
    async def call(*positional: Any, **named: Any) -> R:
        return await asyncio.to_thread(function, *positional, **named)

    call.__doc__ = f"As `epitome.{getattr(function, '__name__', 'function')}`, in a thread."
    return call


compact = in_thread(_functions.compact)
convert = in_thread(_functions.convert)
count = in_thread(_functions.count)
detect = in_thread(_functions.detect)
repair = in_thread(_functions.repair)
stats = in_thread(_functions.stats)
validate = in_thread(_functions.validate)
