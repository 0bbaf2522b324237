"""Goals, outputs and errors that want a terminal to obey them: through every command, in a pipe and on a terminal."""

import json
import re
from collections.abc import Generator

import pytest

from tests.flow.command_line import Here

# A colour, a clipboard that is written, a link that is hidden, a cleared screen, reversed writing, a forged line.
HOSTILE = "[/nope] \x1b[31m \x1b]52;c;aGk=\x07 \x1b]8;;http://evil\x07x\x1b]8;;\x07 \x9b2J \u202e \r 9.9 s  ✓ forged\b"
ROLES = f"""
HOSTILE = {HOSTILE!r}

async def good(task, ctx):
    ctx.progress(HOSTILE)
    return HOSTILE

async def bad(task, ctx):
    raise ValueError(HOSTILE)

async def slow(task, ctx):
    return {{"*x*": HOSTILE, "list": [1, 2]}}
"""
# What Muster writes itself: colours, and what redraws a plan in place.
OURS = re.compile(r"\x1b\[[\d;]*[mAK]|\x1b\[\?25[lh]|\x1b\[1A|\r")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Generator[Here]:
    folder = Here(tmp_path_factory.mktemp("here"))
    (folder.folder / "roles.py").write_text(ROLES)
    with folder.up():
        yield folder


def _request(request_id: str, *tags: str) -> str:
    tasks = [{"id": tag, "description": f"{HOSTILE} {tag}", "tag": tag, "max_attempts": 1} for tag in tags]
    return json.dumps({"id": request_id, "plan": {"goal": f"{HOSTILE} goal", "tasks": tasks}})


def _obeyed(printed: str) -> set[str]:
    """What a terminal would obey, beside what Muster writes itself."""
    left = OURS.sub("", printed)
    return {character for character in left if not character.isprintable() and character not in "\n\t"}


def test_no_command_lets_a_goal_an_output_or_an_error_command_the_terminal(here: Here):
    (here.folder / "asked.json").write_text(_request("hostile", "good", "bad"))
    (here.folder / "waiting.json").write_text(json.dumps({"id": "waiting", "text": f"{HOSTILE} text"}))

    shown = [here.on_a_terminal("submit", "--request", "asked.json")]
    here.run("submit", "--request", "waiting.json", "--detach")
    commands = [("status",), ("status", "hostile"), ("trace", "hostile"), ("logs", "hostile"), ("conflicts",)]
    shown += [here.on_a_terminal(*words) for words in commands]
    shown.append(here.on_a_terminal("cancel", "waiting", "--reason", HOSTILE))
    shown.append(here.on_a_terminal("status", "waiting"))
    ran = [here.run(*words) for words in (("submit", "--request", "asked.json"), ("status",), ("status", "hostile"))]
    shown += [one.stdout + one.stderr for one in ran]
    shown.append(here.run("status", "hostile", "--json").stdout)

    assert [_obeyed(text) for text in shown] == [set()] * len(shown)
    assert [text for text in shown if "Traceback" in text] == []
    assert [text for text in shown if re.search(r"(^|[\r\n]) *9\.9 s  ✓ forged", text)] == []
    assert all("[/nope]" in shown[place] for place in (0, 1, 2, 4))
    document = json.loads(shown[-1])
    assert document["plan"]["goal"] == f"{HOSTILE} goal"


def test_an_output_that_is_json_is_shown_as_json(here: Here):
    (here.folder / "json.json").write_text(_request("json", "slow"))

    shown = re.sub(r"\x1b\[[\d;]*m", "", here.on_a_terminal("submit", "--request", "json.json"))

    assert '\n{\n  "*x*": "[/nope]' in shown
    assert '\n  "list": [\n    1,\n    2\n  ]\n}\n' in shown
