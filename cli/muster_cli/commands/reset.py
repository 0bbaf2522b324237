"""`muster reset`: remove everything that was ever asked in this folder, or at the broker that MUSTER_NATS_URL names."""

import shutil
from argparse import Namespace

from muster_bus.broker import topology
from muster_bus.broker.access import shown
from muster_bus.process.command import Exit
from muster_bus.process.settings import Settings
from muster_cli.connect import connect
from muster_cli.local.folder import FOLDER, is_running
from muster_cli.local.orphan import end_orphan
from muster_cli.view.console import is_confirmed, say
from muster_protocol.errors import Misconfigured


async def reset(given: Namespace, settings: Settings) -> int:
    for folder, what in ((FOLDER, "muster up"), (FOLDER / "demo", "muster demo")):
        if is_running(folder):
            raise Misconfigured(f"{what} is running in this folder; stop it first (Ctrl-C)")
    url = settings.nats_url
    removed = [str(FOLDER)] if FOLDER.exists() else []
    if url:
        removed.append(f"every stream of Muster at {shown(url)}")
    if not removed:
        say("nothing to forget: there is no .muster folder here, and MUSTER_NATS_URL is not set")
        return Exit.DONE
    if not given.yes and not is_confirmed(f"Remove {' and '.join(removed)}, with everything in it?"):
        say("muster: nothing was removed; --yes removes without asking", is_error=True)
        return Exit.USAGE
    if url:
        await _remove_streams(settings)
    if FOLDER.exists():
        for folder in (FOLDER, FOLDER / "demo"):
            end_orphan(folder.resolve() / "nats")
        shutil.rmtree(FOLDER)
    say(f"removed {' and '.join(removed)}")
    return Exit.DONE


async def _remove_streams(settings: Settings) -> None:
    async with await connect(settings) as client:
        await topology.remove(client.bus)
