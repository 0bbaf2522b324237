"""Which exit code an answer's status becomes."""

from muster_bus.process.command import Exit


def exit_of(status: str) -> Exit:
    return {"done": Exit.DONE, "partial": Exit.PARTIAL, "cancelled": Exit.CANCELLED}.get(status, Exit.FAILED)
