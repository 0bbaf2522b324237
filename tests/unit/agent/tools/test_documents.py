"""A document is laid out as Markdown, HTML or plain text, and what is in it is never markup."""

import re
import time
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_agent.tools.document.blocks import blocks_of, cells_of, row_of
from muster_agent.tools.document.render import as_html, as_plain
from muster_agent.tools.document.tool import Section, format_document
from muster_agent.tools.tool import tool_of
from muster_protocol.errors import Invalid

MARKS = st.text(alphabet="ab #*_`|-[]()<>&\"'\n1.)\\:/", max_size=80)
SALES: dict[str, Any] = {
    "title": "Sales",
    "sections": [
        {"heading": "Summary", "body": "Up **10 %** since `2025`, see [the table](https://e.org/t).\n\n- one\n- two"},
        {
            "heading": "Numbers",
            "table": {"columns": ["region", "usd"], "rows": [["north|west", 12.5], ["south", None]]},
        },
    ],
    "footer": "by hand",
}


async def laid_out(**more: str) -> str:
    return await tool_of(format_document).call({**SALES, **more})


async def test_a_document_is_markdown_unless_something_else_is_asked_for():
    assert await laid_out() == (
        "# Sales\n\n## Summary\n\nUp **10 %** since `2025`, see [the table](https://e.org/t).\n\n- one\n- two\n\n"
        "## Numbers\n\n| region | usd |\n| --- | --- |\n| north\\|west | 12.5 |\n| south |  |\n\n_by hand_\n"
    )


async def test_a_document_as_html_is_a_whole_page():
    page = await laid_out(format="html")

    assert "<title>Sales</title>" in page
    assert (
        '<p>Up <strong>10 %</strong> since <code>2025</code>, see <a href="https://e.org/t">the table</a>.</p>' in page
    )
    assert "<ul>\n<li>one</li>\n<li>two</li>\n</ul>" in page
    assert "<tr><td>north|west</td><td>12.5</td></tr>" in page


async def test_a_document_as_plain_text_has_no_marks():
    text = await laid_out(format="plain")

    assert text.startswith("Sales\n=====\n\nSummary\n-------\n\nUp 10 % since 2025, see the table (https://e.org/t).\n")
    assert "region      usd\n----------  ----\nnorth|west  12.5\nsouth\n" in text


@given(MARKS | st.text(max_size=80))
def test_nothing_in_a_document_becomes_markup(text: str):
    seen: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            seen.append(tag)
            assert not attrs or (tag, attrs[0][0]) in (("meta", "charset"), ("a", "href"))
            assert tag != "a" or re.match(r"https?://", str(attrs[0][1]))

    Reader().feed(as_html(text, blocks_of(text)))
    known = "html head meta title body p ul ol li table tr th td pre code strong em a h1 h2 h3 h4 h5 h6"
    assert set(seen) <= set(known.split())
    assert isinstance(as_plain(blocks_of(text)), str)


@given(st.lists(st.text(alphabet="ab |\\ c", max_size=10), min_size=1, max_size=4))
def test_the_cells_of_a_row_stay_as_many(cells: list[str]):
    tame = [" ".join(cell.replace("\\", "/").split()) for cell in cells]
    assert list(cells_of(row_of(tame))) == tame


def test_a_section_without_anything_and_a_row_of_another_length_are_errors():
    with pytest.raises(Invalid, match="neither a body nor a table"):
        format_document("t", [Section(heading="h")])
    with pytest.raises(Invalid, match="row 1 has 1 cells, and there are 2 columns"):
        format_document(
            "t", [Section.model_validate({"heading": "h", "table": {"columns": ["a", "b"], "rows": [["x"]]}})]
        )


@pytest.mark.parametrize("part", ["# ", "#", "- ", "|", "|-", "*a", "[a](https://", "`", "```\n", "1. x\n", "|-\n"])
def test_a_hostile_document_takes_a_moment(part: str):
    text = part * (50_000 // len(part)) + "x"
    began = time.process_time()

    as_html("t", blocks_of(text))

    assert time.process_time() - began < 5
