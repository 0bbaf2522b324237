"""`muster submit`: send a plan, a map or a whole request from a JSON file, and follow it as `muster ask` does."""

from argparse import Namespace

from muster_bus.process.settings import Settings
from muster_cli.commands.ask import send_and_follow
from muster_cli.json_file import read_json, read_plan
from muster_protocol.fields import check_spelling


async def submit(given: Namespace, settings: Settings) -> int:
    if given.plan is not None:
        fields = {"plan": read_plan(given.plan)}
    elif given.map is not None:
        fields = {"map": read_json(given.map, "--map")}
    else:
        fields = read_json(given.request, "--request")
    check_spelling(fields)
    return await send_and_follow(given, settings, fields)
