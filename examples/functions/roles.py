"""Two roles as plain functions: an async one that runs in the worker's loop, and a sync one that gets a thread."""

from muster_agent.functions import Context
from muster_protocol.errors import Terminal
from muster_protocol.messages import Task


async def word_count(task: Task, ctx: Context) -> dict[str, int]:
    """How many words, and how many different ones."""
    words = _words(task, ctx)
    return {"words": len(words), "different": len({word.lower() for word in words})}


def longest(task: Task, ctx: Context) -> str:
    """The longest word; the first of them when there are several."""
    words = _words(task, ctx)
    ctx.progress(f"looking at {len(words)} words")
    return max(words, key=len)


def _words(task: Task, ctx: Context) -> list[str]:
    texts = [str(output) for output in ctx.outputs.values()] or [task.description]
    words = " ".join(texts).split()
    if not words:
        raise Terminal("there are no words")
    return words
