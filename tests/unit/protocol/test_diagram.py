"""The diagram in docs/protocol.md is the transition table."""

from muster_protocol.fold.rules import ENTRIES, TRANSITIONS, WRITERS
from muster_protocol.fold.state import FINAL, TaskPhase
from muster_protocol.messages import LOG_KINDS
from scripts.diagram import PAGE, with_diagram


def test_the_page_shows_the_table_as_it_is():
    page = PAGE.read_text(encoding="utf-8")

    assert page == with_diagram(page), "run: python scripts/diagram.py"


def test_every_kind_of_entry_has_a_writer_and_a_meaning():
    assert set(WRITERS) == set(ENTRIES) == set(LOG_KINDS.values())


def test_a_final_phase_is_never_left_and_every_other_one_can_be():
    left = {before for before, _ in TRANSITIONS}

    assert left == set(TaskPhase) - FINAL
