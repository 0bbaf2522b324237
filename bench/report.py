"""The rows as a table for people, or as JSON."""

import json
import os
import platform
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.row import Row

WIDTH = 150  # also where the output is not a terminal


def table(rows: Sequence[Row], seconds: float) -> None:
    shown = Table(title=f"{os.cpu_count()} cores, Python {platform.python_version()}, {seconds:.0f} s")
    for heading in ("", "measured"):
        shown.add_column(heading)
    for heading in ("value", "hold", "aim", ""):
        shown.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        style = "" if row.is_met else "bold red"
        value = f"{row.value:.2f} {row.unit}"
        shown.add_row(row.name, row.measured, value, row.limit(row.hold), row.limit(row.aim), row.verdict, style=style)
    Console(width=WIDTH).print(shown)


def as_json(rows: Sequence[Row], seconds: float) -> str:
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}
    document = {"machine": machine, "seconds": round(seconds, 1), "rows": [row.as_json() for row in rows]}
    return json.dumps(document, ensure_ascii=False, indent=2)
