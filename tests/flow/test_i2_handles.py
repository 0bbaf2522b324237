"""I2: of two deliveries to one process the later one is its handle, and two messages of one id are one run."""

import asyncio
import time

import pytest

from muster_agent.models.scripted import Scripted
from muster_agent.team.file import load_team
from muster_bus.bodies import MAX_INLINE
from muster_bus.connection import Bus
from muster_bus.lease import Delivery, Lease, LeaseKeeper
from muster_protocol import subjects
from muster_protocol.headers import request_hash
from muster_protocol.messages import Request, Taken
from muster_supervisor.calling.callbacks import Callbacks
from muster_supervisor.choosing.breaking import Breakers
from muster_supervisor.choosing.measuring import Measuring
from muster_supervisor.choosing.model_slots import ModelSlots
from muster_supervisor.intake import Intake
from muster_supervisor.owner import Resources
from muster_supervisor.run import Run
from muster_testing import until
from tests.flow.in_process import PLAN, connected, delivery_of, owner_of
from tests.flow.worker_tools import bench
from tests.guards import guards
from tests.harness import Muster

INTAKE = "services/supervisor/muster_supervisor/intake.py"
LEASE = 2.0


def intake_of(muster: Muster, bus: Bus) -> Intake:
    team = load_team(muster.folder / "team.yaml")
    measuring, breakers = Measuring(bus, team), Breakers(bus, team)
    return Intake(
        Resources(bus, team, Scripted([]), ModelSlots(1), LEASE, measuring, 3600.0, breakers, Callbacks(bus, team))
    )


async def message(bus: Bus, sequence: int, number: int = 1, *, metadata: str = "") -> Delivery:
    """A delivery of a message with the id `r1`; a large body has to be fetched."""
    request = Request(plan=PLAN, metadata={"note": metadata})
    body = request.body()
    headers = {"Nats-Msg-Id": "r1"}
    if len(body) > MAX_INLINE:
        headers["body-ref"], body = await bus.bodies.put(body), b""
    lease = Lease(LeaseKeeper(bus.nc, 60.0), f"nobody.hears.{sequence}.{number}")
    return Delivery("requests.default", headers, body, "REQUESTS", "s_default", number, sequence, time.time(), lease)


@guards(
    "services/supervisor/muster_supervisor/run.py",
    "self.owner.delivery = delivery",
    rule="I2",
    replace="pass",
    seconds=20,
)
async def test_a_run_that_lost_its_lease_goes_on_with_the_handle_of_its_next_delivery(muster: Muster) -> None:
    async with connected(muster, "here") as bus:
        run = Run(owner_of(muster, bus, 1, ack_wait=LEASE))
        supervising = asyncio.create_task(run.supervise())
        await until(lambda: not run.owner.lease.is_held, "the lease ran out")

        run.on_redelivery(again := delivery_of(bus, 2, 60.0))
        await muster.until_log("r1", lambda state: state.delivery == 2)

        assert run.owner.lease is again.lease
        run.stop()
        async with asyncio.timeout(60):
            await supervising
    assert again.lease.is_settled


@guards(
    "services/worker/muster_worker/attempt.py",
    "self.delivery = delivery  # only the lease is new",
    rule="I3",
    replace="pass  # only the lease is new",
    seconds=20,
)
async def test_a_worker_acknowledges_what_it_runs_by_the_handle_of_its_last_delivery(
    patient_muster: Muster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(patient_muster, monkeypatch) as one:
        own = await one.put_and_run()
        await one.given_out_again(own)

        patient_muster.release("go")
        await one.result()

        await patient_muster.until_gone(subjects.tasks("scripted"), own)


@guards(
    INTAKE,
    "if self._is_held(request_id, delivery):\n            return None  # another copy",
    rule="I2",
    replace="if False:\n            return None  # another copy",
)
async def test_a_request_delivered_again_while_its_large_body_is_fetched_has_one_run(muster: Muster) -> None:
    async with connected(muster, "here") as bus:
        intake, large = intake_of(muster, bus), "x" * (MAX_INLINE + 1)
        first, again = await message(bus, 1, metadata=large), await message(bus, 1, 2, metadata=large)

        await asyncio.gather(intake.take(first), intake.take(again))

        assert len(intake.supervising) == 1
        await stopped(intake)


@guards(INTAKE, "elif run is not None or (", rule="I2", replace="elif (")
async def test_another_message_of_a_request_that_runs_here_starts_no_second_run(muster: Muster) -> None:
    async with connected(muster, "here") as bus:
        intake = intake_of(muster, bus)
        first, second = await message(bus, 1), await message(bus, 2, metadata="another body")
        await intake.take(first)
        run = intake.runs["r1"]

        await intake.take(second)

        assert intake.runs["r1"] is run
        assert not second.lease.is_settled
        await stopped(intake)
        assert second.lease.is_settled


@guards(
    "services/supervisor/muster_supervisor/taking/duplicates.py",
    "found is not Disposition.KEPT and not self.is_supervised",
    rule="I1",
    replace="False",
    seconds=20,
)
async def test_a_message_that_was_kept_and_turns_out_to_be_the_lease_is_handed_back(muster: Muster) -> None:
    async with connected(muster, "here") as bus:
        intake = intake_of(muster, bus)
        stored = await muster.publish("requests.default", b"{}", None)  # the lease: nobody must believe that it is gone
        first, lease = await message(bus, stored.sequence + 1), await message(bus, stored.sequence, metadata="other")
        gone = Taken(
            instance="killed",
            delivery=1,
            team="default",
            deadline=time.time() + 60,
            request_hash=request_hash(lease.subject, lease.headers, lease.data),
            request_sequence=lease.sequence,
        )
        await bus.store(gone, bus.origin("r1"))

        await asyncio.gather(intake.take(first), intake.take(lease))
        await until(lambda: lease.lease.is_settled, "the lease is given to whoever supervises it next")

        assert not first.lease.is_settled
        await stopped(intake)


async def stopped(intake: Intake) -> None:
    intake.stop()
    async with asyncio.timeout(60):
        await asyncio.wait(intake.supervising)
