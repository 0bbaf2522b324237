"""The JSON Schemas are those of the models."""

from scripts.schemas import FOLDER, schemas


def test_the_schemas_in_the_docs_are_those_of_the_models():
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}

    assert found == schemas(), "run: python scripts/schemas.py"
