"""Where a plan that grows meets what goes on at the same time: tasks that are just being given out."""

import asyncio

from muster_protocol.messages import (
    Extended,
    Failure,
    GrowthLimits,
    PlanRecorded,
    Reservation,
    Reserved,
)
from muster_protocol.plan import Plan, TaskSpec
from muster_supervisor.decide import DispatchTasks
from muster_supervisor.steps.dispatch import dispatch
from muster_supervisor.steps.expire import fail_attempt
from tests.flow.in_process import connected, owner_of
from tests.guards import guards
from tests.harness import Muster

DISPATCH = "services/supervisor/muster_supervisor/steps/dispatch.py"
TASKS = (
    TaskSpec(id="a", description="{}", tag="scripted", max_attempts=1),
    TaskSpec(id="b", description="{}", tag="scripted", dependencies=("a",)),
    TaskSpec(id="c", description="{}", tag="scripted"),
    TaskSpec(id="d", description="{}", tag="scripted"),
)
FAILED = Failure(error_class="logic", message="no such book", is_final=True)


def reservation(task_id: str) -> Reservation:
    return Reservation(task_id=task_id, attempt=1, timeout_seconds=30)


@guards(DISPATCH, "for r in attempts if r.task_id in tasks", rule="I1", replace="for r in attempts", seconds=20)
async def test_a_task_that_leaves_the_plan_while_it_is_given_out_harms_no_other(muster: Muster) -> None:
    async with connected(muster, "here") as bus:
        owner = owner_of(muster, bus, 1)
        await owner.log.open()
        await owner.take()
        plan = PlanRecorded(
            plan=Plan(tasks=TASKS),
            team="default",
            request_hash="hash",
            deadline=owner.deadline,
            in_flight=8,
            growth=GrowthLimits(replacements=1),
        )
        await owner.compare_and_set(plan)
        await owner.append(Reserved(attempts=(reservation("a"),)))
        await fail_attempt(owner, owner.state.attempt_id("a", 1), FAILED)
        assert list(owner.state.growing) == ["failure:a"]

        step = DispatchTasks((reservation("c"), reservation("d")))
        await asyncio.gather(owner.append(Extended(cause="failure:a", drop=("b", "c"))), dispatch(owner, step))

        assert (set(owner.state.tasks), owner.state.in_flight) == ({"a", "d"}, 1)
        await dispatch(owner, DispatchTasks((reservation("b"),)))  # that was decided just before
        owner.check()
        await owner.close()


async def test_what_the_fold_refused_can_be_reserved_again(muster: Muster) -> None:
    """The broker drops a message whose id it has seen: a second reservation of one attempt must not have it."""
    async with connected(muster, "here") as bus:
        owner = owner_of(muster, bus, 1)
        await owner.log.open()
        await owner.take()

        first = await owner.append(Reserved(attempts=(reservation("a"),)))
        second = await owner.append(Reserved(attempts=(reservation("a"),)))

        assert second > first
        await owner.close()
