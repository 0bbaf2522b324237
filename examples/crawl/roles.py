"""Pages that lead to pages: whoever reads one adds a task for each link that it finds."""

import re
from pathlib import Path

from muster_protocol.errors import Invalid

SITE = Path(__file__).parent / "site"
LINK = re.compile(r'<a href="([\w-]+)\.html">')


def page(task, ctx):
    file = SITE / f"{task.inputs['page']}.html"
    if not file.is_file():
        raise Invalid(f"there is no page {file.name}")
    text = file.read_text(encoding="utf-8")
    for link in LINK.findall(text):  # the id says which page it is: one that the request has is not read twice
        ctx.spawn(f"Read the page {link}", id=link, inputs={"page": link})
    return len(re.sub(r"<[^>]*>", " ", text).split())


def index(_task, ctx):
    return {"pages": dict(sorted(ctx.outputs.items())), "words": sum(ctx.outputs.values())}
