"""Write the JSON Schema of every message into docs/schemas, from the models: `python scripts/schemas.py`."""

import json
from pathlib import Path

from muster_protocol.messages import MESSAGES

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"


def schemas() -> dict[str, str]:
    """File name → text, one for each kind of message."""
    return {
        f"{message.kind}.json": json.dumps(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", **message.model_json_schema()},
            indent=2,
            ensure_ascii=False,
        )
        + "\n"
        for message in MESSAGES
    }


def write() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = schemas()
    for stale in {path.name for path in FOLDER.glob("*.json")} - wanted.keys():
        (FOLDER / stale).unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
