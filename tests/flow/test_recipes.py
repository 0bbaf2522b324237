"""The recipes are run as they stand: the team of the page, and each command with what it prints."""

import json
import re
import shlex
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.flow.command_line import Here
from tests.flow.test_readme import address, dialogues, files, python
from tests.harness import ROOT

PAGE = "docs/recipes.md"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Generator[Here]:
    """`muster up` with the team of the page."""
    here = Here(tmp_path_factory.mktemp("office"))
    for name, text in files(PAGE).items():
        (here.folder / name).write_text(text, encoding="utf-8")
    with here.up():
        here.env |= {"MUSTER_NATS_URL": address(here), "MUSTER_TEAM": "office"}
        yield here


def test_every_recipe_prints_what_the_page_says(office: Here):
    for command, printed in dialogues(PAGE):
        program, *words = re.split(r" +", command)

        ran = office.run(*words) if program == "muster" else python(office, *words)

        assert (ran.stdout, ran.returncode) == (printed, 0), f"{command}: {ran.stderr}"


def test_the_plan_of_the_pipeline_has_nothing_wrong(office: Here):
    ran = office.run("plan", "--plan", "pipeline.json")

    assert ran.returncode == 0, ran.stderr
    assert "warning" not in ran.stdout
    assert "└ load  [loader]  Put the rows away" in ran.stdout


def test_a_review_asks_what_the_first_results_leave_open(tmp_path: Path):
    here = Here(tmp_path)
    for path in (ROOT / "examples" / "review").glob("*.*"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    ((command, printed),) = dialogues("examples/review/README.md")
    with here.up():
        ran = here.run(*shlex.split(command)[1:])

    assert (ran.stdout, ran.returncode) == (printed, 0), ran.stderr
    assert "a review of the results added 1 task (answer): 1 question left open" in ran.stderr


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Generator[Here]:
    """`muster up` with the team that reads pages."""
    here = Here(tmp_path_factory.mktemp("crawl"))
    shutil.copytree(ROOT / "examples" / "crawl", here.folder, dirs_exist_ok=True)
    with here.up():
        here.env |= {"MUSTER_NATS_URL": address(here), "MUSTER_TEAM": "crawl"}
        yield here


def test_the_crawl_reads_every_page_that_can_be_reached_once(crawl: Here):
    ((command, printed),) = dialogues("examples/crawl/README.md")
    _, *words = command.split()

    ran = crawl.run(*words)
    assert (ran.stdout, ran.returncode) == (printed, 0), ran.stderr

    answer = json.loads(crawl.run(*words, "--json").stdout)
    assert {row["id"] for row in answer["tasks"]} == {"home", "wheat", "rye", "sourdough", "index"}
    status = crawl.run("status", answer["request_id"]).stdout
    assert re.search(r"sourdough .*added by rye", status), status
    logs = crawl.run("logs", answer["request_id"]).stdout
    assert re.search(r"plan    .*\(spawned:home\)", logs), logs


def test_a_report_is_made_of_tables_and_files_and_written_into_one(tmp_path: Path):
    here = Here(tmp_path)
    shutil.copytree(ROOT / "examples" / "research", here.folder, dirs_exist_ok=True)
    ((command, printed),) = dialogues("examples/research/README.md")
    with here.up():
        ran = here.run(*command.split()[1:])

    assert (ran.stdout, ran.returncode) == (printed, 0), ran.stderr
    assert (here.folder / "documents" / "report.md").read_text(encoding="utf-8").strip() == printed.strip()
