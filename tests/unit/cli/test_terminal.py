"""What others wrote reaches the terminal as text: whatever prints it, nothing of it is obeyed."""

import io
import re
from unicodedata import category

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from muster_cli.view.console import say, say_json
from muster_cli.view.printing.listing import Listing
from muster_cli.view.printing.markdown import markdown
from muster_cli.view.printing.terminal import Terminal, styled
from tests.guards import guards

TERMINAL = "cli/muster_cli/view/printing/terminal.py"
HOSTILE = (
    "[/nope] [link=http://evil]x[/link] :smile: \x1b]52;c;aGk=\x07 \x1b]8;;http://evil\x07x\x9b2J\u202e\r\b\u2028\udc80"
)
STYLES = re.compile(r"\x1b\[[\d;]*m")  # colours, which rich writes
OBEYED = {"Cc", "Cs", "Zl", "Zp"}


class OnATerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(what: RenderableType, width: int = 80) -> str:
    file = OnATerminal()
    Terminal(file=file, width=width).print(what)
    return file.getvalue()


def is_harmless(text: str) -> bool:
    left = STYLES.sub("", text).replace("\n", "").replace("\t", "")
    return not any(category(c) in OBEYED or c == "\u202e" for c in left)


@guards(TERMINAL, "yield segment if segment.control else _harmless(segment)", rule="I10", replace="yield segment")
@given(st.text(), st.sampled_from([10, 40, 200]))
@example(HOSTILE, 80)
def test_nothing_foreign_is_obeyed_however_it_is_printed(text: str, width: int):
    table, listing = Table(text), Listing("id", text)
    table.add_row(text, Text(text))
    listing.add(text, Text(text))
    for what in (text, Text(text), Text("x", f"link {'http://evil'}"), table, listing, markdown(text)):
        assert is_harmless(printed(what, width))
    assert is_harmless(printed(styled("[bold]{text}[/]", text=text)))


def test_markup_and_names_of_emoji_are_shown_as_they_are():
    assert "[/nope] [link=http://evil]x[/link] :smile: " in printed(HOSTILE)
    assert printed(styled("[bold]{text}[/]", text="[/nope]")) == "\x1b[1m[/nope]\x1b[0m\n"


def test_the_address_of_a_link_is_seen():
    shown = printed(markdown("[the bank](http://evil.example)"))

    assert "http://evil.example" in STYLES.sub("", shown)
    assert "\x1b]8" not in shown


def test_words_of_every_language_stay_as_they_are():
    text = "naïve\u202f12\u00a0000 € \u3000日本 می\u200cخواهم 👨\u200d👩\u200d👧"

    assert printed(text, 200).rstrip("\n") == text


@guards("cli/muster_cli/view/console.py", "printable_json, text.split", rule="I10", replace="str, text.split")
def test_documents_and_bare_text_are_harmless_too(capsys: pytest.CaptureFixture[str]):
    say(HOSTILE)
    say_json({"text": HOSTILE, HOSTILE: [1]}, is_indented=True)
    say_json({"text": "\x9b2J\u202e"})

    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert r"\u009b" in shown
    assert shown.count("\n") == 8


def test_ids_are_whole_on_every_terminal():
    listing = Listing("request", "status", "team", "asked", sentences=1)
    request_id = "an-id-of-thirty-two-characters-ab"
    listing.add(request_id, "done", "default", "Compare everything with everything else " * 3)

    for width in (40, 80, 100, 120, 200):
        assert request_id in STYLES.sub("", printed(listing, width))


def test_what_does_not_fit_beside_an_id_goes_whole_to_an_indented_line():
    listing = Listing("request", "asked", "asked by", "tasks done", "how it ended")
    listing.add("a85aff7d3226c5c5", "2 s ago", "client/muster-67bf730b", "2", "done: answered in 1.0 s")

    lines = [line.rstrip() for line in STYLES.sub("", printed(listing, 50)).splitlines()]

    assert lines == [
        "request",
        "a85aff7d3226c5c5 · 2 s ago",
        "    client/muster-67bf730b · tasks done 2",
        "    done: answered in 1.0 s",
    ]
