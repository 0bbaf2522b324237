"""The words of the command line. Standard library only: `muster --help` must be instant."""

import argparse
from collections.abc import Callable

COMMANDS: dict[str, str] = {
    "up": "muster_cli.commands.up:up",
    "demo": "muster_cli.commands.demo:demo",
    "ask": "muster_cli.commands.ask:ask",
    "submit": "muster_cli.commands.ask:submit",
    "status": "muster_cli.commands.status:status",
    "cancel": "muster_cli.commands.status:cancel",
    "reset": "muster_cli.commands.reset:reset",
    "provision": "muster_cli.commands.services:provision",
    "supervisor": "muster_cli.commands.services:supervisor",
    "worker": "muster_cli.commands.services:worker",
    "coordinator": "muster_cli.commands.services:coordinator",
    "version": "muster_cli.commands.version:version",
}

EPILOG = """\
exit codes: 0 done, 1 failed, 2 usage, 3 partial, 4 cancelled, 5 no broker, 130 stopped by Ctrl-C
environment: MUSTER_NATS_URL, MUSTER_TEAM (team file), MUSTER_LOG (text|json|debug|quiet), MUSTER_HTTP_HOST,
  MUSTER_HTTP_PORT, MUSTER_HEALTH_PORT, MUSTER_GRACE_SECONDS, MUSTER_JAEGER_URL (links to traces),
  OTEL_EXPORTER_OTLP_ENDPOINT, ANTHROPIC_API_KEY

start here: `muster demo`, or `muster up` and in another terminal `muster ask "…"`
"""

Add = Callable[..., argparse.ArgumentParser]


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser(
        prog="muster",
        description="A supervisor, workers and a coordinator on NATS JetStream: teams of LLM agents that lose nothing.",
        epilog=EPILOG,
        formatter_class=_wide,
    )
    main.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True)
    add: Add = commands.add_parser
    _running(add)
    _asking(add)
    _looking(add)
    _services(add)
    return main


class _Version(argparse.Action):
    """Looked up only when asked for: every command would pay for it."""

    def __call__(self, *_: object) -> None:
        from muster_cli.commands.version import version

        raise SystemExit(version(argparse.Namespace()))


def _wide(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=16, width=110)


def _running(add: Add) -> None:
    up = _command(add, "up", "start a nats-server and all services in this folder, until Ctrl-C")
    _team_file(up)
    up.add_argument("--port", type=_port, metavar="N", help="of NATS; default 4222, or the next free one")
    up.add_argument(
        "--http-port", type=_port, metavar="N", help="of the coordinator; default 8080, or the next free one"
    )
    up.add_argument("--slots", type=_count, metavar="N", help="tasks at a time; default: what the team file says")
    demo = _command(add, "demo", "watch a team of agents at work, with everything in processes of its own")
    demo.add_argument("--kill", choices=("worker", "supervisor", "broker"), help="kill that one in the middle of it")
    reset = _command(
        add, "reset", "forget everything: remove .muster, and the streams of MUSTER_NATS_URL if that is set"
    )
    reset.add_argument("--yes", action="store_true", help="do not ask")


def _asking(add: Add) -> None:
    ask = _command(add, "ask", "ask a team something and wait for the answer")
    ask.add_argument("text", metavar="TEXT", help="what the team shall do; - reads it from standard input")
    submit = _command(add, "submit", "submit a plan, a map or a whole request from a JSON file (- is standard input)")
    what = submit.add_mutually_exclusive_group(required=True)
    what.add_argument("--plan", metavar="FILE", help='{"tasks": [{"id", "description", "tag", "dependencies"}, …]}')
    what.add_argument("--map", metavar="FILE", help='{"template": {"description", "tag"}, "items": […], "reduce"?}')
    what.add_argument("--request", metavar="FILE", help="a request as docs/protocol.md describes it")
    for command in (ask, submit):
        command.add_argument(
            "--deadline", type=_seconds, metavar="SECONDS", help="answer by then, partially if need be"
        )
        command.add_argument("--budget-tokens", type=_count, metavar="N", help="the most tokens it may use")
        command.add_argument("--team", metavar="NAME", help="name of the team; default: the one that is up here")
        command.add_argument("--detach", action="store_true", help="print the request's id and do not wait")
        _json(command)


def _looking(add: Add) -> None:
    status = _command(add, "status", "what is going on, or how one request stands and why")
    status.add_argument("id", nargs="?", metavar="ID", help="of a request")
    _json(status)
    cancel = _command(add, "cancel", "end a request now; finished work is kept in its answer")
    cancel.add_argument("id", metavar="ID", help="of a request")
    cancel.add_argument("--reason", default="", help="what the answer says about it")
    _json(cancel)
    _command(add, "version", "print the version")


def _services(add: Add) -> None:
    provision = _command(add, "provision", "make the streams, consumers and buckets of a team; again changes nothing")
    provision.add_argument("--replicas", type=_count, default=1, metavar="N", help="copies of each stream; default 1")
    _json(provision)
    supervisor = _command(add, "supervisor", "run a supervisor: it plans requests and answers them")
    worker = _command(add, "worker", "run a worker: it does the tasks of its roles")
    worker.add_argument("--role", action="append", metavar="R", help="only this role of the team; may be repeated")
    worker.add_argument("--slots", type=_count, metavar="N", help="tasks at a time; default: what the team file says")
    coordinator = _command(add, "coordinator", "run a coordinator: the HTTP API and the watch")
    coordinator.add_argument("--host", help="to listen on; default MUSTER_HTTP_HOST or 127.0.0.1")
    coordinator.add_argument("--port", type=_port, metavar="N", help="default MUSTER_HTTP_PORT or 8080")
    for command in (provision, supervisor, worker):
        _team_file(command)
    for command in (supervisor, worker, coordinator):
        command.add_argument("--name", help="of this instance; default: the host's name and four random digits")


def _command(add: Add, name: str, text: str) -> argparse.ArgumentParser:
    return add(name, help=text, description=f"{text[0].upper()}{text[1:]}.")


def _team_file(command: argparse.ArgumentParser) -> None:
    command.add_argument("--team", metavar="FILE", help="default: MUSTER_TEAM, else ./team.yaml, else the sample team")


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="one JSON document on standard output")


def _count(text: str) -> int:
    return _whole(text, 1, None, "a whole number of at least 1")


def _port(text: str) -> int:
    return _whole(text, 1, 65_535, "a port from 1 to 65535")


def _whole(text: str, least: int, most: int | None, what: str) -> int:
    if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds
