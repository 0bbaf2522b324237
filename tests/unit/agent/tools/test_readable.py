"""HTML becomes text: whatever a page is, that ends soon and raises nothing."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_agent.tools.web.fetch import Fetched
from muster_agent.tools.web.page import NotReadable, decoded, page_text
from muster_agent.tools.web.readable import plain, readable

PAGE = """<!doctype html><html><head><title>Prices &amp; more</title><style>p {color: red}</style>
<script>alert("<p>no</p>")</script></head><body><nav><a href="/home">Home</a></nav>
<h1>Prices</h1><p>All prices in&nbsp;USD,
per hour.</p><ul><li>one<li>two</ul>
<table><tr><th>name</th><th>usd</th></tr><tr><td>a</td><td>0.1</td></tr></table>
<!-- not this --><p>See <a href='/more?a=1&amp;b=2' title="a > b">the <b>rest</b></a> or
<a href="javascript:x()">that</a>.
<p>1 < 2 &bogus; &#x1F600; &#xD800;</p></body></html>"""
SOUP = st.lists(
    st.sampled_from(["<", ">", "</", "<a href=", '"', "'", "<!--", "-->", "<script", "</script>", "&", "&#", "&#x", ";",
                     "<p>", "</p>", "<title>", "href='http://[", "\x00", "İ", "9" * 30, " ", "\n", "x"]),
    max_size=60,
).map("".join)  # fmt: skip


def test_a_page_becomes_headings_lists_tables_and_links():
    title, text = readable(PAGE, "https://example.org/prices/")

    assert title == "Prices & more"
    assert text.splitlines() == [
        "[Home](https://example.org/home)",
        "",
        "# Prices",
        "",
        "All prices in USD, per hour.",
        "",
        "- one",
        "- two",
        "",
        "| name | usd",
        "| a | 0.1",
        "",
        "See [the rest](https://example.org/more?a=1&b=2) or that.",
        "",
        "1 < 2 &bogus; \U0001f600 \ufffd",
    ]


@given(st.text(max_size=200) | SOUP)
def test_any_text_is_read_without_an_error(page: str):
    title, text = readable(page, "https://example.org")
    assert "\x00" not in text
    assert len(title) <= len(page) + 1
    assert isinstance(plain(page), str)


@given(st.binary(max_size=300), st.text(max_size=40))
def test_any_bytes_are_read_without_an_error(body: bytes, kind: str):
    assert isinstance(decoded(body, kind), str)
    page_text(Fetched("https://e.org", 200, "text/html; charset=" + kind, body, is_cut=False))


@pytest.mark.parametrize(
    "part",
    ["<", "<a", "<!--", "<a href='", '<p "', "</", "&", "&#", "<script>", "<a href=x>", "<title>", " ", "\n ", "<p>",
     "<td>", "</script", "<!", "<b '\"", "&#99999999999", "<select><svg>"],
)  # fmt: skip
def test_a_long_page_of_anything_takes_a_moment(part: str):
    page = part * (300_000 // len(part))
    began = time.process_time()

    readable(page, "https://example.org")

    assert time.process_time() - began < 5  # a scan that looks twice for each character takes minutes


def test_what_is_no_page_is_said_to_be_none():
    with pytest.raises(NotReadable, match="is application/pdf, which cannot be read"):
        page_text(Fetched("https://e.org/a.pdf", 200, "application/pdf", b"%PDF", is_cut=False))
    with pytest.raises(NotReadable, match="status 404; try another page"):
        page_text(Fetched("https://e.org/a", 404, "text/html", b"", is_cut=False))


def test_the_encoding_that_a_page_names_is_used_if_it_is_one_for_text():
    assert decoded("žluťoučký".encode("windows-1250"), "text/html; charset=windows-1250") == "žluťoučký"
    assert decoded(b'<meta charset="latin1"> \xe9', "text/html").endswith("é")
    assert decoded(b"abc", "text/html; charset=zip") == "abc"
    assert decoded(b"a\xffb", "text/plain; charset=nonsense") == "a\ufffdb"
