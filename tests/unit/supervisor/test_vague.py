"""Vague descriptions are told from plain ones: measured on labelled lists, of which one was never used for tuning."""

import time
from pathlib import Path

import pytest

from muster_supervisor.planning.vague import is_vague

LISTS = Path(__file__).parent / "vague"


def labelled(name: str) -> list[tuple[bool, str]]:
    lines = [line for line in (LISTS / f"{name}.txt").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    return [(label == "vague", text) for label, text in (line.split("  ", 1) for line in lines)]


@pytest.mark.parametrize(("name", "count"), [("labelled", 100), ("held-out", 40)])
def test_what_is_called_vague_is_vague_and_little_that_is_vague_is_missed(name: str, count: int):
    descriptions = labelled(name)
    called = [is_really for is_really, text in descriptions if is_vague(text)]

    precision = sum(called) / len(called)
    recall = sum(called) / sum(is_really for is_really, _ in descriptions)

    assert len(descriptions) == count
    assert precision >= 0.9
    assert recall >= 0.8


@pytest.mark.parametrize(
    "text", ["Bewerte die Daten", "analysiere die Zahlen", "データを分析する", "process notes/a.md", "review `count`"]
)
def test_what_says_something_that_the_rules_do_not_know_is_not_called_vague(text: str):
    assert not is_vague(text)
    assert is_vague("?! 42")


@pytest.mark.parametrize("part", ["a", "a-", "-", "aA", "A ", "1,"])
def test_a_long_description_takes_as_long_as_it_is(part: str):
    """Anybody may write it; the loop of the supervisor stands still meanwhile."""
    began = time.thread_time()

    is_vague(part * 100_000)

    assert time.thread_time() - began < 5  # in quadratic time it would be a minute
