"""The rules of the fold about owners: terms, takes without progress, and hand-backs."""

from tests.guards import guards
from tests.unit.protocol.log_builder import (
    LogBuilder,
    answer,
    plan_entry,
    plan_of,
    planned,
    reserved,
    statuses,
    taken,
    task,
)


def test_i2_what_a_former_owner_writes_after_a_later_taken_is_ignored():
    log = planned(task("t"))
    former = log.term
    log.take("s2", delivery=2)

    log.own(reserved(("t", 1)), term=former)
    log.own(answer("too late"), term=former)

    assert statuses(log.state) == {"t": "ready"}
    assert log.state.answer is None
    assert log.state.owner == "s2"


def test_a_request_that_is_answered_keeps_its_owner():
    log = planned(task("t"))
    log.own(answer())

    log.take("s2", delivery=2)

    assert log.state.owner == "s1"


def test_a_plan_that_no_supervisor_wrote_is_ignored():
    log = LogBuilder()
    log.take()

    log.write(plan_entry(plan_of(task("t"))), sender="worker/w1/work", term=log.term)

    assert log.state.plan_entry is None


def test_a_request_that_cannot_be_read_is_answered_without_being_taken():
    log = LogBuilder()

    log.own(answer("The request is invalid."))

    assert log.state.answer is not None


@guards(
    "libs/protocol/muster_protocol/fold/state.py",
    "return max(0, delivery - self.last_productive_delivery - 1)",
    rule="I1",
    replace="return 0",
)
def test_takes_without_progress_are_counted_until_there_is_progress():
    log = LogBuilder()
    for delivery in (1, 2, 3):
        log.take(f"s{delivery}", delivery)
    assert log.state.unproductive_takes(4) == 3

    log.own(plan_entry(plan_of(task("t"))))

    assert log.state.unproductive_takes(4) == 0


@guards("libs/protocol/muster_protocol/fold/terms.py", "state.lone_takes |= {body.delivery}", rule="I1", replace="pass")
def test_lone_takes_are_counted_apart_until_there_is_progress():
    log = LogBuilder()
    log.take("s1", 1)
    log.take_alone("s2", 2)
    log.take_alone("s3", 3)
    log.write(taken("s3", 3, alone=True), sender="supervisor/s3")  # stored twice

    assert (log.state.lone_takes_in_vain(3), log.state.lone_takes_in_vain(4)) == (1, 2)
    assert (log.state.owner, log.state.term) == ("s3", log.term)

    log.own(plan_entry(plan_of(task("t"))))

    assert log.state.lone_takes_in_vain(4) == 0


def test_a_lone_take_of_another_message_does_not_count():
    log = LogBuilder()
    log.take("s1", 1)

    log.write(taken("s2", 2, alone=True).model_copy(update={"request_sequence": 9}), sender="supervisor/s2")

    assert log.state.lone_takes_in_vain(3) == 0


def test_takes_of_the_next_message_are_counted_anew():
    log = LogBuilder()
    log.take("s1", 1)
    log.take_alone("s2", 2)

    log.write(taken("s3", 3).model_copy(update={"request_sequence": 9}), sender="supervisor/s3")

    assert log.state.lone_takes_in_vain(4) == 0


def test_a_clean_hand_back_is_not_an_unproductive_take():
    log = LogBuilder()
    log.take("s1", 1)

    log.own(taken("s1", 1, handed_back=True))

    assert log.state.owner is None
    assert log.state.unproductive_takes(2) == 0


def test_a_hand_back_without_a_take_is_not_an_unproductive_take():
    log = LogBuilder()
    log.take("s1", 1)
    log.write(taken("s2", 2, handed_back=True), sender="supervisor/s2")

    assert log.state.owner == "s1"
    assert log.state.unproductive_takes(3) == 0


def test_a_hand_back_of_a_former_owner_leaves_the_owner_alone():
    log = LogBuilder()
    former = log.take("s1", 1)
    log.take("s2", 2)

    log.own(taken("s1", 1, handed_back=True), term=former)

    assert log.state.owner == "s2"
