"""Pages that lead to pages: whoever reads one adds a task for each link that it finds."""

import re
from pathlib import Path
from typing import Any, cast

from muster_agent.functions import Context
from muster_protocol.errors import Invalid
from muster_protocol.messages import Task

SITE = Path(__file__).parent / "site"
LINK = re.compile(r'<a href="([\w-]+)\.html">')


def page(task: Task, ctx: Context) -> int:
    """The words of one page."""
    file = SITE / f"{task.inputs['page']}.html"
    if not file.is_file():
        raise Invalid(f"there is no page {file.name}")
    text = file.read_text(encoding="utf-8")
    links: list[str] = LINK.findall(text)
    for link in links:  # the id says which page it is: one that the request has is not read twice
        ctx.spawn(f"Read the page {link}", id=link, inputs={"page": link})
    return len(re.sub(r"<[^>]*>", " ", text).split())


def index(_task: Task, ctx: Context) -> dict[str, Any]:
    """The words of each page, and of all."""
    words = cast("dict[str, int]", dict(ctx.outputs))
    return {"pages": dict(sorted(words.items())), "words": sum(words.values())}
