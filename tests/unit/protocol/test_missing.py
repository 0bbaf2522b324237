"""What is said about a request that got no answer in time."""

from muster_protocol.missing import missing
from muster_protocol.status import Seen
from tests.unit.cli.logs import Log, task


def test_a_request_that_nobody_took_lacks_a_supervisor():
    assert missing(Log().state(), "shop", Seen(20.0)) == "no supervisor of team 'shop' has taken it"


def test_a_request_that_was_handed_back_lacks_another_supervisor():
    state = Log().taken().taken(handed_back=True).state()

    assert missing(state, "shop", Seen(20.0)) == "its supervisor stopped, and no other of team 'shop' has taken it"


def test_tasks_are_named_with_the_workers_that_they_wait_for():
    log = Log().taken().planned(task("t1"), task("t2"), task("t3", "maths"), task("t4", after=("t1",)))
    state = log.reserved("t1").reserved("t2").reserved("t3").state()

    assert missing(state, "shop", Seen(20.0, live_tags={"research"})) == (
        "supervisor-1 has taken it and gives no answer; t1, t2 wait for a worker with tag 'research'; "
        "t3 waits for a worker with tag 'maths', and none is alive"
    )
