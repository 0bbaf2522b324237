"""tests/guards.toml is true: every line is there once, every test exists, and every invariant has a guard."""

import ast
from pathlib import Path

import pytest

from scripts.mutate import GUARDS, ROOT, Guard, mutated, read_guards

ALL = read_guards(GUARDS)
NAMES = [f"{guard.rule} {Path(guard.file).name} {guard.line.split()[0]} {n}" for n, guard in enumerate(ALL)]


@pytest.mark.parametrize("guard", ALL, ids=NAMES)
def test_a_guard_names_one_place_and_can_be_taken_away(guard: Guard):
    source = (ROOT / guard.file).read_text(encoding="utf-8")

    assert mutated(source, guard) != source


@pytest.mark.parametrize("guard", ALL, ids=NAMES)
def test_a_guard_names_tests_that_exist(guard: Guard):
    assert guard.tests
    for test in guard.tests:
        file, _, name = test.partition("::")
        assert name.partition("[")[0] in functions(file), test


def test_every_invariant_that_holds_by_now_has_a_guard():
    assert {guard.rule for guard in ALL} >= {"I1", "I2", "I3", "I4", "I5", "I10", "I12"}


def test_no_guard_is_listed_twice():
    assert len({(guard.file, guard.line, guard.replace) for guard in ALL}) == len(ALL)


@pytest.mark.parametrize(
    ("line", "replace", "becomes"),
    [
        ("check(a)", None, "def f(a):\n    pass\n    if a:\n        stop(\n            a\n        )\n"),
        ("if a:", None, "def f(a):\n    check(a)\n    pass\n"),
        ("stop(", None, "def f(a):\n    check(a)\n    if a:\n        pass\n"),
        ("if a:", "if not a:", "def f(a):\n    check(a)\n    if not a:\n        stop(\n            a\n        )\n"),
    ],
)
def test_a_statement_is_left_out_whole_or_its_text_replaced(line: str, replace: str | None, becomes: str):
    source = "def f(a):\n    check(a)\n    if a:\n        stop(\n            a\n        )\n"

    assert mutated(source, Guard("I0", "f.py", line, replace, (), 1)) == becomes


@pytest.mark.parametrize(("line", "reason"), [("l", "2 times"), ("gone", "0 times"), ("b", "no statement begins")])
def test_a_line_that_is_not_one_place_is_an_error_of_its_guard(line: str, reason: str):
    source = "def f():\n    call(\n        b,\n    )\n"

    with pytest.raises(ValueError, match=reason):
        mutated(source, Guard("I0", "f.py", line, None, (), 1))


def functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
