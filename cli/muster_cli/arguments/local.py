"""The arguments of what runs everything on this machine: `up`, `demo`, `reset`."""

from muster_bus.process.arguments import add_team_file, count, port
from muster_cli.arguments.command import AddParser, add_command


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
