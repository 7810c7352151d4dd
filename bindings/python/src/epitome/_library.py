"""The C library: one function that runs a command of the program `epitome` in memory."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import NamedTuple, Optional, Sequence

from ._errors import BadInput, EpitomeError, error_of

_FILES = {"win32": "epitome_c.dll", "darwin": "libepitome_c.dylib"}
_library: Optional[ctypes.CDLL] = None
_lock = threading.Lock()


class Answer(NamedTuple):
    """The results of a command."""

    code: int
    output: bytes
    diagnostics: str


class _RawAnswer(ctypes.Structure):
    _fields_ = [
        ("output", ctypes.c_void_p),
        ("output_len", ctypes.c_size_t),
        ("diagnostics", ctypes.c_void_p),
        ("diagnostics_len", ctypes.c_size_t),
    ]


def call(arguments: Sequence[str], text: bytes = b"", allowed: Sequence[int] = (0,)) -> Answer:
    """Runs a command, with `text` as its standard input.

    The global interpreter lock is free during the call, and any number of threads may call at the same time. An exit code that
    is not in `allowed` raises the error that belongs to it.
    """
    library = _library if _library is not None else _load()
    count = len(arguments)
    pointers = (ctypes.c_char_p * count)(*[_argument(argument) for argument in arguments])
    raw = _RawAnswer()
    code = library.epitome_call(pointers, count, text, len(text), ctypes.byref(raw))
    try:
        output = ctypes.string_at(raw.output, raw.output_len) if raw.output else b""
        diagnostics = ctypes.string_at(raw.diagnostics, raw.diagnostics_len) if raw.diagnostics else b""
    finally:
        library.epitome_answer_free(ctypes.byref(raw))
    answer = Answer(code, output, diagnostics.decode("utf-8", "replace"))
    if code not in allowed:
        raise error_of(code, answer.diagnostics)
    return answer


def version() -> str:
    """Returns the version of the library.

    >>> version().count(".")
    2
    """
    library = _library if _library is not None else _load()
    raw: bytes = library.epitome_version()
    return raw.decode("utf-8")


def library_path() -> Path:
    """Returns the path of the library: the environment variable `EPITOME_LIBRARY`, or the file beside this module."""
    given = os.environ.get("EPITOME_LIBRARY")
    return Path(given) if given else Path(__file__).with_name(_FILES.get(sys.platform, "libepitome_c.so"))


def _argument(argument: str) -> bytes:
    if "\0" in argument:
        raise BadInput(f"a zero byte in the option {argument.lstrip('-')!r}: remove it")
    try:
        return argument.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInput(f"a lone surrogate in the option {argument.lstrip('-')!r}: options are UTF-8") from error


def _load() -> ctypes.CDLL:
    global _library
    with _lock:
        if _library is not None:
            return _library
        path = library_path()
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            hint = "install the package with pip, or set EPITOME_LIBRARY to the path of the library"
            raise EpitomeError(f"the library {path} could not be loaded: {error}; {hint}") from error
        library.epitome_call.restype = ctypes.c_int32
        library.epitome_call.argtypes = [
            ctypes.POINTER(ctypes.c_char_p),
            ctypes.c_size_t,
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.POINTER(_RawAnswer),
        ]
        library.epitome_answer_free.restype = None
        library.epitome_answer_free.argtypes = [ctypes.POINTER(_RawAnswer)]
        library.epitome_version.restype = ctypes.c_char_p
        library.epitome_version.argtypes = []
        _library = library
        return library
