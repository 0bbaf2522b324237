"""`muster reset`: forget everything that was ever asked in this folder, or at the broker that the environment names."""

import json
import os
import shutil
import sys
from argparse import Namespace

from muster_cli.exits import Exit
from muster_cli.leftover import end_leftover
from muster_cli.place import FOLDER, is_running
from muster_protocol.errors import Misconfigured

BUCKETS = ("KV_workers", "KV_teams", "OBJ_bodies")


async def reset(given: Namespace) -> int:
    for folder, what in ((FOLDER, "muster up"), (FOLDER / "demo", "muster demo")):
        if is_running(folder):
            raise Misconfigured(f"{what} is running in this folder; stop it first (Ctrl-C)")
    url = os.environ.get("MUSTER_NATS_URL")
    removed = [str(FOLDER)] if FOLDER.exists() else []
    if url:
        removed.append(f"every stream of Muster at {url}")
    if not removed:
        print("nothing to forget: there is no .muster folder here, and MUSTER_NATS_URL is not set")
        return Exit.DONE
    if not given.yes and not _is_sure(removed):
        print("muster: nothing was removed; --yes removes without asking", file=sys.stderr)
        return Exit.USAGE
    if url:
        await _remove_streams(url)
    if FOLDER.exists():
        for folder in (FOLDER, FOLDER / "demo"):
            end_leftover(folder.resolve() / "nats")
        shutil.rmtree(FOLDER)
    print(f"removed {' and '.join(removed)}")
    return Exit.DONE


def _is_sure(removed: list[str]) -> bool:
    if not sys.stdin.isatty():
        return False
    return input(f"Remove {' and '.join(removed)}, with everything in it? [y/N] ").strip().lower() in ("y", "yes")


async def _remove_streams(url: str) -> None:
    from muster_bus import topology
    from muster_cli.link import connect

    names = [stream.name for stream in topology.streams(topology.Settings(), (), ())]
    async with await connect(url=url) as client:
        for name in (*names, *BUCKETS):
            reply = await client.bus.nc.request(f"$JS.API.STREAM.DELETE.{name}", timeout=5)
            error = json.loads(reply.data).get("error")
            if error and error.get("code") != 404:
                raise Misconfigured(f"the broker refuses to remove {name}: {error.get('description')}")
