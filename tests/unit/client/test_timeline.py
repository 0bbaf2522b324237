"""What a timeline says about the stories that people look at one for."""

from muster_client.timeline import Step, StepStatus, StoredEvent, Timeline, What, document_of, timeline
from muster_protocol.messages import (
    Answer,
    AnswerStatus,
    AttemptEvent,
    ConflictFound,
    Decision,
    HandedBack,
    Progress,
    Started,
    ToolUsed,
    Usage,
)
from tests.unit.protocol.log_builder import (
    REQUEST,
    START,
    LogBuilder,
    answer,
    dispatched,
    failure,
    planned,
    reserved,
    result,
    revision,
    taken,
    task,
)

NOW = START + 500.0


def made(log: LogBuilder, *events: StoredEvent) -> Timeline:
    return timeline(REQUEST, log.entries, events, now=NOW)


def at(time: float, body: AttemptEvent, worker: str = "w1") -> StoredEvent:
    return StoredEvent(START + time, f"worker/{worker}/work", body)


def started(worker: str, delivery: int = 1, *, task_id: str = "a", attempt: int = 1) -> Started:
    return Started(
        request_id=REQUEST,
        task_id=task_id,
        attempt=attempt,
        worker=worker,
        role="work",
        delivery=delivery,
        task_sequence=7,
    )


def steps(found: Timeline, what: What) -> list[Step]:
    return [step for step in found.steps if step.what is what]


def placed(step: Step) -> tuple[float, float | None]:
    """Its beginning and its end, in seconds after the first entry's second."""
    return round(step.begin - START, 3), None if step.end is None else round(step.end - START, 3)


def test_a_plain_task_is_ready_dispatched_queued_and_run():
    log = planned(task("a"))
    log.time = START + 1
    log.own(reserved(("a", 1)))
    log.time = START + 2
    log.own(dispatched(("a", 1)))
    log.time = START + 10
    log.work(result("a"))

    found = made(log, at(4, started("w1")))

    assert [(step.what, placed(step)) for step in found.steps if step.task] == [
        (What.READY, (0.02, 1.01)),
        (What.DISPATCH, (1.01, 2.01)),
        (What.QUEUED, (2.01, 4.0)),
        (What.ATTEMPT, (4.0, 10.01)),
    ]
    (ran,) = steps(found, What.ATTEMPT)
    assert (ran.status, ran.worker, ran.role, ran.details["output"]) == (StepStatus.DONE, "w1", "work", "found")


def test_a_short_task_that_announced_no_start_began_as_long_ago_as_it_took():
    log = planned(task("a"))
    log.own(reserved(("a", 1)))
    log.time = START + 5
    log.work(result("a"))

    (ran,) = steps(made(log), What.ATTEMPT)

    assert placed(ran) == (4.01, 5.01)


def test_a_failed_attempt_is_revised_waited_for_and_tried_again():
    log = planned(task("a"))
    log.own(reserved(("a", 1)))
    log.time = START + 2
    log.work(failure("a", message="no route"))
    log.own(revision("a", 2, START + 3).model_copy(update={"usage": Usage(output_tokens=30)}))
    log.time = START + 4
    log.own(reserved(("a", 2)))
    log.time = START + 6
    log.work(result("a", 2, tokens=5))

    found = made(log)

    first, second = steps(found, What.ATTEMPT)
    assert (first.status, first.error_class, first.error) == (StepStatus.FAILED, "logic", "no route")
    assert (second.status, second.attempt) == (StepStatus.DONE, 2)
    (revised,), (waited,) = steps(found, What.REVISION), steps(found, What.RETRY_WAIT)
    assert (placed(revised), revised.tokens) == ((2.01, 2.02), 30)
    assert placed(waited) == (2.02, 4.01)
    assert (found.totals.attempts, found.totals.retries, found.totals.tokens) == (2, 1, 35)


def test_a_worker_that_died_has_a_lost_run_before_that_of_its_successor():
    log = planned(task("a"))
    log.own(reserved(("a", 1)))
    log.time = START + 40
    log.work(result("a", worker="w2", delivery=2))

    found = made(log, at(1, started("w1")), at(31, started("w2", 2)))

    lost, ran = steps(found, What.ATTEMPT)
    assert (lost.worker, lost.status, placed(lost)) == ("w1", StepStatus.LOST, (1.0, 31.0))
    assert (ran.worker, ran.status, placed(ran)) == ("w2", StepStatus.DONE, (31.0, 40.01))
    assert (found.totals.lost, found.totals.attempts) == (1, 1)


def test_a_worker_that_stopped_cleanly_handed_its_attempt_back():
    log = planned(task("a"))
    log.own(reserved(("a", 1)))
    log.time = START + 9
    log.work(result("a", worker="w2", delivery=2))
    back = HandedBack(request_id=REQUEST, task_id="a", attempt=1, worker="w1", delivery=1)

    found = made(log, at(1, started("w1")), at(3, back), at(5, started("w2", 2)))

    first, _ = steps(found, What.ATTEMPT)
    (waited,) = steps(found, What.HAND_BACK)
    assert (first.status, placed(first), placed(waited)) == (StepStatus.HANDED_BACK, (1.0, 3.0), (3.0, 5.0))


def test_a_time_out_that_the_owner_writes_ends_the_run_that_said_nothing_more():
    log = planned(task("a", max_attempts=1))
    log.own(reserved(("a", 1)))
    log.time = START + 61
    log.own(failure("a").model_copy(update={"worker": ""}))

    (ran,) = steps(made(log, at(1, started("w1"))), What.ATTEMPT)

    assert (ran.worker, ran.status, placed(ran)) == ("w1", StepStatus.FAILED, (1.0, 61.01))


def test_a_second_and_a_late_result_are_shown_and_only_their_cost_counts():
    log = planned(task("a"), task("b"))
    log.run(result("a", tokens=5))
    log.work(result("a", worker="w2", tokens=7))
    log.own(reserved(("b", 1)))
    log.own(answer())
    log.work(result("b", tokens=11))

    found = made(log)

    uncounted = [(step.task, step.error) for step in found.steps if step.status is StepStatus.UNCOUNTED]
    assert uncounted == [("a", "a second result of this attempt"), ("b", "it came after the answer")]
    assert (found.totals.uncounted, found.totals.tokens, found.totals.work_seconds) == (2, 23, 1.0)


def test_a_takeover_and_a_hand_back_of_the_request_are_told():
    log = planned(task("a"))
    log.time = START + 10
    log.write(taken("s1", handed_back=True), sender="supervisor/s1", term=log.term)
    log.time = START + 12
    log.take("s2", 2)

    found = made(log)

    (back,), (over,) = steps(found, What.HAND_BACK), steps(found, What.TAKE_OVER)
    assert (back.worker, placed(back)) == ("s1", (10.01, 12.01))
    assert (over.worker, over.details["from"], placed(over)[0]) == ("s2", "s1", 12.01)


def test_a_request_that_waits_is_an_open_queue_since_it_was_asked():
    found = timeline(REQUEST, [], [], now=NOW, asked_at=NOW - 30)

    assert [(step.what, step.status) for step in found.steps] == [
        (What.REQUEST, StepStatus.OPEN),
        (What.QUEUED, StepStatus.OPEN),
    ]
    assert found.totals.wall_seconds == found.totals.queue_seconds == 30
    assert str(found.standing) == "queued: no supervisor has taken it"


def test_a_request_that_cannot_be_planned_failed_in_its_plan():
    log = LogBuilder()
    log.take()
    log.time = START + 3
    log.own(Answer(request_id=REQUEST, status=AnswerStatus.FAILED, text="no", gaps=("no role fits",), seconds=4.0))

    found = made(log)

    (plan,) = steps(found, What.PLAN)
    assert (plan.status, plan.error) == (StepStatus.FAILED, "no role fits")
    assert found.critical_path == ("plan", "answer")
    assert round(found.totals.wall_seconds, 3) == 4.0  # the answer knows when the request was asked


def test_a_cancelled_request_ends_what_was_open():
    log = planned(task("a"), task("b", "a"))
    log.own(reserved(("a", 1)))
    log.time = START + 5
    log.own(Decision(decision="cancel", control_sequence=1, by="client/me", reason="enough"))
    log.own(answer().model_copy(update={"status": AnswerStatus.CANCELLED}))

    found = made(log, at(1, started("w1")))

    (ran,), (decision,) = steps(found, What.ATTEMPT), steps(found, What.DECISION)
    assert (ran.status, placed(ran)) == (StepStatus.CANCELLED, (1.0, 5.02))
    assert decision.details["reason"] == "enough"


def test_tool_calls_lie_where_the_result_recorded_them_and_else_where_events_told():
    log = planned(task("a"), task("b"))
    log.own(reserved(("a", 1), ("b", 1)))
    log.time = START + 9
    calls = (
        {"tool": "search", "at": 0.25, "seconds": 0.5, "error": None, "arguments": "{}", "output": "3", "cut": False},
    )
    log.work(result("a").model_copy(update={"tool_calls": calls}))
    used = ToolUsed(
        request_id=REQUEST, task_id="b", attempt=1, tool="sum", seconds=0.5, error="no number", error_class="logic"
    )

    found = made(log, at(2, started("w2", task_id="b"), "w2"), at(4, used, "w2"))

    recorded, told = sorted(steps(found, What.TOOL), key=lambda step: step.task)
    assert placed(recorded) == (8.26, 8.76)
    assert recorded.details == {"tool": "search", "arguments": "{}", "output": "3", "cut": False}
    assert (placed(told), told.status, told.error) == ((3.5, 4.0), StepStatus.FAILED, "no number")
    assert (told.error_class, recorded.error_class) == ("logic", "")


def test_the_progress_of_a_run_is_kept_with_it():
    log = planned(task("a"))
    log.own(reserved(("a", 1)))
    said = [at(n, Progress(request_id=REQUEST, task_id="a", attempt=1, text=f"page {n}")) for n in range(2, 60)]

    (ran,) = steps(made(log, at(1, started("w1")), *said), What.ATTEMPT)

    assert ran.status is StepStatus.OPEN
    assert [told["text"] for told in ran.details["progress"]] == [f"page {n}" for n in range(40, 60)]


def test_a_conflict_is_a_moment_of_its_attempt():
    log = planned(task("a"))
    log.own(reserved(("a", 1)))
    found_twice = ConflictFound(
        request_id=REQUEST, task_id="a", attempt=1, what="started twice", first="w1", second="w2", at=START + 3
    )

    found = made(log, at(3, found_twice))

    (conflict,) = steps(found, What.CONFLICT)
    assert (conflict.task, conflict.error, placed(conflict)) == ("a", "started twice", (3.0, 3.0))
    assert found.totals.conflicts == 1


def test_forged_starts_of_one_attempt_are_bounded():
    log = planned(task("a"))
    log.own(reserved(("a", 1)))

    found = made(log, *(at(1 + n / 1000, started(f"w{n}")) for n in range(10_000)))

    assert len(steps(found, What.ATTEMPT)) == 8


def test_the_critical_path_goes_back_along_what_was_waited_for_the_longest():
    log = planned(task("quick"), task("slow"), task("both", "quick", "slow"), task("aside"))
    for name in ("quick", "slow", "aside", "both"):
        log.time += 5
        log.run(result(name))
    log.own(answer())

    found = made(log)

    assert found.critical_path == ("plan", "slow", "both", "answer")
    assert {step.task for step in found.steps if step.is_critical and step.task} == {"slow", "both"}


def test_a_large_request_has_all_its_steps():
    log = planned(*(task(f"t{n}") for n in range(2_000)))
    for n in range(2_000):
        log.run(result(f"t{n}"))

    found = made(log, *(at(n / 100, started("w1", task_id=f"t{n}")) for n in range(2_000)))

    assert len(steps(found, What.ATTEMPT)) == found.totals.done == 2_000
    assert len(document_of(found)["steps"]) == len(found.steps)
