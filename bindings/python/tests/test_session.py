"""Sessions in stores."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest

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

    def test_errors(self) -> None:
        with self.assertRaises(epitome.BadInput):
            epitome.Session("no-such:store", "demo").append([{"role": "user", "content": "Hi"}])
        with self.assertRaises(epitome.BadInput):
            epitome.Session(self.store, "a\0b").append([{"role": "user", "content": "Hi"}])
        with self.assertRaises(epitome.StoreFailed):
            epitome.Session("sqlite:/no/such/folder/chats.db", "demo").append([{"role": "user", "content": "Hi"}])


if __name__ == "__main__":
    unittest.main()
