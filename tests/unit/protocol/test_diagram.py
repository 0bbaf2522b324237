"""The diagram in docs/protocol.md is the transition table."""

from muster_protocol.fold.moves import TRANSITIONS, Cause
from muster_protocol.fold.rules import ENTRIES
from muster_protocol.fold.state import FINAL, TaskPhase
from muster_protocol.fold.writers import WRITERS
from muster_protocol.messages import LOG_KINDS
from scripts.diagram import PAGE, with_diagram


def test_the_page_shows_the_table_as_it_is():
    page = PAGE.read_text(encoding="utf-8")

    assert page == with_diagram(page), "run: python scripts/diagram.py"


def test_every_kind_of_entry_has_a_writer_and_a_meaning():
    assert set(WRITERS) == set(ENTRIES) == set(LOG_KINDS.values())


def test_done_is_never_left_and_what_ended_otherwise_only_by_a_late_success_or_a_person():
    left = {before for before, _ in TRANSITIONS}
    late = {(before, cause) for before, cause in TRANSITIONS if before in FINAL}

    assert left == set(TaskPhase) - {TaskPhase.DONE}
    assert late == {
        (TaskPhase.FAILED, Cause.SUCCEEDED_LATE),
        (TaskPhase.SKIPPED, Cause.DEPENDENCY_RECOVERED),
        (TaskPhase.FAILED, Cause.RETRIED),
        (TaskPhase.FAILED, Cause.REASSIGNED),
    }
