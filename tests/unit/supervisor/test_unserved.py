"""Tags that nobody serves: named once, and given up while there is time for the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_protocol.attempt_id import AttemptId
from muster_protocol.fold import RequestState
from muster_protocol.workers.card import FORGOTTEN_SECONDS, WorkerCard
from muster_protocol.workers.signs import Signs
from muster_supervisor.choosing.unserved import LONGEST_WAIT_SECONDS, UnservedTags, given_up, nobody, wait_seconds
from tests.unit.cli.logs import Log, task

AT = 1000.0
WAITING = {"research": [AttemptId("r1", "t1", 1)]}


def signs(*tags: str) -> Signs:
    return Signs(AT, {"w1": WorkerCard(name="w1", tags=tags, slots=1, renewed_at=AT)})


def test_a_tag_without_a_worker_is_named_once_and_again_when_a_worker_has_come():
    unserved = UnservedTags()

    (first,) = unserved.look(signs("maths"), WAITING)
    again = unserved.look(signs("maths"), WAITING)
    (back,) = unserved.look(signs("research"), WAITING)

    assert "'research' is served by no live worker, and r1.t1.1 waits for one; start a worker of that tag" in first.text
    assert first.about == WAITING["research"][0]
    assert again == []
    assert "served again" in back.text
    assert unserved.since == {}


def test_nothing_is_said_of_a_tag_on_which_nothing_waits():
    assert UnservedTags().look(signs("maths"), {}) == []


@given(st.floats(1, 100_000), st.floats(0, 100_000))
def test_a_wait_leaves_half_of_the_time_and_lasts_a_minute_at_most(deadline: float, since: float):
    state = RequestState("r1", base_deadline=deadline, started_at=0.0)

    seconds = wait_seconds(state, since)

    assert FORGOTTEN_SECONDS <= seconds <= LONGEST_WAIT_SECONDS
    assert seconds <= max(FORGOTTEN_SECONDS, (deadline - since) / 2)


def test_only_what_has_waited_long_enough_and_has_no_result_is_given_up():
    state = Log().taken().planned(task("t1")).reserved("t1").state()
    since = state.tasks["t1"].attempts[0].reserved_at
    end = since + wait_seconds(state, since)

    assert given_up(state, "research", since, end - 1) == []
    assert given_up(state, "maths", since, end) == []
    assert [one.task_id for one in given_up(state, "research", since, end)] == ["t1"]


@pytest.mark.parametrize(("others", "is_final"), [([], True), (["writer"], False)])
def test_it_has_failed_for_good_unless_another_role_can_do_it(others: list[str], is_final: bool):
    assert nobody("research", 60, others).is_final is is_final
