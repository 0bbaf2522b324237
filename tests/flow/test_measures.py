"""What the roles of a team do is measured, also over the death of a supervisor."""

from muster_bus.buckets.measures import add_measured, read_measures
from muster_protocol.workers.measured import Measured
from muster_testing.waiting import until_asked
from tests.harness import Muster

PLAN = {"tasks": [{"id": "count", "tag": "scripted", "description": "Count the sheep in the meadow"}]}


async def test_every_counted_result_is_measured_once_also_when_another_supervisor_goes_on(muster: Muster):
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    failing = {"id": "f", "orders": {"fail": "no"}, "max_attempts": 2}
    waiting = {"id": "w", "orders": {"until": "go"}}
    request = await muster.submit([{"id": "d1"}, {"id": "d2"}, failing, waiting])
    await until_measured(muster, tries=4, successes=2)

    muster.kill("s1")
    await muster.start("supervisor", "s2")
    await muster.until_log(request, lambda state: state.owner == "s2")
    muster.release("go")

    await muster.answer(request)
    await until_measured(muster, tries=5, successes=3)


async def test_a_plan_that_will_not_keep_its_budget_says_so(muster: Muster):
    costly = Measured(tries=10, successes=10, seconds=1, input_tokens=20_000, at=muster.bus.clock.now())
    await add_measured(muster.bus, "default", "scripted", costly)
    await muster.start("supervisor", "s1")

    async def is_said() -> bool:
        """The supervisor reads what was measured in the background."""
        request = await muster.client.submit(plan=PLAN, budget={"tokens": 500})
        await muster.until_log(request, lambda state: state.plan_entry is not None)
        entry = (await muster.state(request)).plan_entry
        return entry is not None and any("2,000 tokens; the budget is 500" in warning for warning in entry.warnings)

    await until_asked(is_said, "a plan has the warning")


async def until_measured(muster: Muster, tries: int, successes: int) -> None:
    """Wait until the bucket says so, give or take what has faded meanwhile."""

    async def is_there() -> bool:
        known = (await read_measures(muster.bus, "default")).get("scripted")
        return known is not None and (round(known.tries), round(known.successes)) == (tries, successes)

    await until_asked(is_there, f"{tries} tries were measured, {successes} of them successes")
