"""`python -m tests.chaos --seed S --minutes M [--cluster]`: faults and requests, quiet, then the checker's verdict."""

import argparse
import asyncio
import json
import logging
import random
import re
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

from muster_bus.broker.topology import Provisioning
from muster_bus.connection import Bus
from muster_client import Client
from muster_protocol.conflict import ConflictKind
from muster_protocol.sender import Sender
from muster_protocol.subjects import STREAMS
from muster_testing.cluster import provision_when_elected
from tests.chaos.checker import Checker, Violation
from tests.chaos.copies import WINDOW_SECONDS, Copies
from tests.chaos.disks import Disk
from tests.chaos.doubles import executed_twice
from tests.chaos.evidence import Evidence, Reader
from tests.chaos.faults import Faults
from tests.chaos.ledger import Ledger, Word
from tests.chaos.processes import ROOT, Processes
from tests.chaos.starvation import watch_starvation
from tests.chaos.traffic import DEADLINE_SECONDS, TAGS, Traffic

LEASE_SECONDS = 1.0
UNCHANGED_SECONDS = 4.0
BUSY_PART = 0.2  # of a run: with more of it starved a green verdict says little
SETTLE_SECONDS = DEADLINE_SECONDS + 15.0  # the last deadline, and time to drain
TEAM = f"""\
team: default
supervisor: {{model: offline}}
roles:
  - {{name: scripted, tags: [other], run: "muster_testing.roles:scripted"}}
  - {{name: second, run: "muster_testing.roles:scripted"}}
limits: {{in_flight: 8, deadline_seconds: {DEADLINE_SECONDS:g}}}
"""


async def chaos(options: argparse.Namespace, folder: Path) -> list[Violation]:
    """One run, from nothing to the verdict."""
    ledger = Ledger()
    processes = Processes(folder, ledger, is_cluster=options.cluster)
    try:
        await processes.start_brokers()
        bus = await _provisioned(processes, options.cluster)
        await processes.start_services()
        say("started", f"{len(processes.brokers)} broker(s), 2 supervisors, 3 workers, 2 coordinators")
        if not processes.have_disks:
            say("", f"NO DISK IS FILLED IN THIS RUN: none can be mounted here ({processes.disks[0].why_not})")
        reader = Reader(bus, folder)
        watching = [asyncio.create_task(processes.watch()), asyncio.create_task(watch_starvation(processes, ledger))]
        await disturb(processes, bus, options)
        say("traffic", traffic_line(ledger))
        say("faults", faults_line(ledger))
        if (starved := sum(end - start for start, end in ledger.lags)) > options.minutes * 60 * BUSY_PART:
            say("", f"THE MACHINE IS BUSY: services starved for {starved:.0f} s, in which no time is judged")
        say("settled", await settle(processes, reader))
        for task in watching:
            task.cancel()
        await processes.stop_services()
        ledger.deaths.extend(death for service in processes.services for death in service.broken())
        return report(ledger, await reader.everything(), reader, folder, is_cluster=options.cluster)
    finally:
        await processes.close()


async def _provisioned(processes: Processes, is_cluster: bool) -> Bus:
    settings = Provisioning(
        replicas=3 if is_cluster else 1, lease_seconds=LEASE_SECONDS, ack_wait_seconds=LEASE_SECONDS
    )
    bus = await Bus.connect(processes.url, Sender("tests", "observer"))
    await provision_when_elected(bus, settings, ["default"], TAGS)
    js = bus.nc.jetstream(timeout=5)
    config = (await js.stream_info(STREAMS["tasks"])).config
    config.duplicate_window = WINDOW_SECONDS
    await js.update_stream(config)
    return bus


async def disturb(processes: Processes, bus: Bus, options: argparse.Namespace) -> None:
    """Requests and faults side by side; chance is drawn from two sources, so that neither changes the other."""
    until = time.monotonic() + options.minutes * 60
    client = await Client.connect(processes.url, name="chaos")
    traffic = Traffic(client, processes.ledger, random.Random(f"{options.seed} traffic"), f"c{options.seed}")
    faults = Faults(processes, bus, random.Random(f"{options.seed} faults"), LEASE_SECONDS)
    async with asyncio.TaskGroup() as both:
        both.create_task(traffic.run(until))
        both.create_task(Copies(bus, processes.ledger, options.seed).run(until))
        both.create_task(faults.run(until))
    await client.close()


async def settle(processes: Processes, reader: Reader) -> str:
    """Wait until every acked request is answered and the queues are empty, within the last deadline and a little."""
    began = time.monotonic()
    await processes.start_services()
    acked = [sent.id for sent in processes.ledger.sent.values() if sent.word is Word.OK]
    while time.monotonic() - began < SETTLE_SECONDS:
        logs = await reader.logs()
        backlogs = await reader.backlogs()
        is_quiet = all(found is not None and not found.waiting and not found.working for found in backlogs.values())
        if is_quiet and all(id_ in logs and logs[id_].answers for id_ in acked):
            said = f"after {time.monotonic() - began:.1f} s"
            return f"{said}, conflicts after {await judged_within(reader):.1f} s more"
        await asyncio.sleep(0.5)
    return f"not after {SETTLE_SECONDS:g} s"


async def judged_within(reader: Reader) -> float:
    """Wait until the coordinators have judged all that they were behind; also for late results and errors."""
    began = changed_at = time.monotonic()
    before = await reader.conflicts()
    while time.monotonic() - changed_at < UNCHANGED_SECONDS and time.monotonic() - began < SETTLE_SECONDS:
        await asyncio.sleep(0.5)
        now = await reader.conflicts()
        if now != before:
            before, changed_at = now, time.monotonic()
    return changed_at - began


def traffic_line(ledger: Ledger) -> str:
    words = Counter(sent.word for sent in ledger.sent.values())
    cancelled = sum(sent.cancelled_at is not None for sent in ledger.sent.values())
    return (
        f"{len(ledger.sent)} requests ({words[Word.OK]} ok, {words[Word.UNKNOWN]} unknown), {ledger.copies} copies, "
        f"{ledger.twice} ids twice ({len(ledger.rivals)} with two bodies), "
        f"{cancelled} cancelled, {ledger.large} large, {len(ledger.litter)} pieces of garbage"
    )


def faults_line(ledger: Ledger) -> str:
    kinds = ", ".join(f"{count} × {kind}" for kind, count in sorted(Counter(ledger.faults).items()))
    away = sum(end - start for start, end in ledger.away("broker"))
    lags = sum(end - start for start, end in ledger.lags)
    slowest = max((found.ready - found.ended for found in ledger.recoveries), default=0.0)
    return (
        f"{len(ledger.faults)}: {kinds}; a broker was away for {away:.1f} s, some service starved for {lags:.1f} s; "
        f"after damage to its wires the slowest service was ready in {slowest:.1f} s"
    )


def report(ledger: Ledger, evidence: Evidence, reader: Reader, folder: Path, *, is_cluster: bool) -> list[Violation]:
    checker = Checker(ledger, evidence, LEASE_SECONDS, is_cluster=is_cluster)
    violations = checker.violations()
    statuses = Counter(log.answer.status.value for log in evidence.logs.values() if log.answer)
    starts = Counter((t.request, t.task, t.attempt) for t in evidence.traces if t.what == "start")
    say(
        "checked",
        f"{len(evidence.logs)} logs, {evidence.entries} entries, {sum(starts.values())} executions "
        f"({sum(starts.values()) - len(starts)} repeated, {checker.races} in the instant of their result), "
        f"{len(evidence.errors)} errors, {checker.excused_late} late for a fault; "
        + ", ".join(f"{status} {count}" for status, count in sorted(statuses.items())),
    )
    twice = [record for record in evidence.conflicts if ConflictKind.SAME_WORK not in record.kinds]
    kinds = Counter(kind.value for record in twice for kind in record.kinds)
    listed = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
    stops, (doubles, in_sight) = sum(len(record.stops) for record in twice), executed_twice(evidence, ledger)
    ran = f"{doubles} attempts ran twice at one time, {in_sight} of them in sight"
    say("conflicts", f"{len(twice)} ({listed}), {stops} told to stop; {ran}")
    ways = Counter(copy.what for copy in ledger.task_copies)
    say("copies", f"{len(ledger.task_copies)} ({', '.join(f'{count} {way}' for way, count in ways.items())})")
    for reason, count in why_not_done(evidence).most_common(12):
        say("", f"{count:>4} × {reason}")
    dump(violations, reader, folder)
    return violations


def why_not_done(evidence: Evidence) -> Counter[str]:
    """Why tasks and requests did not end well, by reason: the failures that were ordered, and perhaps others."""
    reasons: Counter[str] = Counter()
    for log in evidence.logs.values():
        if log.answer is None:
            continue
        failed = [outcome.reason or "" for outcome in log.answer.tasks if outcome.status != "done"]
        for reason in failed or log.answer.gaps:
            reasons[re.sub(r"\b(c\d+-|t)?\d+(\.\d+)?", "N", reason)[:100]] += 1
    return reasons


def dump(violations: list[Violation], reader: Reader, folder: Path) -> None:
    """The log of every request that broke a rule, one entry a line."""
    for request_id in {violation.request for violation in violations if violation.request}:
        with (folder / f"{request_id}.jsonl").open("w") as file:
            found = [*reader.raws.get(request_id, []), *reader.beside.get(request_id, [])]
            for raw in sorted(found, key=lambda raw: raw.time):
                line = {"stream": raw.stream, "sequence": raw.sequence, "time": raw.time, "headers": raw.headers}
                file.write(json.dumps({**line, "body": raw.data[:4000].decode(errors="replace")}) + "\n")


def say(phase: str, text: str) -> None:
    print(f"{phase:<9} {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cluster", action="store_true", help="three brokers that replicate to one another")
    options = parser.parse_args()
    folder = ROOT / ".muster" / "chaos" / f"{options.seed}{'-cluster' if options.cluster else ''}"
    Disk.unmount_left(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "team.yaml").write_text(TEAM)
    logging.getLogger("muster").addHandler(logging.FileHandler(folder / "runner.log"))
    logging.getLogger("muster").propagate = False
    say("seed", f"{options.seed}, {options.minutes:g} min")
    violations = asyncio.run(chaos(options, folder))
    for violation in violations:
        print(f"✗ {violation.rule}  {violation.request}  {violation.text}")
    say("verdict", f"{len(violations)} violations" + (f"; logs in {folder.relative_to(ROOT)}" if violations else ""))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
