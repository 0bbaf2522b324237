"""The command line against a real broker and real services."""

import json
import os
import re
import signal
import urllib.request
from collections.abc import Generator

import pytest

from tests.flow.command_line import Here, plan, wait_for_words


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Generator[Here]:
    """A folder in which `muster up` runs."""
    folder = Here(tmp_path_factory.mktemp("here"))
    with folder.up() as (_, welcome):
        (folder.folder / "welcome.txt").write_text(welcome)
        yield folder


def test_up_is_ready_within_seconds_and_says_after_how_many(here: Here):
    seconds = re.search(r"Muster is up after (\d+\.\d) s", (here.folder / "welcome.txt").read_text())

    assert seconds is not None
    assert float(seconds[1]) < 15  # two on a machine that does nothing else


def test_a_plan_is_done_and_its_answer_is_on_stdout_alone(here: Here):
    ran = here.run("submit", "--plan", "-", text=plan(("one", "good"), ("two", "good", "one")))

    assert ran.returncode == 0, ran.stderr
    assert "did task two" in ran.stdout
    assert "plan    2 tasks" in ran.stderr
    assert "after one" in ran.stderr
    assert "done in" in ran.stderr
    assert "did task two" not in ran.stderr


def test_a_question_is_planned_and_answered_as_json(here: Here):
    ran = here.run("ask", "Do what you are told", "--json", "--deadline", "8")

    answer = json.loads(ran.stdout)
    assert ran.returncode in (0, 3), ran.stderr
    assert answer["status"] in ("done", "partial")
    assert answer["tasks"]


def test_a_plan_is_shown_without_being_run_and_then_submitted_as_it_was_shown(here: Here):
    before = here.document("status")["open"], here.document("status")["ended"]

    shown = here.run("plan", "Do what you are told", "--num-tasks", "3", "--json")

    assert shown.returncode == 0, shown.stderr
    document = json.loads(shown.stdout)
    assert len(document["plan"]["tasks"]) == 3
    assert document["estimate"]["tasks"] == 3
    assert (here.document("status")["open"], here.document("status")["ended"]) == before
    ran = here.run("submit", "--plan", "-", "--deadline", "8", "--json", text=shown.stdout)
    assert ran.returncode in (0, 3), ran.stderr
    assert {task["id"] for task in json.loads(ran.stdout)["tasks"]} == {t["id"] for t in document["plan"]["tasks"]}


def test_a_map_is_unfolded(here: Here):
    over = {"template": {"description": "greet {item}", "tag": "good"}, "items": ["Ada", "Bob"]}
    ran = here.run("submit", "--map", "-", "--json", text=json.dumps(over))

    assert ran.returncode == 0, ran.stderr
    assert [task["id"] for task in json.loads(ran.stdout)["tasks"]] == ["item-1", "item-2"]


def test_a_failed_request_exits_1_and_ends_with_its_cause(here: Here):
    ran = here.run("submit", "--plan", "-", text=plan(("one", "bad"), ("two", "good", "one")))

    assert ran.returncode == 1
    assert ran.stderr.rstrip().endswith("failed: one failed: ValueError: the mill is broken")


def test_a_partial_request_exits_3(here: Here):
    ran = here.run("submit", "--plan", "-", text=plan(("one", "good"), ("two", "bad")))

    assert ran.returncode == 3
    assert "did task one" in ran.stdout


def test_a_tag_that_nobody_has_is_named(here: Here):
    ran = here.run("submit", "--plan", "-", text=plan(("one", "maths")))

    assert ran.returncode == 1
    assert "nobody has the tag 'maths'" in ran.stdout


def test_a_detached_request_is_listed_followed_cancelled_and_explained(here: Here):
    asked = _slow(here, "asked-twice")
    request_id = here.document("submit", "--request", asked, "--detach")["request_id"]
    status = here.document("status")
    assert request_id in [request["request_id"] for request in status["requests"]]
    assert request_id in [request["id"] for request in status["requests"]]
    assert set(status["workers"][0]["tags"]) == {"good", "bad", "slow"}

    with here.start("submit", "--request", asked) as follower:
        wait_for_words(here.folder / "submit.txt", "plan    1 task")
        assert here.document("cancel", request_id, "--reason", "enough")["cancelled"] is True
        assert follower.wait(60) == 4

    status = here.document("status", request_id)
    assert status["status"] == "cancelled"
    assert re.fullmatch(r"by client/muster-\w+: enough", status["reason"])
    assert here.document("cancel", request_id)["cancelled"] is False
    assert here.run("status", request_id).stdout.rstrip().endswith(f"cancelled: {status['reason']}")


def test_a_terminal_shows_when_a_task_is_tried_again(here: Here):
    tasks = [{"id": "one", "description": "grind", "tag": "bad", "max_attempts": 2, "retry": {"backoff_seconds": 2}}]
    (here.folder / "again.json").write_text(json.dumps({"tasks": tasks}))

    shown = here.on_a_terminal("submit", "--plan", "again.json", columns=160)

    assert {len(seconds) for seconds in re.findall(r"in (\d+)\.\d s after: ", shown)} == {1}


def test_an_unknown_request_is_said_to_be_unknown(here: Here):
    ran = here.run("status", "nix")

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert "no request 'nix' is known" in ran.stderr


def test_ctrl_c_leaves_the_request_running_and_says_so(here: Here):
    with here.start("submit", "--request", _slow(here)) as follower:
        wait_for_words(here.folder / "submit.txt", "plan    1 task")
        follower.send_signal(signal.SIGINT)
        assert follower.wait(60) == 130

    printed = (here.folder / "submit.txt").read_text()
    assert "the request goes on: `muster status" in printed
    assert "Traceback" not in printed
    here.run("cancel", printed.rpartition("`muster cancel ")[2].partition("`")[0])


def test_what_a_role_says_while_it_works_is_shown(here: Here):
    with here.start("submit", "--request", _slow(here, "talks")) as follower:
        wait_for_words(here.folder / "submit.txt", "· one  step")
        here.run("cancel", "talks")
        assert follower.wait(60) == 4


def test_a_request_comes_by_http_as_the_welcome_says(here: Here):
    address = json.loads((here.folder / ".muster" / "address.json").read_text())
    body = json.dumps({"team": "small", "plan": json.loads(plan(("one", "good")))}).encode()
    asked = urllib.request.Request(
        f"{address['http_url']}/v1/requests", body, {"content-type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(asked, timeout=60) as reply:
        request_id = json.loads(reply.read())["id"]
    with urllib.request.urlopen(f"{address['http_url']}/v1/requests/{request_id}/answer?wait=20", timeout=30) as reply:
        assert json.loads(reply.read())["status"] == "done"

    assert here.document("status", request_id)["status"] == "done"
    (ended,) = [request for request in here.document("status")["ended"] if request["id"] == request_id]
    assert (ended["team"], ended["asked_at"] > 0) == ("small", True)
    assert here.document("status", request_id[:12])["id"] == request_id
    assert here.document("wait", request_id[:12])["request_id"] == request_id


def test_a_second_up_and_a_reset_are_refused(here: Here):
    for words, complaint in ((["up"], "muster up is already running in"), (["reset", "--yes"], "muster up is running")):
        ran = here.run(*words)
        assert ran.returncode == 1
        assert complaint in ran.stderr


def test_a_broker_that_dies_under_up_comes_back(here: Here):
    before = here.broker_pid()
    os.kill(before, signal.SIGKILL)

    ran = here.run("submit", "--plan", "-", text=plan(("one", "good")))
    while ran.returncode == 5:  # in the moment in which it is away
        ran = here.run("submit", "--plan", "-", text=plan(("one", "good")))

    assert ran.returncode == 0, ran.stderr
    assert here.broker_pid() != before


def _slow(here: Here, request_id: str | None = None) -> str:
    """The name of a file with a request that takes its time."""
    fields = {"plan": json.loads(plan(("one", "slow")))} | ({"id": request_id} if request_id else {})
    path = here.folder / "slow.json"
    path.write_text(json.dumps(fields))
    return str(path)
