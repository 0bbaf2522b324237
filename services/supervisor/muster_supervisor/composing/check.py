"""Runs the checks of an answer, in a thread where there is much to read: a supervisor has other requests too."""

import asyncio
from dataclasses import replace

from muster_protocol.fold import RequestState, TaskPhase
from muster_supervisor.checking.findings import Findings, characters_of, checked, find, to_check
from muster_supervisor.composing.merge import Draft

ON_THE_LOOP = 10_000  # characters: a few milliseconds


async def look_for(state: RequestState) -> Findings:
    """What the results so far contradict, and what they name as their sources."""
    done, of = to_check(state), _done(state)
    if characters_of(done) <= ON_THE_LOOP:
        return find(done, of)
    return await asyncio.to_thread(find, done, of)


async def check(draft: Draft, state: RequestState) -> Draft:
    """The draft with what is found in it and in all results that are there by now."""
    findings = draft.findings
    if findings.of != (of := _done(state)):
        findings = await look_for(state)
    if draft.is_composed:
        given = [task.description for task in state.tasks.values()]
        given += [task.reason for task in state.tasks.values() if task.reason]
        if (entry := state.plan_entry) is not None:
            given += [entry.text, entry.plan.goal]
        counts = (of, len(state.tasks), len(state.tasks) - of)
        findings = await asyncio.to_thread(checked, findings, to_check(state), draft.text, given, counts)
    return replace(draft, findings=findings)


def _done(state: RequestState) -> int:
    return sum(task.phase is TaskPhase.DONE for task in state.tasks.values())
