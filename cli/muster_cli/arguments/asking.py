"""The arguments of what sends a request, `ask` and `submit`, and of `plan`, which sends none."""

import argparse

from muster_bus.process.arguments import add_team_file, count
from muster_cli.arguments.command import AddParser, add_command, add_json

PRIORITIES = ("high", "normal", "low")  # written out: help imports no protocol


def add_commands(add_parser: AddParser) -> None:
    ask = add_command(add_parser, "ask", "ask a team something and wait for the answer")
    ask.add_argument("text", metavar="TEXT", help="what the team shall do; - reads it from standard input")
    submit = add_command(
        add_parser, "submit", "submit a plan, a map or a whole request from a JSON file (- is standard input)"
    )
    what = submit.add_mutually_exclusive_group(required=True)
    what.add_argument("--plan", metavar="FILE", help='{"tasks": [{"id", "description", "tag", "dependencies"}, …]}')
    what.add_argument("--map", metavar="FILE", help='{"template": {"description", "tag"}, "items": […], "reduce"?}')
    what.add_argument("--request", metavar="FILE", help="a request as docs/protocol.md describes it")
    for command in (ask, submit):
        _add_limits(command)
        command.add_argument("--answer-schema", metavar="FILE", help="a JSON Schema that the answer's output shall fit")
        command.add_argument("--priority", choices=PRIORITIES, help="the lane of its tasks; default: normal")
        command.add_argument("--approve", action="store_true", help="a person is to approve the plan first")
        command.add_argument(
            "--callback-url", metavar="URL", help="send the answer there; the team file names the hosts"
        )
        command.add_argument("--team", metavar="NAME", help="default: MUSTER_TEAM, else the team that is up here")
        command.add_argument("--detach", action="store_true", help="print the request's id and do not wait")
        add_json(command)
    _add_plan(add_parser)


def _add_plan(add_parser: AddParser) -> None:
    plan = add_command(
        add_parser,
        "plan",
        "show how a team would do it, what is wrong with that and what it will take; run nothing",
    )
    what = plan.add_mutually_exclusive_group(required=True)
    what.add_argument("text", nargs="?", metavar="TEXT", help="what the team shall do; - reads it from standard input")
    what.add_argument("--plan", metavar="FILE", help="look at this plan instead of making one")
    what.add_argument("--map", metavar="FILE", help="look at the tasks of this map")
    _add_limits(plan)
    add_team_file(plan)
    add_json(plan)


def _add_limits(command: argparse.ArgumentParser) -> None:
    command.add_argument("--deadline", type=_seconds, metavar="SECONDS", help="answer by then, partially if need be")
    command.add_argument("--budget-tokens", type=count, metavar="N", help="the most tokens it may use")
    command.add_argument("--budget-usd", type=_usd, metavar="USD", help="the most money it may cost")
    command.add_argument("--in-flight", type=count, metavar="N", help="the most tasks that run at once")
    command.add_argument("--num-tasks", type=count, metavar="N", help="how many tasks the plan shall have, about")


def _seconds(text: str) -> float:
    return _above_zero(text, "a number of seconds above 0")


def _usd(text: str) -> float:
    return _above_zero(text, "an amount of US dollars above 0")


def _above_zero(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return number
