"""HTML as text that a model can read: headings, lists, tables and links. Pure.

Our own scanner, because a page is whatever somebody wrote: it reads each character a fixed number of times and raises
nothing, where the one of the standard library takes the square of the time for some pages, while nothing else runs.
"""

import html
import re
from urllib.parse import urljoin

MAX_TAG = 2000  # characters of a tag within which its quotes are looked at
MAX_TEXT = 1_000_000  # characters that a page may become
_NAME = re.compile(r"/?([a-zA-Z][a-zA-Z0-9]{0,15})")
_HREF = re.compile(r"""\shref\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""", re.IGNORECASE)
_QUOTE_OR_END = re.compile(r"[>\"']")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{0,31});?")
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n[ \n]*\n ?| ?\n ?")
_RAW_NAMES = "script style noscript template svg iframe object math title textarea select"
_BLOCK_NAMES = (
    "address article aside blockquote body dd details div dl dt fieldset figcaption figure footer form head header hr "
    "html main nav ol p pre section summary table tbody thead tfoot ul video"
)
_RAW = frozenset(_RAW_NAMES.split())
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))


def readable(page: str, url: str = "") -> tuple[str, str]:
    """The title of a page and its text; links are written out where the address of the page is given."""
    scan = _Scan(page, url)
    scan.run()
    return plain(scan.title), _tidy("".join(scan.parts)[:MAX_TEXT])


def plain(text: str) -> str:
    """A text without tags and entities, on one line."""
    without = re.sub(r"</?[a-zA-Z][^<>]{0,200}>", "", text)
    return " ".join(unescaped(without).split())


def unescaped(text: str) -> str:
    """With what the entities stand for; one that stands for nothing stays."""
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text)


def _tidy(text: str) -> str:
    """Single spaces, and one empty line at the most."""
    text = _SPACES.sub(" ", text.replace("\r", "\n").replace("\x00", ""))
    return _LINES.sub(lambda found: "\n\n" if found[0].count("\n") > 1 else "\n", text).strip()


class _Scan:
    """Goes through a page from `<` to `<`."""

    def __init__(self, page: str, url: str) -> None:
        self.title = ""
        self.parts: list[str] = []
        self._page, self._lower = page, page.lower()
        if len(self._lower) != len(page):  # a few letters become two in small: then none is looked at
            self._lower = page
        self._url = url
        self._link: tuple[str, int] | None = None  # where an open link leads, and which part it begins with
        self._misquoted = 0  # up to here quotes were looked at in vain, and are not looked at again
        self._unclosed: set[str] = set()  # what is not closed by the end of the page is looked for once

    def run(self) -> None:
        at = 0
        while at < len(self._page):
            start = self._page.find("<", at)
            if start < 0:
                start = len(self._page)
            if start > at:
                self.parts.append(unescaped(self._page[at:start].replace("\n", " ")))
            at = self._markup(start)

    def _markup(self, start: int) -> int:
        """Take in what begins with `<`; returns where the text goes on."""
        page = self._page
        if page.startswith("<!--", start):
            return self._after("-->", start + 4)
        if page.startswith(("<!", "<?"), start):
            return self._after(">", start + 2)
        name = _NAME.match(page, start + 1)
        if name is None:
            if start < len(page):
                self.parts.append("<")
            return start + 1
        end = self._tag_end(name.end())
        tag = name[1].lower()
        if name[0].startswith("/"):
            self._close(tag)
            return end
        if tag in _RAW:
            return self._raw(tag, end)
        self._open(tag, page[name.end() : min(end, name.end() + MAX_TAG)])
        return end

    def _after(self, sign: str, at: int) -> int:
        """Behind the next such sign; where there is none the rest of the page is text."""
        found = -1 if sign in self._unclosed else self._page.find(sign, at)
        if found < 0:
            self._unclosed.add(sign)
            return at
        return found + len(sign)

    def _tag_end(self, at: int) -> int:
        """Behind the `>` that ends a tag, not one in quotes."""
        limit = 0 if at < self._misquoted else min(at + MAX_TAG, len(self._page))
        place = at
        while found := _QUOTE_OR_END.search(self._page, place, limit):
            if found[0] == ">":
                return found.end()
            closing = self._page.find(found[0], found.end(), limit)
            if closing < 0:
                break
            place = closing + 1
        self._misquoted = max(self._misquoted, limit)
        return self._after(">", at)

    def _raw(self, tag: str, at: int) -> int:
        """Pass over what is no text of the page, but for its title."""
        found = -1 if tag in self._unclosed else self._lower.find(f"</{tag}", at)
        if found < 0:
            self._unclosed.add(tag)
            return at
        if tag == "title" and not self.title:
            self.title = self._page[at : min(found, at + MAX_TAG)]
        return self._after(">", found)

    def _open(self, tag: str, attributes: str) -> None:
        if tag in _HEADINGS:
            self.parts.append(f"\n\n{'#' * int(tag[1])} ")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag in ("br", "tr"):
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag in _BLOCKS:
            self.parts.append("\n\n")
        elif tag == "a" and self._url:
            self._close("a")
            self._begin_link(attributes)

    def _begin_link(self, attributes: str) -> None:
        found = _HREF.search(attributes)
        place = unescaped(next((text for text in found.groups() if text), "")) if found else ""
        if not place or place.startswith("#"):
            return
        try:
            whole = urljoin(self._url, place.strip())
        except ValueError:
            return
        if whole.lower().startswith(("http://", "https://")) and not re.search(r"\s", whole):
            self._link = whole, len(self.parts)

    def _close(self, tag: str) -> None:
        if tag == "a" and self._link is not None:
            (whole, begins), self._link = self._link, None
            text = " ".join("".join(self.parts[begins:]).split())
            if text:
                self.parts[begins:] = [f"[{text}]({whole})"]
        elif tag in _HEADINGS or tag in _BLOCKS:
            self.parts.append("\n\n")
