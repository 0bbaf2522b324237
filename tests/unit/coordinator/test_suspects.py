"""Subjects on which something unusable was heard."""

from muster_coordinator.recheck import SETTLED_SECONDS, Recheck


def _looks(recheck: Recheck, start: float, until: float) -> list[float]:
    """The times at which a look at `events.r1` was due, asked every tenth of a second."""
    found: list[float] = []
    now = start
    while now < until:
        if recheck.next(now) == "events.r1":
            recheck.looked("events.r1", now)
            found.append(round(now, 1))
        now += 0.1
    return found


def test_a_subject_is_looked_at_ever_less_often_until_it_has_been_quiet_for_long():
    recheck = Recheck()
    recheck.hear("events.r1", 0.0)

    looks = _looks(recheck, 0.0, 60.0)

    assert looks[0] == 0.0
    assert len(looks) <= 9
    assert looks[-1] >= SETTLED_SECONDS
    assert len(recheck) == 0


def test_what_is_heard_anew_is_looked_at_anew():
    recheck = Recheck()
    recheck.hear("events.r1", 0.0)
    _looks(recheck, 0.0, 10.0)
    recheck.hear("events.r1", 10.0)

    assert _looks(recheck, 10.0, 11.0)[0] == 10.0


def test_what_is_heard_during_a_look_is_looked_at_once_more():
    recheck = Recheck()
    recheck.hear("events.r1", 0.0)
    recheck.next(20.0)
    recheck.hear("events.r1", 20.1)
    recheck.looked("events.r1", 20.0)

    assert recheck.next(20.2) == "events.r1"


def test_a_look_that_fails_lets_the_others_go_first():
    recheck = Recheck()
    recheck.hear("events.r1", 0.0)
    recheck.hear("events.r2", 0.0)

    assert [recheck.next(0.0), recheck.next(0.0), recheck.next(0.0)] == ["events.r1", "events.r2", None]
    assert recheck.next(1.0) == "events.r1"
