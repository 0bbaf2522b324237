"""Which tasks of a request wait because no role that can do them answers, and until when."""

import logging
from functools import partial

from muster_protocol.fold import TaskState
from muster_protocol.workers.breaker import Breaker
from muster_supervisor.choosing.among import able
from muster_supervisor.decide import IsHeld
from muster_supervisor.owner import Owner

log = logging.getLogger("muster.supervisor")


class Holding:
    """The tasks of one request that wait for a breaker."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._said: set[tuple[str, float]] = set()  # roles and providers, with when they were opened
        self.until: float | None = None  # when the first of those seen may be given out

    def at(self, now: float) -> IsHeld | None:
        """What tells the tasks that are held now; None: there are none, as long as all roles answer."""
        self.until = None
        return None if self._owner.resources.breakers.are_closed else partial(self._is_held, now)

    def _is_held(self, now: float, task: TaskState) -> bool:
        breakers = self._owner.resources.breakers
        roles = able(self._owner, task)
        if not roles:
            return False
        role = min(roles, key=breakers.free_at)
        until = breakers.free_at(role)
        if until <= now:
            return False
        self.until = until if self.until is None else min(self.until, until)
        self._say(breakers.holder(role), task, until - now)
        return True

    def _say(self, holder: tuple[str, Breaker], task: TaskState, seconds: float) -> None:
        """Once for each that was opened."""
        name, breaker = holder
        if (name, breaker.opened_at) in self._said:
            return
        self._said.add((name, breaker.opened_at))
        text = "… task    %s/%s waits: %s does not answer, the next try is in %.0f s"
        log.warning(text, self._owner.request_id, task.spec.id, name, seconds)
