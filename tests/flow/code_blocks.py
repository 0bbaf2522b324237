"""The code blocks of a page."""

import re
from pathlib import Path

BLOCKS = Path(__file__).parent / "blocks"


def blocks_of(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
