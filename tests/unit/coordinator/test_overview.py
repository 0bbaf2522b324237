"""The overview, followed entry by entry."""

from muster_coordinator.overview import Overview
from muster_coordinator.task_counts import TaskCounts
from muster_protocol.fold import fold
from muster_protocol.headers import headers_of
from muster_protocol.messages import Answer, AnswerStatus, LogBody, Result
from muster_protocol.sender import Origin, Sender
from tests.unit.protocol.log_builder import (
    REQUEST,
    LogBuilder,
    failure,
    planned,
    reserved,
    result,
    revision,
    taken,
    task,
)

TAKEN = taken("s1")


def _count(overview: Overview, sequence: int, body: LogBody, term: int = 0, request_id: str = REQUEST) -> None:
    sender = Sender("worker", "w1", "math") if isinstance(body, Result) else Sender("supervisor", "s1")
    overview.count(request_id, sequence, headers_of(body, Origin(request_id, sender, term=term)), body.body())


def _answer() -> Answer:
    return Answer(request_id=REQUEST, status=AnswerStatus.PARTIAL, text="", seconds=2.5)


def _follow(overview: Overview, log: LogBuilder) -> None:
    for entry in log.entries:
        headers = headers_of(entry.body, Origin(REQUEST, Sender.parse(entry.sender), term=entry.term))
        overview.count(REQUEST, entry.sequence, headers, entry.body.body())


def _retried_once_and_finished_twice() -> LogBuilder:
    """Two tasks: the first attempt of one fails and its second is done, the other is done by two workers."""
    log = planned(task("a"), task("b"))
    log.own(reserved(("a", 1), ("b", 1)))
    log.work(failure("a"))
    log.work(result("b", worker="w1"))
    log.work(result("b", worker="w2", delivery=2))
    log.own(revision("a", 2))
    log.run(result("a", 2))
    return log


def test_a_request_is_counted_entry_by_entry():
    overview = Overview()
    _count(overview, 5, TAKEN)
    _count(overview, 6, reserved(("a", 1), ("b", 1)), term=5)
    headers = {"sender": "worker/w1/math", "kind": "result", "task": "a", "attempt": "1", "status": "done"}
    overview.count(REQUEST, 7, {**headers, "tokens": "12", "usd": "0.5"}, b"")
    _count(overview, 8, failure("b"))
    _count(overview, 9, _answer(), term=5)

    summary = overview.ended[REQUEST]

    assert (summary.counts(), summary.tokens, summary.usd) == (TaskCounts(done=1, failed=1), 12, 0.5)
    assert (summary.status, summary.seconds, summary.owner) == ("partial", 2.5, "s1")
    assert {status: count for status, count in overview.counts().items() if count} == {"partial": 1}


def test_a_retry_and_a_second_result_do_not_make_more_tasks():
    overview = Overview()
    _follow(overview, _retried_once_and_finished_twice())

    shown = overview.open[REQUEST].as_json()

    assert (shown["done"], shown["failed"], shown["cancelled"]) == (2, 0, 0)


def test_a_task_is_failed_until_it_is_tried_again():
    overview = Overview()
    _count(overview, 5, TAKEN)
    _count(overview, 6, reserved(("a", 1)), term=5)
    _count(overview, 7, failure("a"))
    before = overview.open[REQUEST].counts()
    _count(overview, 8, reserved(("a", 2)), term=5)

    assert (before, overview.open[REQUEST].counts()) == (TaskCounts(failed=1), TaskCounts())


def test_what_a_former_owner_reserves_or_gives_up_does_not_count():
    overview = Overview()
    _count(overview, 5, TAKEN)
    _count(overview, 6, reserved(("a", 1)), term=5)
    _count(overview, 7, TAKEN)
    _count(overview, 8, reserved(("b", 1)), term=5)
    _count(overview, 9, result("b"))
    headers = headers_of(failure("a"), Origin(REQUEST, Sender("supervisor", "s1"), term=5))
    overview.count(REQUEST, 10, headers, b"")

    assert overview.open[REQUEST].counts() == TaskCounts()


def test_the_team_is_known_from_the_supervisor_that_took_the_request():
    overview = Overview()
    _count(overview, 5, TAKEN.model_copy(update={"team": "shop"}))

    assert overview.open[REQUEST].team == "shop"


def test_an_entry_counts_once():
    overview = Overview()
    for _ in range(2):
        _count(overview, 5, TAKEN)
        _count(overview, 6, reserved(("a", 1)), term=5)
        _count(overview, 7, result("a"))

    assert overview.open[REQUEST].counts() == TaskCounts(done=1)


def test_an_answer_of_a_former_owner_does_not_end_a_request():
    overview = Overview()
    _count(overview, 5, TAKEN)
    _count(overview, 6, TAKEN)
    _count(overview, 7, _answer(), term=5)

    assert list(overview.open) == [REQUEST]


def test_a_request_that_was_handed_back_keeps_its_term():
    overview = Overview()
    _count(overview, 5, TAKEN)
    _count(overview, 6, taken("s1", handed_back=True), term=5)
    _count(overview, 7, _answer(), term=5)

    assert list(overview.ended) == [REQUEST]


def test_an_unreadable_entry_of_an_owner_changes_nothing():
    overview = Overview()
    _count(overview, 5, TAKEN)
    _count(overview, 6, reserved(("a", 1)), term=5)
    for sequence, kind in ((7, "taken"), (8, "reserved")):
        overview.count(REQUEST, sequence, {"sender": "supervisor/s2", "kind": kind, "term": "5"}, b"{broken")
    _count(overview, 9, result("a"))
    _count(overview, 10, _answer(), term=5)

    assert overview.ended[REQUEST].counts() == TaskCounts(done=1)


def test_an_entry_that_was_not_counted_asks_for_its_log_to_be_read():
    overview = Overview()
    _count(overview, 5, TAKEN)

    for request_id in (REQUEST, "unknown"):
        overview.note_unread(request_id, 9)
    overview.note_unread(REQUEST, 5)  # which was counted

    assert list(overview.unread) == [REQUEST, "unknown"]


def test_a_stray_message_does_not_make_a_request():
    overview = Overview()
    _count(overview, 5, result("a"))

    assert overview.get(REQUEST) is None


def test_headers_that_are_no_numbers_count_nothing():
    overview = Overview()
    _count(overview, 5, TAKEN)
    _count(overview, 6, reserved(("a", 1)), term=5)
    for sequence, headers in (
        (7, {"task": "a", "attempt": "one", "status": "done", "tokens": "many", "usd": "nan"}),
        (8, {"task": "a", "attempt": "1", "status": "perhaps", "tokens": "9" * 5000, "usd": "1e999"}),
        (9, {}),
    ):
        overview.count(REQUEST, sequence, {"sender": "worker/w1", "kind": "result", **headers}, b"")

    summary = overview.open[REQUEST]
    assert (summary.counts(), summary.tokens, summary.usd) == (TaskCounts(), 0, 0.0)


def test_the_number_of_requests_is_bounded():
    overview = Overview(max_open=2, max_ended=1)
    for number in range(1, 6):
        _count(overview, number, TAKEN, request_id=f"r{number}")
    for number in (4, 5):
        _count(overview, number + 10, _answer(), term=number, request_id=f"r{number}")

    assert (list(overview.open), list(overview.ended)) == ([], ["r5"])


def test_the_largest_request_is_counted_from_its_log_when_too_many_tasks_are_followed():
    overview, log = Overview(max_tasks=2), _retried_once_and_finished_twice()
    _follow(overview, log)
    _count(overview, 90, TAKEN, request_id="small")
    _count(overview, 91, reserved(("c", 1)), term=90, request_id="small")
    _count(overview, 92, result("c"), request_id="small")
    log.own(Answer(request_id=REQUEST, status=AnswerStatus.DONE, text=""))
    _follow(overview, log)

    overview.recount(fold(REQUEST, log.entries))

    assert overview.ended[REQUEST].counts() == TaskCounts(done=2)
    assert overview.open["small"].counts() == TaskCounts(done=1)


def test_tasks_of_ended_and_forgotten_requests_are_followed_no_more():
    overview = Overview(max_open=1, max_ended=1, max_tasks=1)
    for number in range(1, 40, 4):
        _count(overview, number, TAKEN, request_id=f"r{number}")
        _count(overview, number + 1, reserved(("a", 1)), term=number, request_id=f"r{number}")
        _count(overview, number + 2, result("a"), request_id=f"r{number}")
        if number % 8 == 1:
            _count(overview, number + 3, _answer(), term=number, request_id=f"r{number}")

    assert overview.open["r37"].tally is not None
    assert [summary.counts() for summary in overview.newest()] == [TaskCounts(done=1)] * 2


def test_an_ended_request_says_what_was_asked_by_whom_and_when_and_the_newest_is_first():
    overview = Overview()
    asked = {"asked": "Compare", "asked_by": "client/muster-1", "stored_at": 8.0}
    for request_id, stored_at in (("new", 8.0), ("old", 3.0)):
        _count(overview, 5, TAKEN.model_copy(update={**asked, "stored_at": stored_at}), request_id=request_id)
        _count(overview, 6, TAKEN.model_copy(update={**asked, "asked": "", "stored_at": 9.0}), request_id=request_id)
        _count(overview, 7, _answer(), term=6, request_id=request_id)

    newest, oldest = overview.newest()

    about = {"id": "new", "team": TAKEN.team, "asked": "Compare", "asked_by": "client/muster-1", "asked_at": 8.0}
    assert newest.as_json().items() >= about.items()
    assert oldest.id == "old"
