"""`muster supervisor`, `muster worker` and `muster coordinator`: what `python -m muster_supervisor` and its like run.

Where MUSTER_NATS_URL names no broker they take that of this folder's `muster up`.
"""

from argparse import Namespace
from dataclasses import replace

import muster_coordinator.__main__
import muster_supervisor.__main__
import muster_worker.__main__
from muster_bus.process.settings import Settings
from muster_cli.local.folder import nats_url


async def supervisor(given: Namespace, settings: Settings) -> int:
    return await muster_supervisor.__main__.serve(given, _with_broker(settings))


async def worker(given: Namespace, settings: Settings) -> int:
    return await muster_worker.__main__.serve(given, _with_broker(settings))


async def coordinator(given: Namespace, settings: Settings) -> int:
    return await muster_coordinator.__main__.serve(given, _with_broker(settings))


def _with_broker(settings: Settings) -> Settings:
    return replace(settings, nats_url=nats_url(settings))
