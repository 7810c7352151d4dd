"""Sessions in stores."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings
from typing import Any

import epitome

from . import conversations


class Sessions(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.store = "sqlite:" + os.path.join(folder.name, "chats.db")

    def test_a_session_survives_a_restart_and_compactions(self) -> None:
        session = epitome.Session(self.store, "demo")
        self.assertEqual((session.exists(), session.messages()), (False, []))
        self.assertEqual(session.append([]), 0)
        said = conversations.chat(1, turns=20)
        for turn in range(0, len(said), 7):
            session.append(said[turn : turn + 7], format="openai-chat")
        report = session.compact(window=4_000, goal=1_000)
        self.assertLessEqual(report["tokens_after"], 1_000)
        left = session.messages()
        self.assertEqual(epitome.validate(left, format="openai-chat"), [])
        # Another process reads the same.
        code = "import epitome, sys; print(len(epitome.Session(sys.argv[1], 'demo').messages()))"
        found = subprocess.run([sys.executable, "-c", code, self.store], check=True, stdout=subprocess.PIPE, text=True)
        self.assertEqual(int(found.stdout), len(left))
        again = epitome.Session(self.store, "demo")
        log = again.log()
        self.assertEqual([row["message"]["role"] for row in log], [message["role"] for message in said])
        revision = next(row["hidden_by"] for row in log if row["hidden_by"] is not None)
        hidden = [row for row in log if row["hidden_by"] == revision]
        self.assertEqual(len(again.expand(revision)), len(hidden))
        self.assertEqual(again.undo()["live_messages"], len(said))
        self.assertEqual([message["content"] for message in again.messages()], [message["content"] for message in said])
        again.verify()

    def test_rewind_fork_clear_export_and_erase(self) -> None:
        session = epitome.Session(self.store, "demo")
        said = [{"role": role, "content": f"{role} {n}"} for n in range(4) for role in ("user", "assistant")]
        session.append(said, format="openai-chat")
        session.rewind(turns=1)
        self.assertEqual(session.messages(), said[:6])
        other = session.fork("other", turns=1)
        self.assertEqual(other.messages(), said[:4])
        copy = epitome.Session(self.store, "copy")
        self.assertEqual(copy.restore(session.export()), 8)
        self.assertEqual(copy.messages(), said[:6])
        session.clear()
        self.assertEqual(session.messages(), [])
        with self.assertRaisesRegex(epitome.BadInput, "shows no message"):
            session.text()
        session.undo()
        self.assertEqual(session.messages(), said[:6])
        other.erase()
        self.assertFalse(other.exists())
        with self.assertRaises(epitome.BadInput):
            session.rewind()

    def test_the_system_prompt_is_in_the_document(self) -> None:
        session = epitome.Session(self.store, "prompted")
        session.append([{"role": "system", "content": "RULES"}, {"role": "user", "content": "Hi"}])
        self.assertEqual(session.document("anthropic"), {"system": "RULES", "messages": [{"role": "user", "content": "Hi"}]})
        self.assertEqual(len(session.document("gemini")["systemInstruction"]["parts"]), 1)
        self.assertEqual(len(session.document()["messages"]), 2)
        with self.assertWarnsRegex(UserWarning, "document\\('anthropic'\\) returns both"):
            self.assertEqual(session.messages("anthropic"), [{"role": "user", "content": "Hi"}])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(len(session.messages()), 2)
        with self.assertRaisesRegex(epitome.BadInput, "shows no message"):
            epitome.Session(self.store, "absent").document()

    def test_a_path_in_the_home_folder(self) -> None:
        home = os.environ.get("HOME")
        with tempfile.TemporaryDirectory() as folder:
            os.environ["HOME"] = folder
            try:
                session = epitome.Session("sqlite:~/chats.db", "demo")
                self.assertEqual((session.messages(), session.log(), session.exists()), ([], [], False))
                session.append([{"role": "user", "content": "Hi"}])
                self.assertEqual((len(session.messages()), len(session.log()), session.exists()), (1, 1, True))
                self.assertTrue(os.path.exists(os.path.join(folder, "chats.db")))
            finally:
                if home is not None:
                    os.environ["HOME"] = home

    def test_a_damaged_session_is_not_a_new_one(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for id in ("plain", "no file name"):
                session = epitome.Session("jsonl:" + folder, id)
                session.append([{"role": "user", "content": "Hi"}])
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                data = pathlib.Path(path).read_bytes()
                # The id of the second session is in the first line alone.
                place = 5 if name.startswith("~") else len(data) - 20
                pathlib.Path(path).write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            for id in ("plain", "no file name"):
                session = epitome.Session("jsonl:" + folder, id)
                for read in (session.messages, session.exists, session.text, session.log, lambda: session.append([])):
                    with self.subTest(id), self.assertRaisesRegex(epitome.EpitomeError, "damaged"):
                        read()
            # The others are read and begun as before.
            for id in ("another", "another without a file name"):
                other = epitome.Session("jsonl:" + folder, id)
                self.assertEqual((other.messages(), other.exists()), ([], False))
                self.assertEqual(other.append([{"role": "user", "content": "Hi"}]), 1)

    def test_values_of_another_type(self) -> None:
        for store, id in ((self.store, 42), (self.store, None), (pathlib.Path("x.db"), "demo")):
            with self.subTest(id), self.assertRaisesRegex(epitome.BadInput, "(id|store) is a .*: give a text"):
                epitome.Session(store, id)  # type: ignore[arg-type]
        session = epitome.Session(self.store, "typed")
        nothing: Any = (one for one in [])
        self.assertEqual((session.append([]), session.append(nothing)), (0, 0))
        for wrong in (None, 0, False, {}):
            with self.subTest(wrong), self.assertRaises(epitome.BadInput):
                session.append(wrong)  # type: ignore[arg-type]

    def test_errors(self) -> None:
        with self.assertRaises(epitome.BadInput):
            epitome.Session("no-such:store", "demo").append([{"role": "user", "content": "Hi"}])
        with self.assertRaises(epitome.BadInput):
            epitome.Session(self.store, "a\0b").append([{"role": "user", "content": "Hi"}])
        with self.assertRaises(epitome.StoreFailed):
            epitome.Session("sqlite:/no/such/folder/chats.db", "demo").append([{"role": "user", "content": "Hi"}])


if __name__ == "__main__":
    unittest.main()
