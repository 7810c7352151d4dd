"""Input that is no transcript, is huge, or comes from many threads and processes at once."""

from __future__ import annotations

import os
import sys
import threading
import types
import unittest
from typing import Any, List

import epitome

from . import conversations


class Hostile(unittest.TestCase):
    def refuse(self, value: Any, words: str = "", **options: Any) -> None:
        with self.assertRaises(epitome.BadInput) as raised:
            epitome.compact(value, keep=0.5, **options)
        self.assertIn(words, str(raised.exception))

    def test_values_that_are_no_json(self) -> None:
        own: List[Any] = []
        own.append({"role": "user", "content": own})
        self.refuse([{"role": "user", "content": float("nan")}], "message 0 is not JSON")
        self.refuse([{"role": "user", "content": object()}], "message 0 is not JSON")
        self.refuse([{"role": "user", "content": "x"}, {"role": "user", "content": b"bytes"}], "message 1 is not JSON")
        self.refuse(own, "message 0 is not JSON")
        self.refuse({"messages": {1, 2}}, "not JSON")

    def test_values_that_are_no_transcript(self) -> None:
        values: List[Any] = [[], "", b"", "null", "{", "[]", {}, [[]], [None], [1], "\0", b"\xff\xfe", [{}], [{"role": "user"}, "x"]]
        for value in values:
            with self.subTest(value), self.assertRaises(epitome.BadInput):
                epitome.compact(value, keep=0.5)

    def test_lone_surrogates(self) -> None:
        self.refuse([{"role": "user", "content": "a\ud83d"}], "a lone surrogate")
        with self.assertRaisesRegex(epitome.BadInput, "message 1 has a lone surrogate"):
            epitome.validate([{"role": "user", "content": "a"}, {"role": "user", "content": "a\ud83d"}])
        self.refuse('[{"role": "user", "content": "a\udc00"}]', "a lone surrogate")
        # As an escape, half a pair is JSON.
        done = epitome.compact('[{"role": "user", "content": "a\\ud83d"}]', window=1000)
        self.assertFalse(done.changed)

    def test_every_function_takes_mappings_and_objects_with_model_dump(self) -> None:
        class Message:
            def model_dump(self, exclude_none: bool) -> Any:
                return {"role": "assistant", "content": "Yes."}

        said: Any = [types.MappingProxyType({"role": "user", "content": "Hi"}), Message()]
        same = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes."}]
        self.assertEqual(epitome.count(said), epitome.count(same))
        self.assertEqual(epitome.validate(said), [])
        self.assertEqual(epitome.convert(said, to="gemini").document, epitome.convert(same, to="gemini").document)
        done = epitome.compact(said, window=8_000)
        self.assertIs(done.messages[1], said[1])

    def test_a_byte_order_mark(self) -> None:
        self.assertEqual(len(epitome.compact('\ufeff[{"role": "user", "content": "Hi"}]', window=8_000).messages), 1)

    def test_an_error_has_no_usage_of_the_program(self) -> None:
        with self.assertRaises(epitome.BadInput) as raised:
            epitome.compact([{"role": "user", "content": "Hi"}], keep=0.5, goal=5)
        self.assertNotIn("Usage", str(raised.exception))
        self.refuse([{"role": "user", "content": "Hi"}], "pins is 5.0: give a list", pins=5.0)

    def test_deep_values(self) -> None:
        deep: Any = "x"
        for _ in range(sys.getrecursionlimit() * 2):
            deep = [deep]
        # Newer versions of Python write it, and the library refuses it.
        self.refuse([{"role": "user", "content": deep}])
        with self.assertRaises(epitome.BadInput):
            epitome.compact("[" * 1_000_000, keep=0.5)

    def test_ten_megabytes(self) -> None:
        huge = "x" * 10_000_000
        said = [{"role": "user", "content": huge}, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "Hi"}]
        done = epitome.compact(said, window=100_000_000)
        self.assertIs(done.value[0], said[0])
        done = epitome.compact(said, keep=0.5, format="openai-chat")
        self.assertIs(done.value[-1], said[-1])
        self.refuse(huge)

    def test_zero_bytes_in_texts_are_carried(self) -> None:
        said = [{"role": "user", "content": "a\0b" * 10}, {"role": "user", "content": "c"}]
        self.assertIs(epitome.compact(said, window=10_000).value[0], said[0])

    def test_eight_threads(self) -> None:
        said = [conversations.chat(seed, turns=10) for seed in range(8)]
        expected = [epitome.compact(messages, keep=0.5).value for messages in said]
        found: List[Any] = [None] * 8

        def work(number: int) -> None:
            for _ in range(5):
                found[number] = epitome.compact(said[number], keep=0.5).value

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, expected)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork on this system")
    def test_fork(self) -> None:
        said = conversations.chat(1, turns=10)
        expected = epitome.compact(said, keep=0.5).text
        for _ in range(4):
            child = os.fork()
            if child == 0:
                os._exit(0 if epitome.compact(said, keep=0.5).text == expected else 1)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(epitome.compact(said, keep=0.5).text, expected)

    def test_a_missing_library_is_named(self) -> None:
        from epitome import _library

        loaded, given = _library._library, os.environ.get("EPITOME_LIBRARY")
        _library._library = None
        os.environ["EPITOME_LIBRARY"] = "/no/such/library"
        try:
            with self.assertRaisesRegex(epitome.EpitomeError, "/no/such/library"):
                epitome.version()
        finally:
            _library._library = loaded
            del os.environ["EPITOME_LIBRARY"]
            if given is not None:
                os.environ["EPITOME_LIBRARY"] = given


if __name__ == "__main__":
    unittest.main()
