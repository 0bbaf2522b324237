"""What a model is told: texts with blanks."""

import pytest

from muster_agent.models.prompts.text import TEXTS, text_of


def test_a_paragraph_of_which_nothing_is_known_is_left_out():
    draft, mistakes = "the draft", "- no tasks"

    assert (
        text_of("repair", draft="", mistakes=mistakes)
        == f"It was refused. These are all of its mistakes; mend each, and change nothing else:\n{mistakes}"
    )
    assert text_of("repair", draft=draft, mistakes="") == f"Your last plan:\n{draft}"


def test_what_is_filled_in_is_not_looked_at_again():
    assert text_of("repair", draft="costs $mistakes\n\n$5", mistakes="").endswith("costs $mistakes\n\n$5")


def test_a_blank_that_nobody_fills_is_an_error():
    with pytest.raises(KeyError):
        text_of("repair", draft="the draft")


def test_every_text_ends_in_one_line_break_and_has_no_spaces_at_the_end_of_a_line():
    for path in TEXTS.glob("*.md"):
        lines = path.read_text(encoding="utf-8").split("\n")

        assert lines[-1] == "", path.name
        assert [line for line in lines if line != line.rstrip()] == [], path.name
        assert lines[-2] != "", path.name
