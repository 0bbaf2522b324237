"""Subjects on which something unusable was heard."""

from muster_coordinator.recheck import SETTLED_SECONDS, Suspects


def _looks(suspects: Suspects, start: float, until: float) -> list[float]:
    """The times at which a look at `events.r1` was due, asked every tenth of a second."""
    found: list[float] = []
    now = start
    while now < until:
        if suspects.next(now) == "events.r1":
            suspects.looked("events.r1", now)
            found.append(round(now, 1))
        now += 0.1
    return found


def test_a_subject_is_looked_at_ever_less_often_until_it_has_been_quiet_for_long():
    suspects = Suspects()
    suspects.hear("events.r1", 0.0)

    looks = _looks(suspects, 0.0, 60.0)

    assert looks[0] == 0.0
    assert len(looks) <= 9
    assert looks[-1] >= SETTLED_SECONDS
    assert len(suspects) == 0


def test_what_is_heard_anew_is_looked_at_anew():
    suspects = Suspects()
    suspects.hear("events.r1", 0.0)
    _looks(suspects, 0.0, 10.0)
    suspects.hear("events.r1", 10.0)

    assert _looks(suspects, 10.0, 11.0)[0] == 10.0


def test_what_is_heard_during_a_look_is_looked_at_once_more():
    suspects = Suspects()
    suspects.hear("events.r1", 0.0)
    suspects.next(20.0)
    suspects.hear("events.r1", 20.1)
    suspects.looked("events.r1", 20.0)

    assert suspects.next(20.2) == "events.r1"


def test_a_look_that_fails_lets_the_others_go_first():
    suspects = Suspects()
    suspects.hear("events.r1", 0.0)
    suspects.hear("events.r2", 0.0)

    assert [suspects.next(0.0), suspects.next(0.0), suspects.next(0.0)] == ["events.r1", "events.r2", None]
    assert suspects.next(1.0) == "events.r1"
