"""Keys and values with compare-and-set: small shared values such as the registry of workers."""

from dataclasses import dataclass

from muster_bus.connection import Bus
from muster_bus.publish import CompareAndSetLost

DELETED = "KV-Operation"


@dataclass(frozen=True, slots=True)
class Value:
    """A value and the revision under which it is stored."""

    key: str
    data: bytes
    revision: int
    time: float  # broker time of the write


class Bucket:
    """One bucket, read by direct gets and written by plain publishes (nats-py's own calls cannot do both in one)."""

    def __init__(self, bus: Bus, name: str) -> None:
        self._bus = bus
        self._name = name

    async def get(self, key: str) -> Value | None:
        return next(iter(await self._read(f"$KV.{self._name}.{key}")), None)

    async def all(self) -> list[Value]:
        return await self._read(f"$KV.{self._name}.>")

    async def put(self, key: str, data: bytes, *, give_up_after: float = 5.0) -> int:
        stored = await self._bus.store_raw(f"$KV.{self._name}.{key}", data, {}, give_up_after)
        return stored.sequence

    async def compare_and_set(self, key: str, data: bytes, revision: int, *, give_up_after: float = 5.0) -> int | None:
        """Write over exactly this revision (0: none yet); None when somebody was faster."""
        headers = {"Nats-Expected-Last-Subject-Sequence": str(revision)}
        try:
            stored = await self._bus.store_raw(f"$KV.{self._name}.{key}", data, headers, give_up_after)
        except CompareAndSetLost:
            return None
        return stored.sequence

    async def delete(self, key: str) -> None:
        await self._bus.store_raw(f"$KV.{self._name}.{key}", b"", {DELETED: "DEL"}, 5.0)

    async def _read(self, pattern: str) -> list[Value]:
        """A bucket is a stream that keeps the last message of each key."""
        stored = await self._bus.read(pattern)
        prefix = f"$KV.{self._name}."
        return [
            Value(raw.subject.removeprefix(prefix), raw.data, raw.sequence, raw.time)
            for raw in stored
            if DELETED not in raw.headers
        ]
