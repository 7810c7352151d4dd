"""JSON in and out, with errors that name the fault."""

from __future__ import annotations

import json
from typing import Any, Callable, Iterable, List, Sequence, Tuple

from ._errors import BadInput, EpitomeError

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_make_encoder: Any = getattr(json.encoder, "c_make_encoder", None)
#: Writes a value in pieces. The encoder is made once: `JSONEncoder.encode` makes one for every value, which takes longer than to
#: write a short value.
_chunks: Callable[[Any, int], Iterable[str]] = (
    _make_encoder(None, _ENCODER.default, json.encoder.encode_basestring, None, ":", ",", False, False, False)
    if _make_encoder is not None
    else lambda value, _: _ENCODER.iterencode(value)
)
_DECODER = json.JSONDecoder()

#: Quotes a text as JSON. The text keeps its characters beyond ASCII.
quote: Callable[[str], str] = json.encoder.encode_basestring


def dump(value: Any, place: str = "the input") -> str:
    """Returns `value` as JSON without line breaks. `place` names the value in an error."""
    try:
        return "".join(_chunks(value, 0))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"{place} is not JSON: {error or type(error).__name__}") from error


def encode_list(records: Sequence[str]) -> bytes:
    """Returns an array of records, one in each line, in UTF-8. An array: not every format is read as JSON lines."""
    try:
        return ("[\n" + ",\n".join(records) + "\n]").encode("utf-8")
    except UnicodeEncodeError:
        for number, record in enumerate(records):
            encode(record, f"message {number} has ")
        raise


def encode(text: str, place: str = "") -> bytes:
    """Returns `text` in UTF-8. `place` names the text in an error."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        near = text[max(0, error.start - 20) : error.start]
        raise BadInput(
            f"{place}a lone surrogate {text[error.start]!r} at character {error.start}, behind {near!r}: "
            "the input is UTF-8, so replace the surrogate"
        ) from error


def loads(text: str) -> Any:
    """Returns the value of a JSON text that the library has written."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise EpitomeError(f"the library returned a text that is not JSON: {error}") from error


def lines(text: str) -> List[Any]:
    """Returns the values of JSON lines."""
    return [loads(line) for line in text.split("\n") if line.strip()]


def reports(diagnostics: str) -> Tuple[List[Any], List[str]]:
    """Splits a text on standard error into its JSON documents and its lines of plain text."""
    documents: List[Any] = []
    words: List[str] = []
    at = 0
    while at < len(diagnostics):
        end = diagnostics.find("\n", at)
        end = len(diagnostics) if end < 0 else end
        if diagnostics[at] in "{[":
            try:
                value, stop = _DECODER.raw_decode(diagnostics, at)
            except ValueError:
                pass
            else:
                documents.append(value)
                at = stop + 1
                continue
        if diagnostics[at:end].strip():
            words.append(diagnostics[at:end])
        at = end + 1
    return documents, words
