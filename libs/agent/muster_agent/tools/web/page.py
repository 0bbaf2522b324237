"""The tool that reads one page of the web."""

import re
from typing import Annotated

from pydantic import Field

from muster_agent.functions import call
from muster_agent.team.web import WebSpec
from muster_agent.tools.tool import Tool, tool_of
from muster_agent.tools.web.fetch import Fetched, fetch
from muster_agent.tools.web.readable import readable
from muster_protocol.calling.addresses import ANY_HOST

_ABOUT = "Read one page of the web as text, with its links. Hosts that may be read: {hosts}"
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE | re.ASCII)
_LOOK_FOR_CHARSET = 2048  # bytes at the beginning of a page
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = ("application/json", "application/xml", "application/ld+json", "application/yaml")
# Only what turns bytes into text, each in one pass: Python's table also has names for packing and for punycode.
_ENCODING_NAMES = (
    "utf-8 utf8 utf-16 us-ascii ascii iso-8859-1 latin1 iso-8859-2 iso-8859-5 iso-8859-7 iso-8859-9 iso-8859-15 "
    "windows-1250 windows-1251 windows-1252 windows-1253 windows-1254 koi8-r koi8-u shift_jis euc-jp euc-kr gbk gb2312 "
    "gb18030 big5"
)
_ENCODINGS = frozenset(_ENCODING_NAMES.split())


class NotReadable(ValueError):
    """What is there is no page that can be read as text; the text says what it is."""


def scrape_page_tool(web: WebSpec) -> Tool:
    """The tool, for the hosts of the team."""

    async def scrape_page(url: Annotated[str, Field(description="of the page, with https://")]) -> str:
        found = await fetch(url.strip(), web)
        return await call(page_text, found)

    hosts = "every public one" if ANY_HOST in web.hosts else ", ".join(web.hosts)
    return tool_of(scrape_page, _ABOUT.format(hosts=hosts))


def page_text(found: Fetched) -> str:
    """What was found as text: where it stands, its title, and what it says."""
    kind = found.kind.partition(";")[0].strip().lower()
    is_text = kind.startswith("text/") or kind in _TEXT or kind.endswith(("+json", "+xml"))
    if not 200 <= found.status < 300:
        raise NotReadable(f"{found.url} replies with status {found.status}; try another page, or search for one")
    if kind and not is_text and kind not in _HTML:
        raise NotReadable(f"{found.url} is {kind[:80]}, which cannot be read as text; try another page")
    text = decoded(found.body, found.kind)
    title = ""
    if kind in _HTML or (not kind and "<html" in text[:_LOOK_FOR_CHARSET].lower()):
        title, text = readable(text, found.url)
    head = [found.url, *([f"Title: {title}"] if title else [])]
    more = [f"[only the first {len(found.body):,} bytes were read]"] if found.is_cut else []
    return "\n\n".join(["\n".join(head), text.strip() or "[the page has no text]", *more])


def decoded(body: bytes, kind: str) -> str:
    """The text of bytes, by the encoding that the reply or the page names; what does not fit is marked."""
    start = body[:_LOOK_FOR_CHARSET].decode("ascii", errors="replace")
    named = _CHARSET.search(kind) or _CHARSET.search(start)
    encoding = named[1].lower() if named else "utf-8"
    return body.decode(encoding if encoding in _ENCODINGS else "utf-8", errors="replace").removeprefix("\ufeff")
