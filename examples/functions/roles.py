"""Two roles as plain functions: an async one that runs in the worker's loop, and a sync one that gets a thread."""

from typing import Any

from muster_agent.functions import Context
from muster_protocol.errors import Invalid
from muster_protocol.messages import Task


async def word_count(task: Task, _ctx: Context) -> dict[str, int]:
    """How many words, and how many different ones."""
    words = _words([task.inputs])
    return {"words": len(words), "different": len({word.lower() for word in words})}


def longest(task: Task, ctx: Context) -> str:
    """The longest word; the first of them when there are several."""
    gathered: list[dict[str, Any]] = ctx.outputs.get("items", [])  # of a map, in the order of its items
    words = _words([part["item"] for part in gathered] or [task.inputs])
    ctx.progress(f"looking at {len(words)} words")
    return max(words, key=len)


def _words(sources: list[dict[str, Any]]) -> list[str]:
    words = " ".join(str(source.get("text", "")) for source in sources).split()
    if not words:
        raise Invalid("there are no words", "inputs.text")
    return words
