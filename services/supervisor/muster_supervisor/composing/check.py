"""Runs the checks of an answer, in a thread where there is much to read: a supervisor has other requests too."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from muster_protocol.fold import RequestState, TaskPhase
from muster_supervisor.checking.findings import Findings, characters_of, checked, find, to_check
from muster_supervisor.composing.merge import Draft

log = logging.getLogger("muster.supervisor")

ON_THE_LOOP = 1_000  # characters: a few milliseconds


async def look_for(state: RequestState, seconds: float) -> Findings:
    """What the results so far contradict, and what they name as their sources; nothing if there is no time for it."""
    done, of = to_check(state), _done(state)
    if characters_of(done) <= ON_THE_LOOP:
        return find(done, of)
    return await _in_time(lambda: find(done, of), Findings(of=of), seconds, state)


async def check(draft: Draft, state: RequestState, seconds: float) -> Draft:
    """The draft with what is found in it and in all results that are there by now."""
    findings = draft.findings
    if findings.of != (of := _done(state)):
        findings = await look_for(state, seconds)
    if draft.is_composed:
        given = [task.description for task in state.tasks.values()]
        given += [task.reason for task in state.tasks.values() if task.reason]
        if (entry := state.plan_entry) is not None:
            given += [entry.text, entry.plan.goal]
        counts, done, known = (of, len(state.tasks), len(state.tasks) - of), to_check(state), findings
        findings = await _in_time(lambda: checked(known, done, draft.text, given, counts), known, seconds, state)
    return replace(draft, findings=findings)


async def _in_time(work: Callable[[], Findings], otherwise: Findings, seconds: float, state: RequestState) -> Findings:
    """What a check finds; an answer that is due does not wait for it."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            return await asyncio.to_thread(work)
    except TimeoutError:
        log.warning("… answer  %s: there was no time to check its results for contradictions", state.request_id)
        return otherwise


def _done(state: RequestState) -> int:
    return sum(task.phase is TaskPhase.DONE for task in state.tasks.values())
