"""Turns with the file provider of Microsoft Agent Framework: load what there is, store a question and its answer.

    file_history.py FOLDER TURNS WORDS

Prints a row of the table that `stores beside` prints: the mean of a turn in the first and the last tenth.
"""

import asyncio
import sys
import time

from agent_framework import FileHistoryProvider, Message


async def main() -> None:
    folder, turns, words = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    provider = FileHistoryProvider(folder)
    took = []
    for turn in range(turns):
        said = [
            Message(role="user", contents=[f"question {2 * turn}"]),
            Message(role="assistant", contents=["word " * words]),
        ]
        began = time.perf_counter()
        kept = await provider.get_messages("session")
        assert len(kept) == 2 * turn
        await provider.save_messages("session", said)
        took.append(time.perf_counter() - began)
    tenth = -(-len(took) // 10)
    first, last = (sum(part) * 1e3 / tenth for part in (took[:tenth], took[-tenth:]))
    print(f"| agent-framework's file provider (Python) | {first:.3f} ms | {last:.3f} ms |")


asyncio.run(main())
