"""Compaction of a list of records, and the origin of each record that stays.

A record is a message as JSON in one line. The library keeps an untouched record byte for byte, so a record of the output that
equals a record of the input is that message, and its object can be given back in place of a copy.
"""

from __future__ import annotations

import json
from bisect import bisect
from typing import Any, Collection, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

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
    diagnostics: str


def numbered(number: int, record: str) -> str:
    """Returns `record`, a JSON object, with the number of its message as the first member."""
    comma = "" if record == "{}" else ","
    return f'{{"{NUMBER}":{number}{comma}{record[1:]}'


def compact(records: Sequence[str], options: Sequence[str], numbered: bool = False) -> Outcome:
    """Compacts records with the options of `epitome compact`. `numbered`: whether they have the numbers of their messages."""
    # A record in a line needs no scan of the output.
    text = _json.encode_list(records)
    output, diagnostics = run(text, options)
    written = output.decode("utf-8")
    if output == text:
        return Outcome(None, written, diagnostics)
    # Of equal records only the report says which one is left out.
    gone = dropped(diagnostics, len(records)) if len(set(records)) < len(records) else frozenset()
    return Outcome(origins(records, written, gone, numbered), written, diagnostics)


def dropped(diagnostics: str, count: int) -> Collection[int]:
    """Returns the numbers of the messages that a report says are left out; none where a record is not one message."""
    documents, _ = _json.reports(diagnostics)
    report = documents[-1] if documents else {}
    if report.get("messages_before") != count:
        return frozenset()
    gone: Set[int] = set()
    stays: Set[int] = set()
    for group in report.get("groups_detail", ()):
        numbers = range(group["first"], group["last"] + 1)
        (gone if group["verdict"] in "DR" else stays).update(numbers)
    # The range of a group may hold messages of another one.
    return gone - stays


def run(text: bytes, options: Sequence[str]) -> Tuple[bytes, str]:
    """Compacts a text. Returns the output, and the standard error."""
    # Exit code 1: a repair has left violations, which the report counts.
    answer = call(["compact", "-", "-o", "-", *options], text, (0, 1))
    return answer.output, answer.diagnostics


def origins(
    records: Sequence[str], written: str, gone: Collection[int] = frozenset(), numbered: bool = False
) -> List[Union[int, Change]]:
    """Returns the origin in `records` of each record of the array `written`. The numbers in `gone` are no origins."""
    items: List[Union[int, Change]] = []
    # One look at both lists is enough if no record was changed or added.
    place, count = 0, len(records)
    for record in written[2:-2].split(",\n"):
        while place < count and (records[place] != record or place in gone):
            place += 1
        if place == count:
            return changes(records, written, gone, numbered)
        items.append(place)
        place += 1
    return items


def changes(
    records: Sequence[str], written: str, gone: Collection[int], numbered: bool
) -> List[Union[int, Change]]:
    """Returns the origins as `origins` does, also of records that were changed or added."""
    places: Dict[str, List[int]] = {}
    for number, record in enumerate(records):
        if number not in gone:
            places.setdefault(record, []).append(number)
    items: List[Union[int, Change]] = []
    behind = -1
    for record in split(written, places):
        numbers = places.get(record)
        if numbers:
            # Equal records: the first one behind the record before it. A record that a late result has overtaken is not behind it.
            at = bisect(numbers, behind)
            behind = numbers.pop(at if at < len(numbers) else 0)
            items.append(behind)
        else:
            items.append(change(_json.loads(record), numbered))
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


def change(record: Any, numbered: bool) -> Change:
    """Returns a changed or new record without its number. Unnumbered records keep a member of that name, which is the caller's."""
    if not isinstance(record, dict):
        raise EpitomeError(f"the library returned a record that is a {type(record).__name__}")
    return Change(record.pop(NUMBER, None) if numbered else None, record)
