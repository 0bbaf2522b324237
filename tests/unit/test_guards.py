"""Every `@guards` names a line that is there once and can be taken away, and every invariant has a guard."""

import ast
import re
from pathlib import Path

import pytest

from scripts.guarded_lines import ROOT, Guard, guards_in, mutated, read_guards

ALL = read_guards()
NAMES = [f"{guard.rule} {Path(guard.file).name} {guard.line.split()[0]} {n}" for n, guard in enumerate(ALL)]
TEST = """
FILE = "a/muster_a/b.py"

@guards(FILE, "check(a)", rule="I1")
@guards("c.py", "x = 1", rule="I2", replace="x = 2", case="b", seconds=30)
@pytest.mark.parametrize("a", "bc")
async def test_one(a): ...

def test_two(): ...
"""


@pytest.mark.parametrize("guard", ALL, ids=NAMES)
def test_a_guard_names_one_place_and_can_be_taken_away(guard: Guard):
    source = (ROOT / guard.file).read_text(encoding="utf-8")

    assert mutated(source, guard) != source


@pytest.mark.parametrize("guard", [guard for guard in ALL if guard.test.endswith("]")], ids=lambda guard: guard.test)
def test_a_guard_that_names_a_case_is_of_a_parametrised_test(guard: Guard):
    file, _, name = guard.test.partition("[")[0].partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))

    (test,) = [
        node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) if node.name == name
    ]

    assert any("parametrize" in ast.unparse(decorator) for decorator in test.decorator_list)


def test_no_guard_is_where_it_is_not_read():
    for path in sorted((ROOT / "tests").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
        used = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "guards"]
        read = guards_in(source, path.name) if path.name.startswith("test_") else []

        assert len(used) == len(read), f"{path}: only a test function at the top of a test file guards a line"


def test_every_promise_has_a_guard_and_every_guard_holds_up_a_promise():
    promises = re.findall(r"^\| (I\d+) \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert {guard.rule for guard in ALL} == set(promises)


def test_no_guard_is_there_twice():
    assert len({(guard.file, guard.line, guard.replace) for guard in ALL}) == len(ALL)


def test_guards_are_read_from_decorators():
    assert guards_in(TEST, "tests/test_a.py") == [
        Guard("I1", "a/muster_a/b.py", "check(a)", None, "tests/test_a.py::test_one", 12),
        Guard("I2", "c.py", "x = 1", "x = 2", "tests/test_a.py::test_one[b]", 30),
    ]


def test_a_guard_whose_argument_is_computed_is_an_error():
    with pytest.raises(ValueError, match=r"test_one: file of its guard is neither a literal nor a constant"):
        guards_in(TEST.replace("FILE,", "FILE + '',"), "tests/test_a.py")


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

    assert mutated(source, Guard("I0", "f.py", line, replace, "", 1)) == becomes


@pytest.mark.parametrize(("line", "reason"), [("l", "2 times"), ("gone", "0 times"), ("b", "no statement begins")])
def test_a_line_that_is_not_one_place_is_an_error_of_its_guard(line: str, reason: str):
    source = "def f():\n    call(\n        b,\n    )\n"

    with pytest.raises(ValueError, match=reason):
        mutated(source, Guard("I0", "f.py", line, None, "", 1))
