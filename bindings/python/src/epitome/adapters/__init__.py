"""Adapters for agent frameworks. Each module imports its framework, so import the module that you need:

`langchain`, `langgraph`, `pydantic_ai`, `openai_agents`, `agent_framework`, `litellm`.

Messages are the framework's own objects, in and out, and an untouched message is the same object. The objects that come in are
not changed. The options are those of `epitome.compact`. Give `window` or `model`, so that a compaction is due at 78 % of the
window. With `keep` or `goal` alone, every call compacts.
"""
