"""Every command with its arguments. The standard library only: `muster --help` must be instant."""

import argparse
from collections.abc import Mapping

from muster_cli.arguments import asking, local, own, requests, services
from muster_cli.arguments.command import add_command

COMMANDS: dict[str, str] = {
    "init": "muster_cli.starting.init:init",
    "up": "muster_cli.commands.up:up",
    "demo": "muster_cli.commands.demo:demo",
    "ask": "muster_cli.commands.ask:ask",
    "submit": "muster_cli.commands.submit:submit",
    "plan": "muster_cli.plan.command:plan",
    "wait": "muster_cli.commands.wait:wait",
    "status": "muster_cli.commands.status:status",
    "logs": "muster_cli.commands.logs:logs",
    "trace": "muster_cli.commands.trace:trace",
    "conflicts": "muster_cli.commands.conflicts:conflicts",
    "reply": "muster_cli.people.reply:reply",
    "note": "muster_cli.people.note:note",
    "retry": "muster_cli.people.order:retry",
    "reassign": "muster_cli.people.order:reassign",
    "cancel": "muster_cli.commands.cancel:cancel",
    "reset": "muster_cli.commands.reset:reset",
    "check": "muster_cli.commands.check:check",
    "role": "muster_cli.trying.role:role",
    "tool": "muster_cli.trying.tool:tool",
    "provision": "muster_cli.commands.provision:provision",
    "supervisor": "muster_cli.commands.services:supervisor",
    "worker": "muster_cli.commands.services:worker",
    "coordinator": "muster_cli.commands.services:coordinator",
    "fake-model": "muster_cli.local.fake_model:fake_model",
    "help": "muster_cli.manual.help:show_help",
    "completion": "muster_cli.manual.completion:completion",
    "version": "muster_cli.commands.version:version",
}

# Or with one of their own.
WITHOUT_BROKER = frozenset({"init", "up", "demo", "check", "role", "tool", "fake-model", "version"})

EPILOG = """\
exit codes: 0 done, 1 failed, 2 usage, 3 partial, 4 cancelled, 5 no broker, 6 no answer in time, 130 stopped by Ctrl-C
environment: MUSTER_NATS_URL, MUSTER_TEAM_FILE, MUSTER_TEAM (a name), MUSTER_LOG (text|json|debug|quiet),
  MUSTER_HTTP_HOST, MUSTER_HTTP_PORT, MUSTER_HEALTH_PORT, MUSTER_GRACE_SECONDS,
  MUSTER_JAEGER_URL (where traces are seen), OTEL_EXPORTER_OTLP_ENDPOINT, ANTHROPIC_API_KEY

a team of your own: `muster init DIR`
start here: `muster demo`, or `muster up` and in another terminal `muster ask "…"`
"""


def parser() -> argparse.ArgumentParser:
    return parsers()[0]


def parsers() -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """The parser of `muster`, and that of each command."""
    main = argparse.ArgumentParser(
        prog="muster",
        description="A supervisor, workers and a coordinator on NATS JetStream: teams of LLM agents that lose nothing.",
        epilog=EPILOG,
        formatter_class=_help_formatter,
    )
    main.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = main.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for group in (local, asking, own, requests, services):
        group.add_commands(commands.add_parser)
    add_command(commands.add_parser, "version", "print the version")
    for name, command in commands.choices.items():
        if name not in WITHOUT_BROKER:
            command.add_argument("--nats-url", metavar="URL", help="of the broker; default MUSTER_NATS_URL")
    about_help = add_command(commands.add_parser, "help", "print what a command does and its options")
    about_help.add_argument("about", nargs="?", metavar="COMMAND", choices=(*COMMANDS,))
    completion = add_command(commands.add_parser, "completion", "print what lets a shell complete commands and options")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    return main, commands.choices


class _Version(argparse.Action):
    """Looked up only when it is asked for: every command would pay for it."""

    def __call__(self, *_: object) -> None:
        from muster_cli.commands.version import print_version

        raise SystemExit(print_version())


def _help_formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=16, width=110)
