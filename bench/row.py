"""One number that is held: what was measured, against what, and whether that is good enough."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """`value` is compared with `hold`; `measured` says in words what it comes from."""

    name: str
    measured: str
    value: float
    hold: float
    aim: float
    unit: str = "×"
    is_at_least: bool = False  # else at most

    @property
    def is_met(self) -> bool:
        return self._reaches(self.hold)

    @property
    def verdict(self) -> str:
        if not self.is_met:
            return "MISSED"
        return "aim met" if self._reaches(self.aim) else "met"

    def limit(self, bound: float) -> str:
        return f"{'≥' if self.is_at_least else '≤'} {bound:g} {self.unit}"

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "measured": self.measured,
            "value": round(self.value, 4),
            "unit": self.unit,
            "hold": self.limit(self.hold),
            "aim": self.limit(self.aim),
            "is_met": self.is_met,
        }

    def _reaches(self, bound: float) -> bool:
        return self.value >= bound if self.is_at_least else self.value <= bound
