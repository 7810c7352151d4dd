"""Epitome: compaction of the conversation history of LLM agents.

>>> import epitome
>>> said = [{"role": "user", "content": f"Question {n}: " + "why? " * 50} for n in range(40)]
>>> done = epitome.compact(said, keep=0.3)
>>> done.report["tokens_after"] <= 0.3 * done.report["tokens_before"]
True

`epitome.aio` has the same functions for asyncio, `epitome.Session` keeps conversations in a store, and `epitome.adapters` connects
LangChain, LangGraph, Pydantic AI, the OpenAI Agents SDK, Agent Framework and LiteLLM.
"""

from ._errors import BadInput, EpitomeError, Infeasible, StoreFailed, Unfaithful
from ._functions import (
    Compacted,
    Converted,
    Transcript,
    compact,
    convert,
    count,
    detect,
    repair,
    stats,
    validate,
)
from ._library import library_path, version
from .session import Session

__all__ = [
    "BadInput",
    "Compacted",
    "Converted",
    "EpitomeError",
    "Infeasible",
    "Session",
    "StoreFailed",
    "Transcript",
    "Unfaithful",
    "compact",
    "convert",
    "count",
    "detect",
    "library_path",
    "repair",
    "stats",
    "validate",
    "version",
]
