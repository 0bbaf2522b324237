"""I6, several coordinators: whoever sees what and whoever is refused, one decision stands; and who is asked, when."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from muster_coordinator.conflicts.judge import Asked, judge, merge, roll_call, undecided
from muster_coordinator.conflicts.trails import Sighting
from muster_protocol.conflict import Conflict
from tests.unit.coordinator.sightings import DISPATCHED, NOW, STARTED, record_of, seen, side


class Live(NamedTuple):
    """A side that runs and answers the roll call."""

    worker: str
    delivery: int
    message: int
    started_at: int

    def signs(self) -> list[Sighting]:
        start = seen(STARTED, self.started_at, self.worker, self.delivery, self.message)
        return [start, start._replace(at=50.0)]


live = st.builds(Live, st.sampled_from("abcdef"), st.integers(1, 2), st.integers(7, 9), st.integers(1, 30))
teams = st.lists(live, min_size=2, max_size=6, unique_by=lambda one: one[:3])


def _record(sides: list[Live]) -> Conflict:
    return record_of(*(sign for one in sides for sign in one.signs()))


@given(teams, st.data())
def test_two_coordinators_of_which_one_is_refused_never_stop_all_live_sides(sides: list[Live], data: st.DataObject):
    some = st.lists(st.sampled_from(sides), min_size=1, unique=True)
    one, other = _record(data.draw(some)), _record(data.draw(some))
    stored, refused = judge(one, NOW), judge(other, NOW)
    if stored is None or refused is None:
        return

    assert merge(stored, refused).stops == stored.stops
    by_one = judge(merge(stored, merge(undecided(refused), one)), NOW)
    by_other = judge(merge(stored, other), NOW)

    assert by_one == by_other
    assert by_one is not None
    assert by_one.stops[: len(stored.stops)] == stored.stops
    running = {found.id for found in by_one.sides} - set(by_one.stops)
    assert len(running) == 1
    assert by_one.keep is None or running == {by_one.keep}


def test_a_roll_call_is_repeated_after_one_two_and_four_seconds_and_no_more():
    record = record_of(seen(STARTED, 1, "w1"), seen(STARTED, 2, "w2", 2))
    asked, at = roll_call(record, None, 10.0), [10.0]
    for tenth in range(101, 300):
        again = roll_call(record, asked, tenth / 10)
        if again is not None:
            asked = again
            at.append(tenth / 10)

    assert at == [10.0, 11.0, 13.0, 17.0]


def test_a_roll_call_begins_anew_when_the_sides_change_or_a_silent_one_shows_up():
    two = seen(STARTED, 1, "w1"), seen(STARTED, 2, "w2", 2)
    asked = roll_call(record_of(*two), None, 10.0)
    assert asked == Asked(frozenset({side("w1"), side("w2", 2)}), 10.0, 10.0)

    third = roll_call(record_of(*two, seen(STARTED, 10.1, "w3", 3)), asked, 10.1)
    late = roll_call(record_of(*two, seen(STARTED, 12.5, "w1")), asked, 12.5)

    assert third is not None
    assert len(third.sides) == 3
    assert late is not None
    assert (late.at, late.repeats) == (12.501, 0)


def test_whoever_may_run_a_dispatched_message_is_asked_although_its_start_was_not_seen():
    untaken, copy = seen(DISPATCHED, 1, message=7), seen(STARTED, 2, "w2", message=8)

    asked = roll_call(record_of(untaken, copy), None, NOW)

    assert asked is not None
    assert asked.sides == {side("w2", message=8)}
    answers = [seen(STARTED, NOW + 1, "w1", message=7), copy._replace(at=NOW + 1.001)]
    found = judge(record_of(untaken, copy, *answers), NOW + 1.1)
    again = roll_call(record_of(untaken, copy, *answers), asked, NOW + 1.1)
    assert found is not None
    assert again is not None
    assert again.sides == {side("w1", message=7), side("w2", message=8)}
    assert roll_call(record_of(untaken), None, NOW) is None


def test_nobody_is_asked_again_once_it_is_decided_and_nobody_at_all_without_a_rival():
    record = record_of(seen(STARTED, 1, "w1"), seen(STARTED, 2, "w2", 2))
    decided = record.model_copy(update={"stops": (side("w1"),)})

    assert roll_call(decided, roll_call(record, None, 10.0), 11.0) is None
    assert roll_call(record_of(seen(STARTED, 1, "w1")), None, 10.0) is None
