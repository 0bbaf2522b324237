"""The arguments of what makes a team of one's own: `init`, and `role` and `tool`, which try a part of it alone."""

import argparse

from muster_bus.process.arguments import add_team_file
from muster_cli.arguments.command import AddParser, add_command, add_json


def add_commands(add_parser: AddParser) -> None:
    init = add_command(add_parser, "init", "make a folder with a team of your own to start from; overwrites nothing")
    init.add_argument("folder", metavar="DIR", help="where; it is made if it is not there")
    init.add_argument("--name", metavar="N", help="of the team; default: the folder's name")
    role = add_command(add_parser, "role", "try one role alone, without a broker: its prompt, turns, tools and cost")
    role.add_argument("action", choices=("try",), metavar="try", help="do one task and show all that happens")
    role.add_argument("name", metavar="NAME", help="of a role of the team")
    role.add_argument("text", metavar="TEXT", help="what it shall do; - reads it from standard input")
    role.add_argument("--inputs", metavar="JSON", help='inputs of the task, such as \'{"page": "home"}\'')
    role.add_argument("--outputs", metavar="JSON", help="outputs of the tasks that it depends on, by their ids")
    role.add_argument("--model", metavar="M", help="instead of the one that the team file says")
    tool = add_command(add_parser, "tool", "try one tool alone: what a model is told of it, and what it returns")
    tool.add_argument("action", choices=("try",), metavar="try", help="call it once")
    tool.add_argument("name", metavar="NAME", help="of a tool of the team, of a built-in one, or module:function")
    tool.add_argument("arguments", metavar="JSON", help="its arguments, such as '{}'")
    for command in (role, tool):
        _finish(command)


def _finish(command: argparse.ArgumentParser) -> None:
    add_team_file(command)
    add_json(command)
