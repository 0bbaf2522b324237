"""Subjects on which an unusable message came."""

from muster_coordinator.recheck import QUIET_SECONDS, Recheck


def _checks(recheck: Recheck, start: float, until: float) -> list[float]:
    """The times at which a check of `events.r1` was due, asked every tenth of a second."""
    found: list[float] = []
    now = start
    while now < until:
        if recheck.take_due(now) == "events.r1":
            recheck.mark_checked("events.r1", now)
            found.append(round(now, 1))
        now += 0.1
    return found


def test_a_subject_is_checked_less_and_less_often_until_no_unusable_message_came_for_a_while():
    recheck = Recheck()
    recheck.add("events.r1", 0.0)

    checks = _checks(recheck, 0.0, 60.0)

    assert checks[0] == 0.0
    assert len(checks) <= 9
    assert checks[-1] >= QUIET_SECONDS
    assert len(recheck) == 0


def test_a_new_unusable_message_starts_the_checks_again():
    recheck = Recheck()
    recheck.add("events.r1", 0.0)
    _checks(recheck, 0.0, 10.0)
    recheck.add("events.r1", 10.0)

    assert _checks(recheck, 10.0, 11.0)[0] == 10.0


def test_a_message_that_comes_during_a_check_gets_another_check():
    recheck = Recheck()
    recheck.add("events.r1", 0.0)
    recheck.take_due(20.0)
    recheck.add("events.r1", 20.1)
    recheck.mark_checked("events.r1", 20.0)

    assert recheck.take_due(20.2) == "events.r1"


def test_after_a_failed_check_the_other_subjects_come_first():
    recheck = Recheck()
    recheck.add("events.r1", 0.0)
    recheck.add("events.r2", 0.0)

    assert [recheck.take_due(0.0), recheck.take_due(0.0), recheck.take_due(0.0)] == ["events.r1", "events.r2", None]
    assert recheck.take_due(1.0) == "events.r1"
