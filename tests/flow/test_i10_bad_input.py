"""I10: bad input gets one clear error that names the field, and its neighbours go on."""

import json
from collections.abc import Mapping

from muster_protocol import subjects
from muster_protocol.messages import AnswerStatus, ErrorReport
from tests.guards import guards
from tests.harness import Muster

SUPERVISOR = {"sender": "supervisor/x", "kind": "task"}
WORKER = {"sender": "worker/x", "kind": "result"}
TOO_LARGE = b"x" * 600_000

BAD_TASKS: list[tuple[Mapping[str, str] | None, bytes, str]] = [
    (None, b"{}", "no sender"),
    ({"sender": "not a sender!", "kind": "task"}, b"{}", "is not <service>/<instance>"),
    (SUPERVISOR, b"{broken", "Invalid JSON"),
    ({"sender": "supervisor/x", "kind": "surprise"}, b"{}", "unknown kind 'surprise'"),
    (SUPERVISOR, b'{"request_id": "r"}', "task_id"),
    (SUPERVISOR, TOO_LARGE, "must travel by reference"),
    ({**SUPERVISOR, "body-ref": "0" * 64 + ".9"}, b"", "no body is stored"),
]
BAD_REQUESTS = [
    (b"{broken", "Invalid JSON"),
    (b"{}", "exactly one of text, plan or map"),
    (b'{"text": ""}', "text is empty"),
    (b'{"text": "x", "deadline_seconds": -1}', "deadline_seconds"),
    (b'{"plan": {"tasks": [{"id": "a", "description": "d", "tag": "maths"}]}}', "nobody has the tag 'maths'"),
    (b'{"plan": {"tasks": [{"id": "a", "description": "d", "tag": "scripted", "dependencies": ["a"]}]}}', "a → a"),
    (b'{"text": "' + TOO_LARGE + b'"}', "must travel by reference"),
]
BAD_ENTRIES: list[tuple[Mapping[str, str] | None, bytes, str]] = [
    (None, b"{}", "no sender"),
    (WORKER, b"{broken", "Invalid JSON"),
    ({"sender": "worker/x", "kind": "surprise"}, b"{}", "unknown kind"),
    (WORKER, TOO_LARGE, "must travel by reference"),
]
CLIENT = {"sender": "client/x", "kind": "cancel"}
BAD_CONTROLS: list[tuple[Mapping[str, str] | None, bytes, str]] = [
    (None, b"{}", "no sender"),
    (CLIENT, b"{broken", "Invalid JSON"),
    ({"sender": "client/x", "kind": "surprise"}, b"{}", "unknown kind"),
    (CLIENT, TOO_LARGE, "must travel by reference"),
    (CLIENT, b'{"request_id": "another"}', "the message is about another"),
]


def each_once(expected: list[str], found: list[str]) -> bool:
    return len(found) == len(expected) and all(sum(reason in one for one in found) >= 1 for reason in expected)


@guards("libs/bus/muster_bus/receive.py", "await bus.report(str(reason), message, request_id=", rule="I10")
@guards(
    "libs/bus/muster_bus/receive.py",
    "sender, kind = h.require_sender(headers), h.require_kind(headers, kinds)",
    rule="I10",
    replace='sender, kind = headers.get(h.SENDER, ""), h.require_kind(headers, kinds)',
)
@guards(
    "libs/bus/muster_bus/receive.py",
    "sender, kind = h.require_sender(headers), h.require_kind(headers, kinds)",
    rule="I10",
    replace="sender, kind = h.require_sender(headers), next(iter(kinds.values()))",
)
async def test_garbage_among_tasks_gets_one_error_each_and_the_next_task_is_done(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    for headers, body, _ in BAD_TASKS:
        await muster.publish("tasks.scripted", body, headers)
    await muster.start("worker", "w1")

    request = await muster.submit([{"id": "a"}])

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    await muster.until_settled(subjects.tasks("scripted"))
    assert each_once([reason for _, _, reason in BAD_TASKS], await muster.reasons())


@guards(
    "services/worker/muster_worker/worker.py",
    "            delivery.lease.ack()\n            return None",
    rule="I10",
    replace="            return None",
)
@guards(
    "libs/bus/muster_bus/pull.py",
    'if status is None or message.reply.startswith("$JS.ACK."):',
    rule="I10",
    replace="if status is None:",
)
async def test_a_task_that_brings_a_status_of_its_own_is_refused_like_any_other(muster: Muster) -> None:
    await muster.start("worker", "w1")

    await muster.publish("tasks.scripted", b"{broken", {**SUPERVISOR, "Status": "404"})

    await muster.until_settled(subjects.tasks("scripted"))
    assert each_once(["Invalid JSON"], await muster.reasons())


@guards(
    "services/supervisor/muster_supervisor/steps/answer.py",
    "await owner.bus.report(reason, owner.delivery, request_id=owner.request_id)",
    rule="I10",
)
async def test_an_invalid_request_gets_an_error_and_a_failed_answer_that_says_why(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")

    for number, (body, _) in enumerate(BAD_REQUESTS):
        await muster.publish("requests.default", body, {"Nats-Msg-Id": f"bad-{number}"})
    good = await muster.submit([{"id": "a"}])

    for number, (_, reason) in enumerate(BAD_REQUESTS):
        answer = await muster.answer(f"bad-{number}")
        assert answer.status is AnswerStatus.FAILED
        assert reason in answer.text
    assert each_once([reason for _, reason in BAD_REQUESTS], await muster.reasons())
    assert (await muster.answer(good)).status is AnswerStatus.DONE
    assert "handling it failed" not in muster.service_log("s1")  # a refusal is no bug of the supervisor


async def test_a_bare_publish_without_headers_is_a_request(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    plan = {"tasks": [{"id": "a", "description": '{"output": "hello"}', "tag": "scripted"}]}
    body = json.dumps({"plan": plan}).encode()

    stored = await muster.publish("requests.default", body, None)

    request = muster.id_of(stored, body)
    assert (await muster.answer(request)).text == "hello"


async def test_garbage_in_a_running_log_gets_one_error_each_and_the_request_ends_well(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}, {"id": "b", "dependencies": ["a"]}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the first task runs")

    for headers, body, _ in BAD_ENTRIES:
        await muster.publish(f"results.{request}", body, headers)
    muster.release("go")
    answer = await muster.answer(request)

    assert answer.status is AnswerStatus.DONE
    assert each_once([reason for _, _, reason in BAD_ENTRIES], await muster.reasons())


async def test_garbage_on_control_and_events_disturbs_nobody(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the task runs")

    for subject in (f"control.{request}", f"events.{request}"):
        for headers in (None, {"sender": "client/x", "kind": "cancel"}, {"sender": "client/x", "kind": "surprise"}):
            await muster.publish(subject, b"{broken", headers)
    muster.release("go")

    assert (await muster.answer(request)).status is AnswerStatus.DONE


async def test_garbage_on_control_of_a_running_request_gets_one_error_each_from_its_owner(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the task runs")

    for headers, body, _ in BAD_CONTROLS:
        await muster.publish(f"control.{request}", body, headers)
    await muster.client.cancel(request, "x" * 600_000)

    assert (await muster.answer(request)).status is AnswerStatus.CANCELLED
    assert each_once([reason for _, _, reason in BAD_CONTROLS], await muster.reasons())


@guards(
    "services/supervisor/muster_supervisor/steps/answer.py",
    "is_written = await known.compare_and_set(answer, term=known.state.term)",
    rule="I10",
    replace="is_written = True",
)
async def test_garbage_on_errors_makes_no_further_error(muster: Muster) -> None:
    await muster.start("supervisor", "s1")

    await muster.publish("errors", b"{broken", None)
    await muster.publish("requests.default", b"{broken", {"Nats-Msg-Id": "bad"})
    await muster.answer("bad")

    parsed = [raw for raw in await muster.errors() if "sender" in raw.headers]
    assert len(parsed) == 1
    assert ErrorReport.read(parsed[0].data).request_id == "bad"
