"""Conversations in a store. Their log keeps every message that a compaction hides."""

from __future__ import annotations

import hashlib
import os
import warnings
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, cast

from . import _json, _options
from ._errors import BadInput, StoreFailed
from ._functions import Transcript, listed, messages_of, text_of
from ._library import call
from ._options import Options

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Session:
    """A conversation in a store.

    The messages of the next request are written anew in the format that is asked for: members that the format of Epitome's messages
    does not have, such as `cache_control`, are in the log and not in the request. The log of a session keeps every message as it was appended. A compaction hides messages from the next request, and `undo`
    shows them again. Every method reads the store anew, so a restart loses nothing, and any number of objects and processes can
    use one session.

    `store`: "sqlite:PATH", a file, or "jsonl:DIR", a directory. `id`: the name of the session. `key_file`: a file with the key of
    an encrypted store, 64 hexadecimal digits.

    The methods raise `StoreFailed` if the store fails, and `BadInput` for wrong input.

    >>> import tempfile, os
    >>> folder = tempfile.TemporaryDirectory()
    >>> session = Session("sqlite:" + os.path.join(folder.name, "chats.db"), "demo")
    >>> said = [{"role": "user", "content": f"Question {n}: " + "why? " * 50} for n in range(40)]
    >>> session.append(said)
    40
    >>> report = session.compact(goal=500)
    >>> len(session.messages()) < 40, len(session.log())
    (True, 40)
    >>> session.undo()["live_messages"]
    40
    >>> folder.cleanup()
    """

    def __init__(self, store: str, id: str, *, key_file: Optional[str] = None) -> None:
        self.store = _options.text("store", store)
        self.id = _options.text("id", id)
        self.key_file = key_file

    def __repr__(self) -> str:
        return f"Session({self.store!r}, {self.id!r})"

    def append(self, messages: Transcript, *, format: Optional[str] = None, tokenizer: str = "estimate") -> int:
        """Appends messages, in any format that the program reads, and returns the number of messages in the log.

        An empty list appends nothing.
        """
        if not isinstance(messages, (str, bytes, Mapping)):
            messages = listed(messages)
            if not messages:
                row = self._row()
                return row["messages"] if row else 0
        reader = [f"--from={format}"] if format is not None else []
        return int(self._report("import", "-", "--append", f"--tokenizer={tokenizer}", *reader, text=text_of(messages))["messages"])

    def messages(self, to: str = "openai-chat") -> List[Any]:
        """Returns the messages of the next request, in the format `to`; an empty list for a new session.

        Anthropic and Gemini have the system prompt beside the messages: `document` returns both. A warning says so if there is one.
        """
        row = self._row()
        if not row or not row["live_messages"]:
            return []
        text = self.text(to)
        beside = [name for name in ("system", "systemInstruction") if name in _members(text)]
        if beside:
            warnings.warn(f"the request has {beside[0]!r} beside its messages: document({to!r}) returns both", stacklevel=2)
        return messages_of(text)

    def document(self, to: str = "openai-chat") -> Dict[str, Any]:
        """Returns the part of the next request that holds the conversation, in the format `to`: `messages`, and `system` for Anthropic;
        `contents` and `systemInstruction` for Gemini; `input` for Responses. Raises `BadInput` for a session that shows no message.
        """
        return _members(self.text(to))

    def text(self, to: str = "openai-chat") -> str:
        """Returns the next request as a text in the format `to`. Raises `BadInput` for a session that shows no message."""
        row = self._row()
        if row is None or not row["live_messages"]:
            raise BadInput(f"the session {self.id!r} shows no message: append messages, or undo the latest rewind")
        return self._call("export", "-o", "-", f"--to={to}").decode("utf-8")

    def compact(self, **options: Unpack[Options]) -> Dict[str, Any]:
        """Compacts the session if a compaction is due, and returns the report.

        The options are those of `epitome.compact`, from `keep` to `pins`; the numbers of `pins` are those of the log. Raises
        `Infeasible` too.
        """
        return self._report("compact", *_options.arguments(**options))

    def undo(self, revision: Optional[int] = None) -> Dict[str, Any]:
        """Undoes the latest compaction or rewind, or the one of this revision, and returns the report."""
        return self._report("uncompact", *([] if revision is None else [f"--revision={revision}"]))

    def rewind(self, *, at: Optional[int] = None, turns: Optional[int] = None) -> Dict[str, Any]:
        """Hides the message with the number `at` and all messages behind it, or the latest `turns` turns."""
        return self._report("rewind", *_place(at, turns))

    def clear(self) -> Dict[str, Any]:
        """Hides all messages. `undo` shows them again."""
        return self._report("clear")

    def log(self) -> List[Dict[str, Any]]:
        """Returns every message of the log, with the revision that has hidden it; an empty list if there is no store yet."""
        if self._is_absent():
            return []
        return cast(List[Dict[str, Any]], _json.lines(self._call("log", "--json").decode("utf-8")))

    def expand(self, revision: int) -> List[Dict[str, Any]]:
        """Returns the messages that the compaction of this revision has hidden or shortened."""
        output = self._call("expand", f"--revision={revision}", "--json")
        return cast(List[Dict[str, Any]], _json.lines(output.decode("utf-8")))

    def fork(self, id: str, *, at: Optional[int] = None, turns: Optional[int] = None) -> Session:
        """Makes another session with the messages before `at`, or without the latest `turns` turns."""
        self._report("fork", f"--as={id}", *_place(at, turns))
        return Session(self.store, id, key_file=self.key_file)

    def restore(self, exported: str) -> int:
        """Makes this session, which must be new, from a text of `export`, and returns the number of messages in the log."""
        return int(self._report("import", "-", text=text_of(exported))["messages"])

    def export(self) -> str:
        """Returns the whole session, with its log and its compactions, as a text for `restore`."""
        return self._call("export", "-o", "-").decode("utf-8")

    def verify(self) -> None:
        """Checks the session against its log. Raises `EpitomeError` if they differ."""
        self._call("verify")

    def erase(self) -> None:
        """Deletes the session and all its messages for good."""
        self._call("erase")

    def exists(self) -> bool:
        """Returns whether the store has the session."""
        return self._row() is not None

    def _row(self) -> Optional[Dict[str, Any]]:
        """Returns the row of the session in the list of its store."""
        if self._is_absent():
            return None
        rows = _json.loads(call(["session", "list", "--json", *self._store()]).output.decode("utf-8"))
        row = next((row for row in rows if row["session"] == self.id), None)
        if row is None:
            # A damaged file that its session does not name is listed by the name of the file, which has a hash of the id.
            hashed = hashlib.sha256(self.id.encode("utf-8", "replace")).hexdigest()[:32]
            row = next((row for row in rows if "damage" in row and row["session"].endswith(hashed)), None)
        if row is not None and "damage" in row:
            raise StoreFailed(row["damage"])
        return row

    def _is_absent(self) -> bool:
        """Returns whether there is no store yet: the first append makes it."""
        scheme, _, path = self.store.partition(":")
        if scheme not in ("sqlite", "jsonl"):
            return False
        try:
            os.stat(os.path.expanduser(path))
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            # The library says what is wrong with it.
            pass
        return False

    def _store(self) -> List[str]:
        key = [f"--key-file={self.key_file}"] if self.key_file is not None else []
        return [f"--store={self.store}", *key]

    def _call(self, command: str, *arguments: str, text: bytes = b"") -> bytes:
        return call(["session", command, *arguments, *self._store(), f"--session={self.id}"], text).output

    def _report(self, command: str, *arguments: str, text: bytes = b"") -> Dict[str, Any]:
        output = self._call(command, *arguments, "--json", text=text).decode("utf-8")
        return cast(Dict[str, Any], _json.loads(output)) if output.strip() else {}


def _members(text: str) -> Dict[str, Any]:
    """Returns the members of a document; none for a list."""
    document = _json.loads(text)
    return document if isinstance(document, dict) else {}


def _place(at: Optional[int], turns: Optional[int]) -> List[str]:
    if (at is None) == (turns is None):
        raise BadInput("a place is needed: give either `at` or `turns`")
    return [f"--at={at}"] if at is not None else [f"--turns={turns}"]
