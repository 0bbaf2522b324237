"""The tree is the architecture: who may import whom, and which modules only think."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("libs/*/muster", "libs/*/muster_*", "services/*/muster_*", "cli/muster_*")
PACKAGES = sorted(path for folder in FOLDERS for path in ROOT.glob(folder))
MODULES = {
    ".".join((package.name, *path.relative_to(package).with_suffix("").parts)): path
    for package in PACKAGES
    for path in package.rglob("*.py")
}
MAY_IMPORT = {
    "muster_protocol": set[str](),
    "muster_bus": {"muster_protocol"},
    "muster_client": {"muster_protocol", "muster_bus"},
    "muster_agent": {"muster_protocol", "muster_bus"},
    "muster_supervisor": {"muster_protocol", "muster_bus", "muster_client", "muster_agent"},
    "muster_worker": {"muster_protocol", "muster_bus", "muster_client", "muster_agent"},
    "muster_coordinator": {"muster_protocol", "muster_bus", "muster_client"},
}
SERVICES = {"muster_supervisor", "muster_worker", "muster_coordinator"}
MAY_IMPORT["muster_cli"] = {*MAY_IMPORT["muster_supervisor"], *SERVICES}
MAY_IMPORT["muster"] = {*MAY_IMPORT["muster_cli"], "muster_cli"}
MAY_IMPORT["muster_testing"] = {*MAY_IMPORT["muster"], "muster"}  # and nobody may import muster_testing

ONLY_IN = {
    "nats": ("muster_bus.", "muster_testing.backlog"),
    "anthropic": ("muster_agent.models.claude",),
    "openai": ("muster_agent.models.openai",),
    "duckdb": ("muster_agent.tools.database.duck_process",),  # in a process of its own
    "fastapi": ("muster_coordinator.api.",),
    "pytest": ("muster_testing.fixtures",),
}
PURE = [
    *(name for name in MODULES if name.startswith("muster_protocol.")),
    "muster_bus.lanes.turns",
    "muster_supervisor.decide",
    "muster_supervisor.planning.estimate",
    "muster_supervisor.planning.growing",
    "muster_supervisor.planning.lint",
    "muster_supervisor.planning.lint_growth",
    "muster_supervisor.planning.repeated",
    "muster_supervisor.planning.vague",
    "muster_supervisor.planning.briefing",
    "muster_supervisor.planning.draft",
    "muster_supervisor.planning.standing",
    "muster_supervisor.planning.verdict",
    "muster_supervisor.poison",
    "muster_supervisor.planning.routing",
    "muster_supervisor.calling.content",
    "muster_supervisor.choosing.choose",
    "muster_supervisor.choosing.providers",
    "muster_supervisor.choosing.unserved",
    "muster_supervisor.choosing.window",
    "muster_supervisor.composing.final",
    "muster_supervisor.composing.fit",
    "muster_supervisor.composing.merge",
    *(name for name in MODULES if name.startswith("muster_supervisor.checking.")),
    "muster_coordinator.conflicts.judge",
    *(
        name
        for name in MODULES
        if name.startswith("muster_client.timeline.") and not name.endswith((".read", "__init__"))
    ),
    "muster_coordinator.conflicts.evidence",
    "muster_coordinator.conflicts.trails",
]
STANDARD = {
    "abc",
    "bisect",
    "collections",
    "dataclasses",
    "difflib",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "hmac",
    "ipaddress",
    "itertools",
    "json",
    "math",
    "re",
    "typing",
}
THINKS_ONLY = {*STANDARD, "pydantic", "pydantic_core", "muster_protocol"}
# What a team file says, the text of an output, and the schema that it is to fit.
VALUES = {
    "muster_agent.team.schema",
    "muster_agent.models.port",
    "muster_agent.models.standing",
    "muster_agent.spawning",
    "muster_agent.output_schema",
}
READS_THE_ENVIRONMENT = {
    *(f"{service}.__main__" for service in SERVICES),
    "muster_cli.main",
    "muster.running",  # a team in a user's own program, which has no `__main__` of ours
    "muster.serving",
    "muster_client.client",  # a program that names no broker
    "muster_agent.isolation.environment",  # a child process gets a part of it
    "muster_cli.local.processes",
    "muster_cli.local.worker_process",  # a child process inherits the environment
    "muster_testing.starting",
    "muster_testing.starter",  # as above
    "muster_testing.roles",  # its process alone knows the test's folder
}
ACTS = {"open", "print", "input", "exec", "eval", "__import__"}


def imported(path: Path) -> Iterator[str]:
    """Every module that a file names, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module)):
                yield module
            case _:
                pass


def test_import_linter_keeps_its_contracts(tmp_path: Path):
    """In a process of its own: it sets logging up, and makes every logger deaf that is there by then."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--cache-dir", tmp_path]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert ran.returncode == 0, ran.stdout


def test_every_package_has_its_place():
    assert {package.name for package in PACKAGES} == set(MAY_IMPORT)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_arrows_point_down_only(name: str):
    package = name.partition(".")[0]
    ours = {module.partition(".")[0] for module in imported(MODULES[name])} & MAY_IMPORT.keys()

    assert ours <= {package, *MAY_IMPORT[package]}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_package_requires_none_of_ours_that_it_does_not_import(package: Path):
    project = tomllib.loads((package.parent / "pyproject.toml").read_text())["project"]
    required = {re.split(r"[^\w-]", name)[0].replace("-", "_") for name in project["dependencies"]}
    named = {module.partition(".")[0] for path in package.rglob("*.py") for module in imported(path)}

    assert {name for name in required if name in MAY_IMPORT} <= named


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_nothing_that_is_deployed_requires_what_is_for_tests(package: Path):
    project = tomllib.loads((package.parent / "pyproject.toml").read_text())["project"]
    required = [project["dependencies"], *project.get("optional-dependencies", {}).values()]

    assert "muster-testing" not in " ".join(name for names in required for name in names)


def test_only_the_group_for_development_installs_what_is_for_tests():
    root = tomllib.loads((ROOT / "pyproject.toml").read_text())

    assert root["project"]["dependencies"] == ["muster"]
    assert "muster-testing" in root["dependency-groups"]["dev"]


@pytest.mark.parametrize("library", sorted(ONLY_IN))
def test_a_library_is_known_in_one_place_only(library: str):
    knowing = {name for name, path in MODULES.items() if library in {m.partition(".")[0] for m in imported(path)}}

    assert knowing
    assert all(name.startswith(ONLY_IN[library]) for name in knowing)


@pytest.mark.parametrize("name", sorted(PURE))
def test_what_decides_imports_nothing_that_can_act(name: str):
    others = set(imported(MODULES[name])) - VALUES - set(PURE)

    assert {module.partition(".")[0] for module in others} <= THINKS_ONLY


@pytest.mark.parametrize("name", sorted(PURE))
def test_what_decides_calls_nothing_that_acts(name: str):
    tree = ast.parse(MODULES[name].read_text())
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}

    assert not called & ACTS
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]


def test_the_environment_is_read_where_a_process_starts_and_nowhere_else():
    reading = {name for name, path in MODULES.items() if names_the_environment(path)}

    assert reading == READS_THE_ENVIRONMENT


def names_the_environment(path: Path) -> bool:
    words = {"environ", "environb", "getenv", "getenvb"}
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=attribute) if attribute in words:
                return True
            case ast.ImportFrom(module="os", names=names) if words & {name.name for name in names}:
                return True
            case _:
                pass
    return False
