"""Functions that a worker can import, for teams that are written to a file."""

from muster import Context, Task, role, tool


@tool
def stock_of(article: str) -> str:
    """How many pieces of an article are in the shop."""
    return f"120 {article}"


@role(tags=["worth"], inputs={"article": "its name"})
async def till(task: Task, ctx: Context) -> str:
    """Computes what the stock

    is worth, in the end.
    """
    return f"{len(ctx.outputs)} of {task.tag}"
