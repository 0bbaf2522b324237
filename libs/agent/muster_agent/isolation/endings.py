"""What a keeper says about how a process ended, and the error that it means for the call that was on."""

import os
import signal
from dataclasses import dataclass

from pydantic import TypeAdapter

from muster_agent.isolation.errors import Cut, ProcessLost, UsedTooMuch


@dataclass(frozen=True, slots=True)
class Ending:
    """All of it is None or nothing where the keeper could say nothing any more."""

    status: int | None = None  # of waitpid; None: it was told to end it
    used_mb: int | None = None  # more than it may
    others: int = 0  # processes that were ended beside it


READ = TypeAdapter(Ending)


def error_of(ending: Ending, memory_mb: int, seconds: float) -> Cut:
    """Why a call whose process is gone has no output."""
    others = with_others(ending.others)
    if ending.used_mb is not None:
        text = f"the function used {ending.used_mb:,} MB of memory{others} and was ended"
        return UsedTooMuch(f"{text}; use less, or raise memory_mb ({memory_mb})")
    if ending.status is None:
        return ProcessLost(f"the function closed the connection to its worker, or wrote to it, and was ended{others}")
    code = os.waitstatus_to_exitcode(ending.status)
    match -code:
        case signal.SIGXCPU:
            words = "compute less, or raise timeout_seconds"
            return UsedTooMuch(f"the function used {seconds:g} s of processor time and was ended{others}; {words}")
        case signal.SIGKILL:
            return UsedTooMuch(
                f"the function was killed{others}, as the system does where memory is short; use less of it"
            )
        case number if number > 0:
            words = "look at the native code that it calls"
            return ProcessLost(f"the process of the function was ended by {_name(number)}{others}; {words}")
        case _:
            text = f"the process of the function ended by itself with exit code {code}{others}"
            return ProcessLost(f"{text}; return or raise instead")


def with_others(count: int) -> str:
    """The processes that were ended beside it, in words."""
    return f" with {processes(count)} that it had started" if count else ""


def processes(count: int) -> str:
    return "a process" if count == 1 else f"{count} processes"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
