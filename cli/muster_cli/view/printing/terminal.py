"""The console that every command prints on: whatever it is given, a terminal obeys nothing of it."""

from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.text import Text

from muster_cli.view.plain import clean


class Terminal(Console):
    """Nothing is markup, nothing is a link, and control characters are shown instead of obeyed.

    The guard is the last thing before the characters are written, so that nobody who prints can forget it.
    """

    def __init__(self, *, is_error: bool = False, width: int | None = None, file: TextIO | None = None) -> None:
        super().__init__(stderr=is_error, width=width, file=file, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else _harmless(segment)

    def render_str(self, text: str, **how: Any) -> Text:
        """Cleaned here too: what is printed as it is must be as wide as it was measured."""
        return super().render_str(clean(text), **how)


def _harmless(segment: Segment) -> Segment:
    text, style, _ = segment
    if style is not None and style.link:
        style = style.update_link(None)
    return Segment(text if text == "\n" else clean(text), style)


def styled(words: str, **values: str) -> Text:
    """Our own words, with rich's markup; the values that are put in are foreign, and shown as they are."""
    return Text.from_markup(words.format(**{name: escape(clean(value)) for name, value in values.items()}))
