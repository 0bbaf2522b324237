"""The arguments of what runs on this machine: `up`, `demo`, `reset`, `fake-model`."""

import argparse

from muster_bus.process.arguments import add_team_file, count, port
from muster_cli.arguments.command import AddParser, add_command

FAULTS = ("429", "529", "500", "hang", "cut", "broken", "truncate", "refuse")  # written out: help imports no model


def add_commands(add_parser: AddParser) -> None:
    up = add_command(add_parser, "up", "start a nats-server and all services in this folder, until Ctrl-C")
    add_team_file(up)
    up.add_argument("--port", type=port, metavar="N", help="of NATS; default 4222, or the next free one")
    up.add_argument(
        "--http-port", type=port, metavar="N", help="of the coordinator; default 8080, or the next free one"
    )
    up.add_argument("--slots", type=count, metavar="N", help="tasks at a time; default: what the team file says")
    demo = add_command(add_parser, "demo", "watch a team of agents at work, with everything in processes of its own")
    demo.add_argument("--kill", choices=("worker", "supervisor", "broker"), help="kill that one in the middle of it")
    reset = add_command(
        add_parser, "reset", "forget everything: remove .muster, and the streams of MUSTER_NATS_URL if that is set"
    )
    reset.add_argument("--yes", action="store_true", help="do not ask")
    _add_fake_model(add_parser)


def _add_fake_model(add_parser: AddParser) -> None:
    fake = add_command(
        add_parser, "fake-model", "answer as the APIs of Anthropic and OpenAI do, without a model, until Ctrl-C"
    )
    fake.add_argument("--port", type=port, default=8765, metavar="N", help="default 8765")
    what = fake.add_mutually_exclusive_group()
    what.add_argument("--script", metavar="FILE", help="reply what this YAML or JSON file says; default: echo")
    what.add_argument("--record", metavar="FILE", help="ask the real server, and add its replies to this file")
    what.add_argument("--replay", metavar="FILE", help="reply what was recorded in this file")
    fake.add_argument("--upstream", metavar="URL", help="the real server; default https://api.anthropic.com")
    fake.add_argument("--fault", action="append", choices=FAULTS, metavar="F", help=f"go wrong: {', '.join(FAULTS)}")
    fake.add_argument("--every", type=count, default=1, metavar="N", help="only each N-th call; default 1: each")
    fake.add_argument("--retry-after", type=_seconds, default=1.0, metavar="SECONDS", help="what a 429 asks for")


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return number
