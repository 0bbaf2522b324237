"""Measures the roles of the team: counts what their results come to, and shares the counts with other supervisors.

A result costs an addition here. Once a second what was counted is added to the bucket, and what others have added is
read now and then, in the background. Counts that cannot be written now are kept, as one sum for each role. What came
while a request had no owner, and what a killed supervisor had not shared yet, is never counted: that is little.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from muster_agent.team.schema import Team
from muster_bus.background import supervised
from muster_bus.buckets.measures import add_measured, read_measures
from muster_bus.connection import Bus
from muster_protocol.errors import MusterError
from muster_protocol.messages import Result, ResultStatus
from muster_protocol.workers.measured import Measured, is_measured

log = logging.getLogger("muster.supervisor")

SHARE_SECONDS = 1.0  # between two looks at what was counted
READ_SECONDS = 5.0  # between two looks at what others have added, while there are requests
LAST_SECONDS = 1.0  # for what was counted just before a stop


@dataclass(slots=True)
class Counts:
    """What was seen of one role since it was last shared."""

    tries: int = 0
    successes: int = 0
    seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    at: float = 0.0

    def add(self, result: Result, at: float) -> None:
        usage = result.usage
        self.tries += 1
        self.successes += result.status is ResultStatus.DONE
        self.seconds += result.seconds
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.usd += usage.usd
        self.at = max(self.at, at)

    def plus(self, newer: Self) -> Self:
        sums = {name: getattr(self, name) + getattr(newer, name) for name in self.__slots__ if name != "at"}
        return replace(self, **sums, at=max(self.at, newer.at))

    @property
    def measured(self) -> Measured:
        return Measured.model_validate(self, from_attributes=True)


class Measuring:
    """What is known of each role of one team."""

    def __init__(self, bus: Bus, team: Team) -> None:
        self._bus = bus
        self._team = team
        self._stored: dict[str, Measured] = {}
        self._counted: dict[str, Counts] = {}  # by role, not shared yet
        self._known: dict[str, Measured] = {}  # both together, made when somebody asks
        self._sharing: asyncio.Task[None] | None = None
        self._is_unshared = False

    def start(self, is_busy: Callable[[], bool]) -> None:
        """Share in the background; what others do is read while `is_busy`, and once at the beginning."""
        self._sharing = supervised(self._share_for_ever(is_busy), "sharing what was measured")

    async def stop(self) -> None:
        if self._sharing is None:
            return
        self._sharing.cancel()
        try:
            async with asyncio.timeout(LAST_SECONDS):
                await self._share()
        except (TimeoutError, MusterError) as error:
            log.debug("what was measured last is not shared: %s", error)

    def of(self, role: str) -> Measured:
        """What is known of a role by now."""
        known = self._known.get(role)
        if known is None:
            counted = self._counted.get(role, Counts()).measured
            known = self._known[role] = self._stored.get(role, Measured()).plus(counted)
        return known

    def seconds_of(self, tag: str) -> float | None:
        """What a task of a tag takes on average; None: nobody knows."""
        known = [self.of(role.name) for role in self._team.roles_matching((tag,))]
        tries = sum(measured.tries for measured in known)
        return sum(measured.seconds for measured in known) / tries if tries else None

    def observe(self, result: Result, at: float) -> None:
        """Count a result that counts for its attempt."""
        if not is_measured(result) or (role := role_of(self._team, result)) is None:
            return
        counts = self._counted.get(role)
        if counts is None:
            counts = self._counted[role] = Counts()
        counts.add(result, at)
        self._known.pop(role, None)

    async def _share_for_ever(self, is_busy: Callable[[], bool]) -> None:
        turns = 0
        while True:
            try:
                if turns == 0 or (is_busy() and turns * SHARE_SECONDS >= READ_SECONDS):
                    self._stored = await read_measures(self._bus, self._team.team)
                    self._known.clear()
                    turns = 0
                await self._share()
                self._is_unshared = False
            except MusterError as error:
                self._say_unshared(error)
            turns += 1
            await asyncio.sleep(SHARE_SECONDS)

    async def _share(self) -> None:
        """Add what was counted of each role to what is stored; it is counted on meanwhile."""
        for role in list(self._counted):
            counted = self._counted.pop(role)
            try:
                self._stored[role] = await add_measured(self._bus, self._team.team, role, counted.measured)
            except BaseException:  # it is counted again; what came meanwhile is newer and counts too
                newer = self._counted.get(role, Counts())
                self._counted[role] = counted.plus(newer)
                raise
            finally:
                self._known.pop(role, None)

    def _say_unshared(self, error: MusterError) -> None:
        if not self._is_unshared:
            log.warning("… roles  what was measured of them is not shared, next try in %g s: %s", SHARE_SECONDS, error)
        self._is_unshared = True


def role_of(team: Team, result: Result) -> str | None:
    """The role that did it; of an attempt that its owner gave up, the only one that has its tag."""
    for role in team.roles:
        if role.name == result.role:
            return role.name
    having = team.roles_matching((result.role,))
    return having[0].name if len(having) == 1 else None
