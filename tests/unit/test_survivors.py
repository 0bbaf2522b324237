"""The program that takes conditions away finds each of them, and the tests that are nearest to it."""

import ast

import pytest

from scripts.conditions import changes
from scripts.guarded_lines import ROOT
from scripts.nearest_tests import Nearest

SOURCE = """
def f(a, b):
    while a and not b:
        a = "ß" if b else None
    if a:
        a = b or 0
        return [x for x in a if x > 1 if b]
    match a:
        case int() if a or b: ...
"""
EXPECTED = {
    "3: a and not b  →  False",
    "3: a  →  left out",
    "3: not b  →  left out",
    "4: b  →  False",
    "5: a  →  False",
    "6: b  →  left out",
    "7: x > 1  →  True",
    "7: b  →  True",
    "9: a or b  →  False",
    "9: a  →  left out",
    "9: b  →  left out",
}


def test_every_condition_is_taken_away_once():
    found = list(changes(SOURCE))

    assert {str(change) for change in found} == EXPECTED
    assert len(found) == len(EXPECTED)


def test_nothing_else_is_changed():
    (change,) = [change for change in changes(SOURCE) if change.text == "b" and change.line == 4]

    assert change.source == SOURCE.replace('"ß" if b else', '"ß" if False else')


@pytest.mark.parametrize("source", ["if TYPE_CHECKING:\n    import x\n", "while True:\n    pass\n", "x = 1\n"])
def test_what_is_no_condition_is_left_alone(source: str):
    assert not list(changes(source))


def test_each_change_of_our_own_sources_can_be_parsed():
    for path in sorted((ROOT / "libs" / "protocol").rglob("*.py")):
        for change in changes(path.read_text(encoding="utf-8")):
            ast.parse(change.source)


def test_the_tests_that_import_a_module_come_first_and_those_of_whole_services_last():
    file = "libs/protocol/muster_protocol/retry.py"
    near = [test for group in Nearest.of(ROOT, has_services=False).groups(file) for test in group]
    whole = [test for group in Nearest.of(ROOT, has_services=True).groups(file) for test in group]

    assert "tests/unit/protocol/test_retry.py" in near[:12]
    assert "tests/unit/protocol/test_fold.py" in near
    assert not [test for test in near if test.startswith("tests/flow/")]
    assert whole[-1].startswith("tests/flow/")
