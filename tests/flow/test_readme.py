"""What the papers show is run as it stands: the README's team, the clients, and every example of docs/extending.md."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.flow.command_line import Here, read_until
from tests.harness import ROOT

LIMIT_SECONDS = 60
SHOWN_ADDRESS = "nats://127.0.0.1:4222"
SHOWN_HTTP = "http://127.0.0.1:8080"


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, info: str) -> list[str]:
    """The blocks of a page that begin with this line."""
    return re.findall(rf"^```{re.escape(info)}\n(.*?)^```", text_of(name), re.MULTILINE | re.DOTALL)


def files(name: str) -> dict[str, str]:
    """The blocks that are files: ```python shop.py"""
    found = re.findall(r"^```\w+ (\S+)\n(.*?)^```", text_of(name), re.MULTILINE | re.DOTALL)
    return dict(found)


def dialogues(name: str, info: str = "console") -> list[tuple[str, str]]:
    """Each command after a `$`, and what the page says that it prints."""
    return [
        (command, printed)
        for block in blocks(name, info)
        for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    ]


def address(here: Here) -> str:
    return json.loads((here.folder / ".muster" / "address.json").read_text())["nats_url"]


def http_address(here: Here) -> str:
    return json.loads((here.folder / ".muster" / "address.json").read_text())["http_url"]


def python(here: Here, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", *words],
        cwd=here.folder,
        env=here.env,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Generator[Here]:
    """`muster up` with the sample team."""
    here = Here(tmp_path_factory.mktemp("cloud"))
    (here.folder / "team.yaml").unlink()
    with here.up():
        yield here


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Generator[Here]:
    """`muster up` with the team of docs/extending.md."""
    here = Here(tmp_path_factory.mktemp("shop"))
    for name, text in files("docs/extending.md").items():
        (here.folder / name).write_text(text, encoding="utf-8")
    with here.up():
        yield here


def test_six_lines_of_nats_py_ask_and_read_the_answer_from_the_stream(cloud: Here):
    (code,) = [block for block in blocks("docs/clients.md", "python") if "import nats" in block or ", nats" in block]

    ran = python(cloud, "-c", code.replace(SHOWN_ADDRESS, address(cloud)))

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("# Compare AWS and Azure")


def test_the_python_client_prints_what_the_page_says(cloud: Here):
    (code,) = [block for block in blocks("docs/clients.md", "python") if "muster_client" in block]
    (shown,) = [block for block in blocks("docs/clients.md", "text") if block.startswith("aws done")]

    ran = python(cloud, "-c", code.replace(SHOWN_ADDRESS, address(cloud)))

    assert ran.returncode == 0, ran.stderr
    assert same(ran.stdout) == same(shown)


def same(printed: str) -> list[str]:
    """Without instances and times, which differ; the first two tasks run together and end in any order."""
    lines = [re.sub(r" ([0-9a-f]{4}|[\d.]+)$", "", line) for line in printed.splitlines()]
    return [*sorted(lines[:2]), *lines[2:]]


def test_a_bare_publish_is_found_by_the_id_that_the_page_gives(cloud: Here):
    publish = (
        "import asyncio, hashlib, json, nats\n"
        "async def main():\n"
        f"    nc = await nats.connect({address(cloud)!r})\n"
        '    body = b\'{"text": "Compare AWS and Azure"}\'\n'
        '    stored = json.loads((await nc.request("requests.default", body, timeout=5)).data)\n'
        "    print(f\"{stored['seq']}-{hashlib.sha256(body).hexdigest()[:12]}\")\n"
        "    await nc.close()\n"
        "asyncio.run(main())\n"
    )
    request_id = python(cloud, "-c", publish).stdout.strip()

    listed = cloud.document("status")

    assert request_id in [
        request.get("request_id") or request["id"] for request in listed["requests"] + listed["ended"]
    ]


def test_curl_prints_what_the_page_says(cloud: Here):
    calls = [(command, printed) for command, printed in dialogues("docs/clients.md") if command.startswith("curl ")]
    (shown_id,) = {found for command, _ in calls for found in re.findall(r"[0-9a-f]{16}", command)}
    request_id = shown_id

    for command, printed in calls:
        reply = curl(cloud, command.replace(shown_id, request_id), len(printed.splitlines()))
        if " -d " in command:
            request_id = json.loads(reply)["id"]

        assert without_values(reply.replace(request_id, shown_id)).startswith(without_values(printed.rstrip("…\n ,")))


def curl(here: Here, command: str, lines: int) -> str:
    """The first lines of what curl would print; it is not on every machine."""
    words = shlex.split(command)
    url = next(word for word in words if word.startswith("http"))
    body = words[words.index("-d") + 1].encode() if "-d" in words else None
    headers = dict([words[words.index("-H") + 1].split(": ")]) if "-H" in words else {}
    request = Request(url.replace(SHOWN_HTTP, http_address(here)), data=body, headers=headers)
    with urlopen(request, timeout=LIMIT_SECONDS) as response:
        return "".join(response.readline().decode() for _ in range(lines))


def without_values(text: str) -> str:
    """Without instances, times and places in the stream, which differ."""
    return re.sub(r"(?<=\bid: )\d+|\d+\.\d+|(?<=[/\"])[0-9a-f]{4}(?=\")", "N", text)


def test_the_team_of_the_readme_answers_the_question_of_the_readme(tmp_path: Path):
    here = Here(tmp_path)
    (tmp_path / "team.yaml").write_text(files("README.md")["team.yaml"], encoding="utf-8")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    ((ask, printed),) = [(command, printed) for command, printed in dialogues("README.md") if " ask " in command]
    (overview,) = [printed for command, printed in dialogues("README.md") if command == "muster status"]

    with here.up() as (_, welcome):
        asked = here.run(*shlex.split(ask)[1:])
        status = here.run("status")

    assert "team clouds with researcher, analyst, writer" in welcome
    assert asked.returncode == 0, asked.stderr
    for line in shown_lines(printed):
        assert line in asked.stdout.splitlines()
    assert without_names(status.stdout) == without_names(overview)


def without_names(table: str) -> list[list[str]]:
    """The words of each line, without what differs: ids, names of workers and clients, times."""
    plain = re.sub(r"\b([0-9a-f]{16}|[\d.]+ m?s)\b", "N", re.sub(r"\b(worker|muster)-\w+", r"\1", table))
    return [line.split() for line in plain.splitlines()]


def shown_lines(printed: str) -> list[str]:
    return [line for line in printed.splitlines() if line.strip() != "…"]


def test_the_demo_prints_the_lines_that_the_readme_shows(tmp_path: Path):
    (shown,) = [printed for command, printed in dialogues("README.md") if command == "make demo"]
    here = Here(tmp_path)

    ran = here.run("demo")

    assert ran.returncode == 0, ran.stderr
    lines = {without_times(line) for line in (ran.stdout + ran.stderr).splitlines()}
    assert {without_times(line) for line in shown.splitlines()} <= lines


def without_times(line: str) -> str:
    """Which of the two workers gets a task differs too."""
    return re.sub(r"\d+\.\d", "N", re.sub(r"worker-[12]", "worker", line)).strip()


@pytest.mark.parametrize(("command", "printed"), dialogues("docs/extending.md"))
def test_the_examples_of_extending_print_what_the_page_says(shop: Here, command: str, printed: str):
    program, *words = re.findall(r'"([^"]*)"|(\S+)', command)
    plain = [quoted or bare for quoted, bare in words]

    ran = shop.run(*plain) if "muster" in program else python(shop, *plain)

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == printed


def test_the_service_of_extending_hears_an_answer_and_ends_cleanly(shop: Here):
    env = {**shop.env, "MUSTER_NATS_URL": address(shop)}
    with subprocess.Popen(
        [sys.executable, "scribe.py"], cwd=shop.folder, env=env, stdout=subprocess.PIPE, text=True
    ) as scribe:
        try:
            read_until(scribe, "scribe/1 is ready")
            request_id = json.loads(shop.run("submit", "--plan", "plan.json", "--detach", "--json").stdout)[
                "request_id"
            ]
            line = read_until(scribe, request_id)
        finally:
            scribe.send_signal(signal.SIGTERM)

        assert line.endswith(f"{request_id} done\n")
        assert scribe.wait(LIMIT_SECONDS) == 0


def test_the_test_of_extending_passes(tmp_path: Path):
    here = Here(tmp_path)
    (tmp_path / "test_greeter.py").write_text(files("docs/extending.md")["test_greeter.py"], encoding="utf-8")

    options = ("-q", "-o", "asyncio_default_fixture_loop_scope=function")  # unset, pytest-asyncio warns
    ran = python(here, "-m", "pytest", *options, "test_greeter.py")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout


def test_the_ten_minutes_of_extending_go_as_the_page_says(tmp_path: Path):
    here, rest = Here(tmp_path), dialogues("docs/extending.md", "console in this order")
    with ExitStack() as until_the_end:
        for command, printed in rest:
            program, *words = shlex.split(command)
            if program == "cd":
                here.folder = here.folder / words[0]
            elif words == ["up"]:
                until_the_end.enter_context(here.up())
            else:
                plain = ("-W", "ignore", "-m", "pytest", "-o", "addopts=")
                ran = here.run(*words) if program == "muster" else python(here, *plain)

                assert ran.returncode == 0, ran.stdout + ran.stderr
                assert set(shown_lines(printed)) <= set(ran.stdout.splitlines()), command
    assert [command.split()[0] for command, _ in rest].count("muster") == 6


def test_every_example_of_extending_is_here():
    assert set(files("docs/extending.md")) == {
        "shop.py",
        "team.yaml",
        "plan.json",
        "test_greeter.py",
        "noted.py",
        "scribe.py",
        "app.py",
    }
