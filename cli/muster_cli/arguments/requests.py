"""The arguments of what looks at requests, replies to them and ends them."""

from muster_cli.arguments.command import AddParser, add_command, add_json


def add_commands(add_parser: AddParser) -> None:
    wait = add_command(add_parser, "wait", "follow a request that was asked before, and print its answer")
    wait.add_argument("id", metavar="ID", help="of a request")
    add_json(wait)
    status = add_command(add_parser, "status", "what is going on, or how one request stands and why")
    status.add_argument("id", nargs="?", metavar="ID", help="of a request")
    add_json(status)
    logs = add_command(add_parser, "logs", "what every service did for a request, line by line, from the streams")
    logs.add_argument("id", metavar="ID", help="of a request")
    logs.add_argument("--follow", action="store_true", help="go on until the request is answered")
    logs.add_argument("--json", action="store_true", help="one JSON object for each line")
    trace = add_command(add_parser, "trace", "what happened in a request, step by step: a waterfall of its log")
    # The id first: URL would take it.
    trace.usage = "muster trace ID [-h] [--all] [--json] [--jaeger [URL]] [--nats-url URL]"
    trace.add_argument("id", metavar="ID", help="of a request")
    trace.add_argument("--all", action="store_true", help="every line, also of a very long request")
    add_json(trace)
    trace.add_argument(
        "--jaeger",
        nargs="?",
        const="",
        metavar="URL",
        help="say what Jaeger lacks of it; default MUSTER_JAEGER_URL; exit code 1 if anything is missing",
    )
    conflicts = add_command(
        add_parser, "conflicts", "what was assigned, started or finished twice, and what was decided"
    )
    conflicts.add_argument("id", nargs="?", metavar="ID", help="of a request; default: all, newest first")
    conflicts.add_argument("--kind", metavar="K", help="only this kind, such as started_twice")
    add_json(conflicts)
    _add_reply(add_parser)
    _add_orders(add_parser)
    cancel = add_command(add_parser, "cancel", "end a request now; finished work is kept in its answer")
    cancel.add_argument("id", metavar="ID", help="of a request")
    cancel.add_argument("--reason", default="", help="what the answer says about it")
    add_json(cancel)


def _add_orders(add_parser: AddParser) -> None:
    retry = add_command(add_parser, "retry", "try a task of an open request again that failed or waits to be tried")
    reassign = add_command(add_parser, "reassign", "give a task of an open request to another role, or to one worker")
    for command in (retry, reassign):
        command.add_argument("id", metavar="ID", help="of a request")
        command.add_argument("task", metavar="TASK", help="the id of a task, as `muster status ID` shows it")
    reassign.add_argument("role", nargs="?", metavar="ROLE", help="who gets it, whether it matches the task or not")
    reassign.add_argument("--worker", metavar="NAME", help="instead of a role: a worker that the team file names")
    for command in (retry, reassign):
        command.add_argument("--reason", default="", help="why; it stands in the log")
        add_json(command)


def _add_reply(add_parser: AddParser) -> None:
    reply = add_command(add_parser, "reply", "reply to what a request asks, such as whether its plan is carried out")
    reply.add_argument("id", metavar="ID", help="of a request")
    reply.add_argument("reply", metavar="CHOICE", help="one of its choices: approve, edit or reject a plan; or a value")
    reply.add_argument("--plan", metavar="FILE", help="with edit: the plan that is carried out instead, as JSON")
    reply.add_argument("--reason", default="", help="why; it stands in the log, and in the answer of what is rejected")
    reply.add_argument("--question", default="", metavar="ID", help="which, where a request asks several")
    add_json(reply)
    note = add_command(add_parser, "note", "say something about a request that goes on: its next model calls follow it")
    note.add_argument("id", metavar="ID", help="of a request")
    note.add_argument("text", metavar="TEXT", help="what you have to say; its first 2,000 characters count")
