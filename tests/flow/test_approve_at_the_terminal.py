"""`muster ask --approve` in front of a person: the plan is shown, and approved, edited or rejected where one sits."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.flow.command_line import LIMIT_SECONDS, Here, plan

EDITOR = """\
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
turn = pathlib.Path("turns")
count = int(turn.read_text()) + 1 if turn.exists() else 1
turn.write_text(str(count))
document = json.loads(path.read_text()) if count != 2 else {"tasks": []}
if count == 1:
    path.write_text("no JSON")
else:
    tasks = [{"id": "mine", "description": "what I wanted", "tag": "nobody" if count == 2 else "good"}]
    path.write_text(json.dumps({"goal": "g", "tasks": tasks}))
"""


@dataclass
class Terminal:
    """A command in front of a person: what it has written, and where to type."""

    process: subprocess.Popen[bytes]
    end: int
    written: str = field(default="")

    def until(self, words: str, after: int = 0) -> int:
        """Read until these words are there; where they end."""
        limit = time.monotonic() + LIMIT_SECONDS
        while words not in self.written[after:]:
            assert time.monotonic() < limit, self.written
            with suppress(OSError):
                if block := os.read(self.end, 65536):
                    self.written += block.decode(errors="replace")
                    continue
            raise AssertionError(f"it ended without {words!r}: {self.written}")
        return self.written.index(words, after) + len(words)

    def type(self, line: str) -> None:
        os.write(self.end, f"{line}\n".encode())

    def ended(self) -> int:
        with suppress(OSError):
            while block := os.read(self.end, 65536):
                self.written += block.decode(errors="replace")
        return self.process.wait(LIMIT_SECONDS)


@contextmanager
def at_a_terminal(here: Here, *words: str, **env: str) -> Generator[Terminal]:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "muster_cli", *words]
    environment = {**here.env, "TERM": "dumb", **env}
    with subprocess.Popen(
        command, cwd=here.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        try:
            yield Terminal(process, ours)
        finally:
            process.kill()
            os.close(ours)


QUESTION = "[a]pprove, [e]dit or [r]eject?"
SUBMIT = ("submit", "--plan", "plan.json", "--approve")


def test_a_person_at_the_terminal_approves_edits_rejects_or_leaves(tmp_path: Path):
    here = Here(tmp_path)
    (tmp_path / "editor.py").write_text(EDITOR)
    (tmp_path / "plan.json").write_text(plan(("first", "good"), ("second", "good", "first")))
    with here.up():
        approves(here)
        edits(here)
        rejects(here)
        leaves(here)
        is_told_what_somebody_else_says(here)


def approves(here: Here) -> None:
    with at_a_terminal(here, *SUBMIT) as person:
        place = person.until(QUESTION)
        assert "first  [good]  task first" in person.written
        assert "nothing runs before you approve it" in person.written
        person.type("perhaps")
        person.until(QUESTION, place)
        person.type("a")
        person.until("reply approve by client/")
        assert person.ended() == 0


def edits(here: Here) -> None:
    with at_a_terminal(here, *SUBMIT, EDITOR=f"{sys.executable} editor.py") as person:
        place = person.until(QUESTION)
        for mistake in ("is not JSON", "nobody has the tag 'nobody'"):
            person.type("e")
            place = person.until(mistake, place)
            place = person.until(QUESTION, place)
        person.type("e")
        person.until("reply edit by client/", place)
        assert person.ended() == 0
        assert "did what I wanted" in person.written


def rejects(here: Here) -> None:
    with at_a_terminal(here, *SUBMIT) as person:
        person.until(QUESTION)
        person.type("r")
        person.until("why?")
        person.type("too dear")
        assert person.ended() == 4
        assert "too dear" in person.written


def leaves(here: Here) -> None:
    with at_a_terminal(here, *SUBMIT) as person:
        person.until(QUESTION)
        person.process.send_signal(signal.SIGINT)
        assert person.ended() == 130
        (request,) = re.findall(r"`muster reply (\w+) approve`", person.written)
    assert here.document("status", request)["status"] == "waiting_for_person"


def is_told_what_somebody_else_says(here: Here) -> None:
    with at_a_terminal(here, "ask", "say it", "--approve") as person:
        person.until(QUESTION)
        (request,) = re.findall(r"request (\w+)", person.written)
        here.run("reply", request, "reject", "--reason", "elsewhere")
        assert person.ended() == 4
        assert "somebody else has decided" in person.written


def test_without_a_terminal_it_waits_for_a_reply_as_before(tmp_path: Path):
    here = Here(tmp_path)
    (tmp_path / "plan.json").write_text(plan(("first", "good")))
    with here.up(), here.start("submit", "--plan", "plan.json", "--approve") as asking:
        while not (found := re.findall(r"`muster reply (\w+) ", here.printed("submit"))):
            time.sleep(0.05)
        assert "[a]pprove" not in here.printed("submit")
        here.run("reply", found[0], "approve")
        assert asking.wait(LIMIT_SECONDS) == 0
