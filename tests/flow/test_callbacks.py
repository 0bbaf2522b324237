"""An answer is sent to the `callback_url` of its request, signed, and only to where the team allows it."""

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from muster_bus.broker.embedded import free_port
from muster_client.callbacks import verify
from muster_protocol import subjects
from muster_protocol.messages import Answer, AnswerStatus
from muster_testing.services import environment
from tests.flow.calling import ENV, LOCAL, RULES, SECRET, called_back, calling, calling_back, lines, until_called
from tests.flow.command_line import Here
from tests.guards import guards
from tests.harness import ROOT, running
from tests.receiver import receiving

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def test_the_answer_is_sent_signed_and_once_all_is_well(tmp_path: Path) -> None:
    async with calling_back(tmp_path) as (muster, receiver):
        request = await muster.submit([{"id": "a", "orders": {"output": {"n": 1}}}], callback_url=receiver.url())
        (got,) = await receiver.until(1)
        await until_called(muster)

        (answer,) = await muster.entries(request, Answer)
        assert isinstance(answer.body, Answer)
        sent = json.loads(got.body)
        assert verify(SECRET, got.headers, got.body)
        assert not verify(SECRET, got.headers, got.body + b" ")
        assert got.line == "POST /in?token=hidden HTTP/1.1"
        assert got.headers["Content-Type"] == "application/json"
        assert got.headers["Muster-Request-Id"] == sent["request_id"] == request
        assert (sent["team"], sent["status"], sent["text"]) == ("default", "done", answer.body.text)
        assert sent["answered_at"] == answer.time
        assert await lines(muster, request) == ["✓ callback delivered to 127.0.0.1 in 1 try"]
        assert len(receiver.got) == 1
        assert "hidden" not in muster.service_log("s1")
        assert SECRET not in muster.service_log("s1")


async def test_the_trace_of_whoever_asked_goes_on_at_the_receiver(tmp_path: Path) -> None:
    async with calling_back(tmp_path) as (muster, receiver):
        body = json.dumps({"text": "Hi", "callback_url": receiver.url()}).encode()
        await muster.publish(subjects.requests("default"), body, {"traceparent": TRACE})
        (got,) = await receiver.until(1)

        assert got.headers["traceparent"][:35] == TRACE[:35]


async def test_a_receiver_that_is_away_gets_it_when_it_is_back(tmp_path: Path) -> None:
    async with calling(tmp_path) as muster:
        async with receiving() as away:
            url, port = away.url(), away.port
        await muster.start("supervisor", "s1", env=ENV)
        request = await muster.submit([{"id": "a"}], callback_url=url)
        await muster.until_logged("s1", "waits, tried again in")
        async with receiving(503, 429, 204, port=port) as receiver:
            await receiver.until(3)
            await until_called(muster)

        outcomes = [event.outcome for event in await called_back(muster, request)]
        assert outcomes == ["waits"] * (len(outcomes) - 1) + ["delivered"]
        said = await lines(muster, request)
        assert "waits, tried again in" in said[0]
        assert f"in {len(said)} tries" in said[-1]


@pytest.mark.parametrize(
    ("status", "fields", "reason"),
    [
        (410, "", "the receiver says 410"),
        pytest.param(
            302, "Location: http://127.0.0.1:1/\r\n", "redirects, which is not followed", marks=pytest.mark.sweep
        ),
    ],
)
async def test_what_a_receiver_refuses_is_given_up_at_once(
    tmp_path: Path, status: int, fields: str, reason: str
) -> None:
    async with calling(tmp_path) as muster, receiving(status, fields=fields) as receiver:
        await muster.start("supervisor", "s1", env=ENV)
        request = await muster.submit([{"id": "a"}], callback_url=receiver.url())
        await receiver.until(1)
        await until_called(muster)

        (report,) = await muster.reasons()
        assert reason in report
        assert "127.0.0.1" in report
        assert "hidden" not in str(await muster.errors())
        assert [event.outcome for event in await called_back(muster, request)] == ["given_up"]
        assert len(receiver.got) == 1


@pytest.mark.sweep
async def test_a_receiver_that_never_takes_it_is_given_up_in_time(tmp_path: Path) -> None:
    rules = RULES % ("", ", give_up_after_seconds: 3")
    async with calling(tmp_path, rules) as muster, receiving(503) as receiver:
        await muster.start("supervisor", "s1", env=ENV)
        request = await muster.submit([{"id": "a"}], callback_url=receiver.url())
        await until_called(muster)

        assert [event.outcome for event in await called_back(muster, request)][-1] == "given_up"
        assert "the receiver says 503" in (await muster.reasons())[0]


@guards(
    "services/supervisor/muster_supervisor/calling/deliver.py",
    "raise Invalid(text)",
    rule="I10",
)
async def test_a_name_that_stands_for_a_private_address_is_not_called(tmp_path: Path) -> None:
    rules = "callbacks: {hosts: [localhost], http: true}\n"
    async with calling(tmp_path, rules) as muster, receiving() as receiver:
        await muster.start("supervisor", "s1", env=ENV)
        await muster.submit([{"id": "a"}], callback_url=receiver.url(host="localhost"))
        await until_called(muster)

        (report,) = await muster.reasons()
        assert "localhost stands for" in report
        assert "which is not public" in report
        assert receiver.got == []


@pytest.mark.parametrize(
    ("rules", "url", "env", "reason"),
    [
        ("", "https://example.org/x", ENV, "callback_url: this team calls nobody back"),
        pytest.param(
            LOCAL,
            "https://example.org/x?token=hidden",
            ENV,
            "the team does not call 'example.org'",
            marks=pytest.mark.sweep,
        ),
        pytest.param(LOCAL, "https://127.0.0.1/", {}, "MUSTER_CALLBACK_SECRET", marks=pytest.mark.sweep),
    ],
)
async def test_a_request_that_may_not_be_called_back_is_refused_by_its_field(
    tmp_path: Path, rules: str, url: str, env: dict[str, str], reason: str
) -> None:
    async with running(tmp_path, roles=rules) as muster:
        await muster.start("supervisor", "s1", env=env)
        answer = await muster.answer(await muster.submit([{"id": "a"}], callback_url=url))
        await until_called(muster)

        assert answer.status is AnswerStatus.FAILED
        assert reason in answer.reason
        assert "hidden" not in answer.model_dump_json() + str(await muster.errors())


async def test_an_invalid_request_is_called_back_too(tmp_path: Path) -> None:
    async with running(tmp_path, roles=LOCAL) as muster, receiving() as receiver:
        await muster.start("supervisor", "s1", env=ENV)
        body = json.dumps({"text": 5, "callback_url": receiver.url()}).replace("callback", "callb\\u0061ck").encode()
        await muster.publish(subjects.requests("default"), body, None)
        (got,) = await receiver.until(1)

        assert json.loads(got.body)["status"] == "failed"


async def test_one_slow_receiver_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async with calling(tmp_path) as muster, receiving(0) as slow, receiving() as quick:
        await muster.start("supervisor", "s1", env=ENV)
        for _ in range(4):
            await muster.submit([{"id": "a"}], callback_url=slow.url())
        await slow.until(4)
        await muster.submit([{"id": "a"}], callback_url=quick.url())

        await quick.until(1)


@pytest.mark.sweep
async def test_a_large_answer_is_sent_without_its_output(tmp_path: Path) -> None:
    async with calling_back(tmp_path) as (muster, receiver):
        await muster.submit([{"id": "a", "orders": {"output": "x" * 600_000}}], callback_url=receiver.url())
        (got,) = await receiver.until(1)

        sent = json.loads(got.body)
        assert sent["truncated"] is True
        assert sent["request_id"] in sent["read"]
        assert len(got.body) <= 256 * 1024


async def test_the_command_line_asks_for_a_callback_and_shows_it(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "here").mkdir()
    async with calling(tmp_path / "team") as muster, receiving() as receiver:
        await muster.start("supervisor", "s1", env=ENV)
        here = Here(tmp_path / "here", MUSTER_NATS_URL=muster.broker.url)
        plan = json.dumps({"tasks": [{"id": "a", "description": "{}", "tag": "scripted"}]})
        words = ("submit", "--plan", "-", "--callback-url", receiver.url(), "--detach")
        ran = await asyncio.to_thread(here.run, *words, text=plan)
        await receiver.until(1)
        await until_called(muster)
        logs = await asyncio.to_thread(here.run, "logs", ran.stdout.strip())

        assert "✓ callback delivered to 127.0.0.1 in 1 try" in logs.stdout
        assert "hidden" not in logs.stdout


async def test_the_receiver_of_the_page_about_clients_takes_what_is_ours(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "clients.md").read_text()
    (tmp_path / "receiver.py").write_text(re.findall(r"```python receiver.py\n(.*?)```", page, re.DOTALL)[0])
    port = free_port()
    async with calling(tmp_path) as muster:
        await muster.start("supervisor", "s1", env=ENV)
        receiver = await asyncio.create_subprocess_exec(
            sys.executable,
            str(tmp_path / "receiver.py"),
            env={**environment(tmp_path, muster.broker.url), **ENV, "PORT": str(port)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            request = await muster.submit([{"id": "a"}], callback_url=f"http://127.0.0.1:{port}/in")
            assert receiver.stdout is not None
            said = await asyncio.wait_for(receiver.stdout.readline(), 30)
            await until_called(muster)
        finally:
            receiver.kill()
            await receiver.wait()

        assert said.decode() == f"{request} done\n"
        assert (await called_back(muster, request))[-1].outcome == "delivered"
