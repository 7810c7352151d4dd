"""Compaction of a list of records, and the origin of each record that stays.

A record is a message as JSON in one line. The library keeps an untouched record byte for byte, so a record of the output that
equals a record of the input is that message, and its object can be given back in place of a copy.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _json
from ._errors import EpitomeError
from ._library import call

#: The member of a record that holds the number of its message. The library carries unknown members.
NUMBER = "epitome"

_SCANNER = json.JSONDecoder()


class Change(NamedTuple):
    """A record of the output that is not in the input."""

    #: The number of the message that the record was made from, if the record has the member `epitome`.
    number: Optional[int]
    record: Dict[str, Any]


class Outcome(NamedTuple):
    """The result of a compaction of records."""

    #: The output, in order: the number of an untouched record, or a changed or new record. `None` if nothing has changed.
    items: Optional[List[Union[int, Change]]]
    #: The output as text.
    text: str
    #: The standard error of the command: warnings, and the report.
    told: str


def numbered(number: int, record: str) -> str:
    """Returns `record`, a JSON object, with the number of its message as the first member."""
    comma = "" if record == "{}" else ","
    return f'{{"{NUMBER}":{number}{comma}{record[1:]}'


def compact(records: Sequence[str], options: Sequence[str]) -> Outcome:
    """Compacts records with the options of `epitome compact`."""
    # An array: not every format is read as JSON lines. A record in a line needs no scan of the output.
    text = _json.encode("[\n" + ",\n".join(records) + "\n]")
    output, told = run(text, options)
    written = output.decode("utf-8")
    return Outcome(None if output == text else origins(records, written), written, told)


def run(text: bytes, options: Sequence[str]) -> Tuple[bytes, str]:
    """Compacts a text. Returns the output, and the standard error."""
    # Exit code 1: a repair has left violations, which the report counts.
    answer = call(["compact", "-", "-o", "-", *options], text, (0, 1))
    return answer.output, answer.told


def origins(records: Sequence[str], written: str) -> List[Union[int, Change]]:
    """Returns for each record of the array `written` its origin in `records`."""
    items: List[Union[int, Change]] = []
    # Where records were left out and no more, one look at both lists is enough.
    place, count = 0, len(records)
    for record in written[2:-2].split(",\n"):
        while place < count and records[place] != record:
            place += 1
        if place == count:
            return changes(records, written)
        items.append(place)
        place += 1
    return items


def changes(records: Sequence[str], written: str) -> List[Union[int, Change]]:
    """Returns the same where records were changed or added."""
    places: Dict[str, List[int]] = {}
    for number in range(len(records) - 1, -1, -1):
        places.setdefault(records[number], []).append(number)
    items: List[Union[int, Change]] = []
    behind = -1
    for record in split(written, places):
        numbers = places.get(record)
        # Equal records: the first one behind the record before it.
        while numbers and numbers[-1] <= behind:
            numbers.pop()
        if numbers:
            behind = numbers.pop()
            items.append(behind)
        else:
            items.append(change(_json.loads(record)))
    return items


def split(written: str, places: Dict[str, List[int]]) -> List[str]:
    """Splits an array into its records. Untouched records are not scanned."""
    found = []
    for line in written.split("\n"):
        if line in places:
            found.append(line)
        elif line.endswith(",") and line[:-1] in places:
            found.append(line[:-1])
        else:
            scanned = scan(line)
            if scanned is None:
                # A record in several lines.
                return scan(written) or []
            found += scanned
    return found


def scan(text: str) -> Optional[List[str]]:
    """Returns the JSON values in a text, or `None` if one of them is not whole."""
    at = 0
    found = []
    while at < len(text):
        if text[at] in "[], \t\r\n":
            at += 1
            continue
        try:
            _, end = _SCANNER.raw_decode(text, at)
        except ValueError:
            return None
        found.append(text[at:end])
        at = end
    return found


def change(record: Any) -> Change:
    """Returns a changed or new record without its number."""
    if not isinstance(record, dict):
        raise EpitomeError(f"the library returned a record that is a {type(record).__name__}")
    number = record.pop(NUMBER, None)
    return Change(number if isinstance(number, int) else None, record)
