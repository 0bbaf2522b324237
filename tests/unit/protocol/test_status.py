"""How a request stands, in one sentence."""

from collections.abc import Collection

from muster_protocol.fold import RequestState
from muster_protocol.messages import AnswerStatus
from muster_protocol.plan import TaskSpec
from muster_protocol.status import Seen, TaskStanding, explain, explain_task
from muster_protocol.status_words import TaskStatus
from tests.unit.cli.logs import Log, task

NOW = 20.0
TAGS = {"research", "writing"}


def sentence(state: RequestState, now: float, live_tags: Collection[str] | None) -> str:
    return str(explain(state, Seen(now, live_tags=live_tags)))


def test_a_request_without_a_log_waits_for_a_supervisor():
    assert sentence(Log().state(), NOW, TAGS) == "queued: no supervisor has taken it"


def test_a_request_that_was_handed_back_is_shown_as_handed_back():
    state = Log().taken().taken(handed_back=True).state()

    assert sentence(state, NOW, TAGS) == "queued: its supervisor stopped and handed it back; no other has taken it"


def test_a_request_without_a_plan_is_being_planned():
    assert sentence(Log().taken().state(), NOW, TAGS) == "planning: supervisor-1 has taken it and makes a plan"


def test_a_task_that_nobody_can_do_is_the_cause():
    log = Log().taken().planned(task("t1"), task("t3", "maths")).reserved("t1").reserved("t3").done("t1")

    assert sentence(log.state(), NOW, TAGS) == "running: t3 waits for tag 'maths', which no live worker serves"


def test_an_item_of_a_map_is_called_by_what_it_is():
    rome = task("item-1").model_copy(update={"label": "Rome", "max_attempts": 1})
    log = Log().taken().planned(rome, task("t2", after=("item-1",))).reserved("item-1")
    waiting = explain_task(log.state(), log.state().tasks["t2"], Seen(NOW))
    running = sentence(log.state(), NOW, TAGS)
    log.failed("item-1", "no train").answered(AnswerStatus.FAILED)

    assert waiting.reason == "for Rome"
    assert running == "running: 0 of 2 tasks done, Rome queued"
    assert sentence(log.state(), NOW, TAGS).startswith("failed: Rome failed")


def test_a_task_that_still_waits_for_others_is_no_cause():
    log = Log().taken().planned(task("t1"), task("t2", "maths", after=("t1",))).reserved("t1")

    assert sentence(log.state(), NOW, TAGS) == "running: 0 of 2 tasks done, t1 queued"


def test_a_match_over_tags_names_what_is_missing():
    spec = TaskSpec(id="t1", description="x", match_all=("research",), match_some=("maths", "physics"))
    state = Log().taken().planned(spec).reserved("t1").state()

    assert sentence(state, NOW, TAGS) == "running: t1 waits for tag 'maths or physics', which no live worker serves"


def test_without_known_workers_their_tags_are_not_judged():
    state = Log().taken().planned(task("t1", "maths")).reserved("t1").state()

    assert sentence(state, NOW, None) == "running: 0 of 1 task done, t1 queued"


def test_a_task_that_is_tried_again_names_the_error():
    log = Log().taken().planned(task("t1")).reserved("t1").failed("t1", "the search is down").revised("t1", 2, 21.5)

    assert (
        sentence(log.state(), NOW, TAGS)
        == "running: 0 of 1 task done, t1 is tried again in 1.5 s after: the search is down"
    )


def test_a_failed_request_ends_with_its_cause():
    log = Log().taken().planned(task("t1"), task("t2", after=("t1",)))
    for attempt in (1, 2, 3):
        log.reserved("t1", attempt).failed("t1", f"boom {attempt}", attempt)
        if attempt < 3:
            log.revised("t1", attempt + 1, 0.0)
    log.answered(AnswerStatus.FAILED)

    assert sentence(log.state(), NOW, TAGS) == "failed: t1 failed after 3 attempts: boom 3"


def test_a_request_that_could_not_be_planned_names_the_reason():
    log = Log().taken().answered(AnswerStatus.FAILED, "tasks.t2.tag: nobody has the tag 'maths'")

    assert sentence(log.state(), NOW, TAGS) == "failed: tasks.t2.tag: nobody has the tag 'maths'"


def test_a_partial_request_names_what_it_lacks():
    log = Log().taken().planned(task("t1"), task("t2")).reserved("t1").reserved("t2").done("t1")
    log.answered(AnswerStatus.PARTIAL)

    assert sentence(log.state(), NOW, TAGS) == "partial: it ended before t2 was done"


def test_many_causes_are_counted_after_the_third():
    log = Log().taken().planned(*(task(f"t{n}", max_attempts=1) for n in range(5)))
    for n in range(5):
        log.reserved(f"t{n}").failed(f"t{n}", "no")
    log.answered(AnswerStatus.FAILED)

    assert sentence(log.state(), NOW, TAGS) == "failed: t0 failed: no, t1 failed: no, t2 failed: no and 2 more"


def test_a_cancelled_request_gives_the_reason():
    log = Log().taken().planned(task("t1")).cancelled("not needed")

    assert sentence(log.state(), NOW, TAGS) == "answering: cancelled by client/me: not needed"
    assert sentence(log.answered(AnswerStatus.CANCELLED).state(), NOW, TAGS) == "cancelled: by client/me: not needed"


def test_a_request_past_its_deadline_is_stuck():
    state = Log().taken().planned(task("t1")).state()

    assert sentence(state, 130.0, TAGS) == "running: its deadline passed 30 s ago and supervisor-1 has not answered it"


def test_a_done_request_says_how_long_it_took():
    log = Log().taken().planned(task("t1")).reserved("t1").done("t1").answered(AnswerStatus.DONE, "fine")

    assert sentence(log.state(), 130.0, TAGS) == "done: answered in 2.1 s"


def test_a_start_that_was_seen_makes_a_queued_task_a_running_one():
    state = Log().taken().planned(task("t1"), task("t2", after=("t1",))).reserved("t1").state()
    started = Seen(NOW, started={state.attempt_id("t1", 1): "w1"}, live_tags=TAGS)

    assert explain(state, started).reason == "0 of 2 tasks done, t1 running"
    assert explain_task(state, state.tasks["t1"], Seen(NOW)).status == "queued"
    assert explain_task(state, state.tasks["t1"], started).status == "running"
    assert explain_task(state, state.tasks["t2"], started) == TaskStanding(TaskStatus.WAITING, "for t1")


def test_a_task_that_is_done_says_how_long_it_took_while_others_go_on():
    state = Log().taken().planned(task("t1"), task("t2")).reserved("t1").reserved("t2").done("t1").state()

    assert explain_task(state, state.tasks["t1"], Seen(NOW)) == TaskStanding(
        TaskStatus.DONE, f"{state.tasks['t1'].seconds:g} s of work"
    )


def test_every_task_of_an_answered_request_has_ended():
    log = Log().taken().planned(task("t1"), task("t2"), task("t3", after=("t1",))).reserved("t1").reserved("t2")
    state = log.failed("t2", "no route").answered(AnswerStatus.PARTIAL).state()

    found = {task_id: explain_task(state, found, Seen(NOW)).status.value for task_id, found in state.tasks.items()}

    assert found == {"t1": "cancelled", "t2": "failed", "t3": "skipped"}
    assert found == {outcome.id: outcome.status for outcome in state.outcomes()}
