"""The functions on texts, lists and documents."""

from __future__ import annotations

import asyncio
import copy
import doctest
import importlib
import json
import unittest
from typing import Any

import epitome
from epitome import _records, aio

from . import conversations

MODULES = ["epitome", "epitome._functions", "epitome._library", "epitome.aio", "epitome.session"]


def load_tests(loader: Any, tests: unittest.TestSuite, pattern: Any) -> unittest.TestSuite:
    for name in MODULES:
        tests.addTests(doctest.DocTestSuite(importlib.import_module(name)))
    return tests


class Functions(unittest.TestCase):
    def test_random_conversations_stay_legal_and_are_not_changed(self) -> None:
        for seed in range(5):
            said = conversations.chat(seed, turns=8)
            before = copy.deepcopy(said)
            for strategy in ("truncate", "tool-results:keep=2 | truncate", "window", "tool-results"):
                done = epitome.compact(said, keep=0.4, strategy=strategy, format="openai-chat")
                self.assertEqual(said, before)
                self.assertEqual(epitome.validate(done.value, format="openai-chat"), [], (seed, strategy))
                own = {id(message) for message in said}
                for message in done.value:
                    if message in said:
                        self.assertIn(id(message), own, (seed, strategy))
                self.assertIs(done.value[-1], said[-1])
                self.assertEqual(done.report["messages_after"], len(done.value))

    def test_the_output_has_the_type_of_the_input(self) -> None:
        said = conversations.chat(1)
        text = json.dumps(said)
        document = {"model": "m", "messages": said, "own": 1.50}
        self.assertIsInstance(epitome.compact(text, keep=0.5).value, str)
        self.assertIsInstance(epitome.compact(text.encode(), keep=0.5).value, bytes)
        self.assertIsInstance(epitome.compact(said, keep=0.5).value, list)
        done = epitome.compact(document, keep=0.5)
        self.assertEqual((done.value["model"], done.value["own"]), ("m", 1.5))
        expected = epitome.compact(said, keep=0.5).value
        self.assertEqual(done.messages, expected)
        self.assertEqual(epitome.compact(text, keep=0.5).messages, expected)
        lines = "".join(json.dumps(message) + "\n" for message in said)
        self.assertEqual(epitome.compact(lines, keep=0.5).messages, expected)
        self.assertEqual(epitome.compact(tuple(said), keep=0.5).value, expected)

    def test_of_equal_messages_the_right_one_stays(self) -> None:
        said = [{"role": "user", "content": "yes"} for _ in range(30)]
        done = epitome.compact(said, goal=60)
        places = [next(at for at, message in enumerate(said) if message is kept) for kept in done.value]
        self.assertEqual((places[0], places[-1]), (0, 29))
        self.assertEqual(places, sorted(places))
        pinned = epitome.compact(said, goal=60, pins=[20]).value
        self.assertTrue(any(message is said[20] for message in pinned))

    def test_equal_records_keep_their_order(self) -> None:
        records = ['{"a":1}', '{"b":1}', '{"a":1}']
        items = _records.origins(records, '[\n{"b":1},\n{"a":1},\n{"c":1}\n]')
        self.assertEqual(items, [1, 2, _records.Change(None, {"c": 1})])

    def test_a_member_of_the_callers_own_stays(self) -> None:
        for own in ("mine", 7, True, 1.5, {"a": 1}):
            said = conversations.chat(3)
            said = [{**message, "epitome": own} for message in said]
            done = epitome.compact(said, goal=200, strategy="tool-results:keep=1")
            self.assertTrue(done.changed)
            self.assertEqual([message["epitome"] for message in done.value], [own] * len(done.value))

    def test_values_in_place_of_options(self) -> None:
        said = [{"role": "user", "content": "Hello"}]
        self.assertFalse(epitome.compact((message for message in said), window=8_000.0).changed)  # type: ignore[type-var, arg-type]
        for options in ({"window": 0.5}, {"pins": 3}, {"pins": "3"}, {"keep": 2}, {"strategy": 5}, {"keep": True}):
            with self.assertRaises(epitome.BadInput):
                epitome.compact(said, **options)  # type: ignore[arg-type]
        for wrong in (None, 5, bytearray(b"[]")):
            with self.assertRaises(epitome.BadInput):
                epitome.compact(wrong)  # type: ignore[type-var]

    def test_nothing_changes_below_the_trigger(self) -> None:
        said = conversations.chat(2)
        done = epitome.compact(said, window=1_000_000)
        self.assertFalse(done.changed)
        self.assertTrue(all(one is other for one, other in zip(done.value, said)))
        self.assertIsNot(done.value, said)

    def test_equal_messages_are_told_apart_by_their_place(self) -> None:
        said = [{"role": "user", "content": "again " * 30} for _ in range(20)]
        done = epitome.compact(said, keep=0.5, format="openai-chat")
        places = [next(place for place, other in enumerate(said) if other is message) for message in done.value]
        self.assertEqual(places, sorted(set(places)))

    def test_a_member_named_epitome_is_carried(self) -> None:
        said = [{"role": "user", "content": f"{n} " * 50, "epitome": n} for n in range(20)]
        self.assertTrue(all(message in said for message in epitome.compact(said, keep=0.5).value))

    def test_pins_goals_and_windows(self) -> None:
        said = conversations.chat(3)
        numbers = [number for number, message in enumerate(said) if message["role"] == "user"]
        pin = numbers[len(numbers) // 2]
        self.assertIn(said[pin], epitome.compact(said, keep=0.2, pins=[pin]).value)
        self.assertLessEqual(epitome.compact(said, goal=600, window=8_000).report["tokens_after"], 600)
        with self.assertRaises(epitome.Infeasible) as raised:
            epitome.compact(said, window=20, reserve=1)
        self.assertEqual(raised.exception.code, 3)

    def test_options_that_make_no_sense_are_named(self) -> None:
        said = [{"role": "user", "content": "Hello"}]
        for options in (
            {"keep": 30},
            {"keep": "30"},
            {"goal": True},
            {"window": "many"},
            {"strategy": "no-such"},
            {"strategy": "summarize"},
            {"strategy": "truncate\0"},
            {"strategy": "\ud800"},
            {"tokenizer": "--help"},
            {"model": "no-such-model"},
            {"pins": "3"},
            {"pins": [99]},
            {"format": "no-such"},
            {"to": "no-such"},
            {"profile": "no-such", "repair": True},
        ):
            with self.subTest(options), self.assertRaises(epitome.BadInput) as raised:
                epitome.compact(said, **{"keep": 0.5, **options} if "goal" not in options else options)  # type: ignore[arg-type]
            self.assertIsInstance(raised.exception, ValueError)
            # By the name of the parameter, not by the option of the program.
            self.assertIn(next(iter(options)), str(raised.exception))
            self.assertNotRegex(str(raised.exception), "--(?!help)|try '")

    def test_conversions_list_their_losses(self) -> None:
        said = conversations.chat(4, turns=3)
        for to in ("anthropic", "gemini", "openai-responses", "langchain", "agent-framework"):
            done = epitome.convert(said, to=to, format="openai-chat")
            self.assertEqual(epitome.validate(done.text, format=to), [], to)
            self.assertEqual(epitome.detect(done.text), to)
        sealed = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}, {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "Hello."}]}]
        self.assertEqual(epitome.convert(sealed, to="openai-chat", format="anthropic").losses[0]["kind"], "sealed-reasoning")
        document = epitome.compact(said, keep=0.5, to="anthropic", format="openai-chat").value
        self.assertEqual(epitome.validate(json.dumps(document), format="anthropic"), [])

    def test_repair_makes_legal(self) -> None:
        said = [message for message in conversations.chat(5) if message["role"] != "tool"]
        self.assertNotEqual(epitome.validate(said, format="openai-chat"), [])
        done = epitome.repair(said, format="openai-chat")
        self.assertEqual(epitome.validate(done.value, format="openai-chat"), [])
        self.assertTrue(all(any(message is other for other in done.value) for message in said if message["role"] == "user"))

    def test_messages_that_a_late_result_overtakes_are_the_same_objects(self) -> None:
        call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        said = [{"role": "user", "content": "Which files?"}, {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "user", "content": "Well?"}, {"role": "user", "content": "Well?"}, {"role": "tool", "tool_call_id": "c", "content": "none"},
                {"role": "assistant", "content": "None."}]
        left = epitome.repair(said).messages
        self.assertEqual([id(message) for message in left], [id(said[number]) for number in (0, 1, 4, 2, 3, 5)])

    def test_counts(self) -> None:
        said = conversations.chat(6, turns=3)
        for tokenizer in ("estimate", "o200k_base", "cl100k_base"):
            whole = epitome.count(said, tokenizer=tokenizer, format="openai-chat")
            self.assertGreater(whole, epitome.count(said[:3], tokenizer=tokenizer, format="openai-chat"))
        self.assertEqual(epitome.stats(said, format="openai-chat")["messages"], len(said))

    def test_asyncio(self) -> None:
        said = conversations.chat(7)

        async def both() -> Any:
            return await asyncio.gather(aio.compact(said, keep=0.5), aio.stats(said), aio.count(said))

        done, stats, count = asyncio.run(both())
        self.assertEqual(done.value, epitome.compact(said, keep=0.5).value)
        self.assertEqual((stats["messages"], count), (len(said), epitome.count(said)))


if __name__ == "__main__":
    unittest.main()
