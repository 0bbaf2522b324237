"""The chaos checker's view of damage: who must be ready when, what is left, and what is asked of damaged requests."""

import math
from pathlib import Path

import pytest

from tests.chaos.checker import Checker, Violation
from tests.chaos.disks import Disk
from tests.chaos.evidence import Evidence, judged
from tests.chaos.ledger import Ledger, Outage, Recovery, Sent
from tests.unit.protocol.log_builder import FAR, REQUEST, START, LogBuilder, answer, planned, task


def violations(ledger: Ledger, log: LogBuilder | None = None, *, is_cluster: bool = False) -> list[Violation]:
    logs = {REQUEST: judged(REQUEST, log.entries)} if log is not None else {}
    return Checker(ledger, Evidence(logs, [], [], {}, {}), 1.0, is_cluster=is_cluster).violations()


def recovered(seconds: float) -> list[Recovery]:
    return [Recovery("w1", "a cut", 10.0, 10.0 + seconds)]


@pytest.mark.parametrize(("seconds", "count"), [(3.0, 0), (20.0, 1), (math.inf, 1)])
def test_a_service_must_be_ready_again_soon_after_its_wires_are_whole(seconds: float, count: int):
    assert len(violations(Ledger(recoveries=recovered(seconds)))) == count


def test_the_time_in_which_a_service_or_its_broker_was_away_does_not_count():
    for outage in (Outage("w1", 12.0, 28.0, 7, is_death=True), Outage("broker", 12.0, 28.0)):
        assert violations(Ledger(recoveries=recovered(20.0), outages=[outage])) == []
    assert len(violations(Ledger(recoveries=recovered(20.0), outages=[Outage("w2", 12.0, 28.0)]))) == 1


def sent() -> dict[str, Sent]:
    one = Sent(REQUEST, 1.0, START)
    one.acked(START)
    return {REQUEST: one}


def late() -> LogBuilder:
    log = planned(task("a"))
    log.time = START + 10.0
    log.own(answer())
    return log


def test_of_a_request_whose_bytes_may_have_been_changed_only_an_answer_is_asked():
    damaged = [(START + 5.0, START + 9.0)]

    assert [found.rule for found in violations(Ledger(sent=sent()), late())] == ["I4 deadline"]
    assert violations(Ledger(sent=sent(), damages=damaged), late()) == []
    assert len(violations(Ledger(sent=sent(), damages=damaged), planned(task("a")))) == 1
    assert len(violations(Ledger(sent=sent(), damages=[(FAR, FAR + 4.0)]), late())) == 1


def test_time_without_a_processor_makes_no_answer_late():
    assert violations(Ledger(sent=sent(), lags=[(START + 2.0, START + 8.0)]), late()) == []


def test_three_brokers_elect_a_leader_after_one_of_them_is_back():
    lost = [Outage("broker", START + 1.0, START + 2.0)]

    assert len(violations(Ledger(sent=sent(), outages=lost), late())) == 1
    assert violations(Ledger(sent=sent(), outages=lost), late(), is_cluster=True) == []
    assert len(violations(Ledger(sent=sent()), late(), is_cluster=True)) == 1


def test_what_a_full_disk_leaves_in_a_queue_is_a_violation():
    (found,) = violations(Ledger(undrained=["TASKS still holds something up to #7"]))

    assert found.text == "TASKS still holds something up to #7"


async def test_a_disk_that_is_full_takes_nothing_until_it_is_freed(tmp_path: Path):
    disk = Disk(tmp_path / "disk")
    disk.mount(1024 * 1024)
    if not disk.is_mounted:
        assert disk.why_not
        return
    try:
        await disk.fill(0.0)
        with pytest.raises(OSError, match="No space left"):
            (tmp_path / "disk" / "more").write_bytes(bytes(8192))
        disk.free()
        (tmp_path / "disk" / "more").write_bytes(bytes(8192))
    finally:
        disk.unmount()
