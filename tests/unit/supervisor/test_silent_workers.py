"""A worker that falls silent while its work is awaited is named by the supervisor."""

from muster_protocol.attempt_id import AttemptId
from muster_protocol.fold import RequestState
from muster_protocol.workers.card import WorkerCard
from muster_protocol.workers.signs import Signs
from muster_supervisor.choosing.unserved import Remark
from muster_supervisor.silent_workers import SilentWorkers, awaited_attempts
from tests.guards import guards
from tests.unit.cli.logs import Log, task

AWAITED = {"busy": [AttemptId("r1", "two", 1)]}
SAID = "… worker-w1  has given no sign for {} s, while role 'counter' (r1.two.1) is awaited: what it runs blocks it"


def signs(at: float, renewed_at: float | None = 0.0) -> Signs:
    card = WorkerCard(name="w1", tags=("busy",), slots=1, renewed_at=renewed_at or 0.0)
    return Signs(at, {} if renewed_at is None else {"w1": card})


def watcher() -> SilentWorkers:
    return SilentWorkers({"busy": "counter"}.__getitem__)


def said(lines: list[Remark]) -> str:
    assert len(lines) <= 1
    return lines[0].text.split(", or it is dead")[0] if lines else ""


@guards("services/supervisor/muster_supervisor/silent_workers.py", "2 * silence", rule="I4", replace="silence")
def test_a_silence_is_said_once_and_again_when_it_lasts_twice_as_long() -> None:
    silent = watcher()

    assert [said(silent.look(signs(at), AWAITED)) for at in (2.0, 7.0)] == ["", ""]
    assert said(silent.look(signs(9.0), AWAITED)) == SAID.format(9)
    assert said(silent.look(signs(11.0), AWAITED)) == ""
    assert said(silent.look(signs(19.0, None), AWAITED)) == SAID.format(19)  # the bucket has dropped its card


def test_what_is_said_names_the_attempt_if_it_can_only_be_one() -> None:
    (one,) = watcher().look(signs(9.0), AWAITED)
    (two,) = watcher().look(signs(9.0), {"busy": [*AWAITED["busy"], AttemptId("r2", "two", 1)]})

    assert (one.worker, one.about) == ("worker-w1", AttemptId("r1", "two", 1))
    assert (two.worker, two.about) == ("worker-w1", None)


def test_a_worker_that_comes_back_is_said_to_be_back() -> None:
    silent = watcher()
    silent.look(signs(9.0), AWAITED)

    assert silent.look(signs(12.0, renewed_at=11.0), AWAITED) == [
        Remark("… worker-w1  is heard of again", worker="worker-w1")
    ]
    assert silent.look(signs(13.0, renewed_at=11.0), AWAITED) == []


def test_a_silence_that_nothing_waits_for_is_not_said() -> None:
    assert watcher().look(signs(9.0), {"other": AWAITED["busy"]}) == []


def test_a_worker_that_has_left_is_not_missed() -> None:
    silent = watcher()
    silent.look(signs(2.0), AWAITED)

    assert silent.look(Signs(20.0, {}, left={"w1": 3.0}), AWAITED) == []
    assert not silent.has_any(Signs(20.0))


def test_what_is_dispatched_and_not_done_is_awaited() -> None:
    log = Log().taken().planned(task("t1"), task("t2"), task("t3", "maths")).reserved("t1").reserved("t3").done("t1")
    state: RequestState = log.state()

    assert awaited_attempts([state]) == {"maths": [state.attempt_id("t3", 1)]}
