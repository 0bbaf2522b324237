"""What provisioning changes in a stream: it adds and raises, in any order, and refuses what would lose something."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from nats.js.api import RetentionPolicy, StorageType, StreamConfig

from muster_bus.broker.compare import changes
from muster_protocol.errors import Misconfigured
from tests.guards import guards

COMPARE = "libs/bus/muster_bus/broker/compare.py"
TASKS = StreamConfig("TASKS", subjects=["tasks.a"], retention=RetentionPolicy.WORK_QUEUE, storage=StorageType.FILE)


def wish(subjects: list[str], replicas: int | None, age: float | None) -> StreamConfig:
    return replace(TASKS, subjects=subjects, num_replicas=replicas, max_age=age)


wishes = st.builds(
    wish,
    st.lists(st.sampled_from(["tasks.a", "tasks.b", "tasks.c", "tasks.d"]), max_size=4),
    st.sampled_from([None, 1, 3, 5]),
    st.sampled_from([None, 0.0, 60.0, 120.0]),
)


def changed(existing: StreamConfig, wanted: StreamConfig) -> StreamConfig:
    return replace(existing, **{change.field: change.after for change in changes(existing, wanted)})


@given(wishes, wishes)
def test_what_was_changed_once_is_not_changed_again(existing: StreamConfig, wanted: StreamConfig):
    try:
        after = changed(existing, wanted)
    except Misconfigured:
        assume(False)
        return

    assert changes(after, wanted) == []


@given(wishes, wishes)
def test_nothing_that_was_there_is_taken_away(existing: StreamConfig, wanted: StreamConfig):
    try:
        after = changed(existing, wanted)
    except Misconfigured:
        assume(False)
        return

    assert set(after.subjects or []) >= {*(existing.subjects or []), *(wanted.subjects or [])}
    assert (after.num_replicas or 1) == max(existing.num_replicas or 1, wanted.num_replicas or 1)
    assert (after.max_age or float("inf")) >= (existing.max_age or float("inf"))


@given(st.permutations(["tasks.b", "tasks.c", "tasks.d"]))
def test_the_order_of_those_who_add_does_not_matter(order: list[str]):
    existing = TASKS
    for subject in order:
        existing = changed(existing, replace(TASKS, subjects=[subject]))

    assert existing.subjects == ["tasks.a", "tasks.b", "tasks.c", "tasks.d"]


@guards(COMPARE, 'FIXED = ("retention", "storage")', rule="I1", replace="FIXED = ()", case="storage")
@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        (
            "retention",
            RetentionPolicy.LIMITS,
            "stream TASKS exists with retention = limits, but Muster needs workqueue",
        ),
        ("storage", StorageType.MEMORY, "stream TASKS exists with storage = memory, but Muster needs file"),
    ],
    ids=["retention", "storage"],
)
def test_what_the_broker_never_changes_is_refused_with_the_way_out(field: str, value: object, text: str):
    with pytest.raises(Misconfigured, match=f"{text}; .* change or remove it by hand, then provision again"):
        changes(replace(TASKS, **{field: value}), TASKS)


def test_a_change_is_told_with_both_values_or_with_what_is_new_in_a_list():
    wanted = replace(TASKS, subjects=["tasks.b"], num_replicas=3)

    assert [str(change) for change in changes(replace(TASKS, max_age=60.0), wanted)] == [
        "max_age from 60.0 to None",
        "subjects with tasks.b added",
        "num_replicas from 1 to 3",
    ]
