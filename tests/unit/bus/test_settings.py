"""The environment is read into one frozen value; an error names the variable."""

import dataclasses
import operator
import re
from pathlib import Path
from typing import cast

import pytest

from muster_bus.process.settings import LogSettings, Settings, read_settings
from muster_protocol.errors import Invalid

ROOT = Path(__file__).parents[3]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
ROW = re.compile(r"^\| (`(?:MUSTER|ANTHROPIC|OTEL)_[^|]*) \|", re.MULTILINE)
VARIABLES = sorted(
    {
        name
        for page in PAGES
        for row in ROW.findall(page.read_text(encoding="utf-8"))
        for name in re.findall(r"`(\w+)`", row)
    }
)
VALUES = {
    "MUSTER_TRACE_CONTENT": "1",
    "MUSTER_LOG": "json",
    "MUSTER_HTTP_PORT": "8090",
    "MUSTER_HEALTH_PORT": "8091",
    "MUSTER_GRACE_SECONDS": "7.5",
    "MUSTER_CALLBACK_SECRET": "sixteen letters!",
    "MUSTER_CALLBACK_SECRET_FILE": str(ROOT / "LICENSE"),
}


def test_an_empty_environment_gives_the_defaults():
    settings = read_settings({})

    assert settings == Settings()
    assert settings.broker_url == "nats://127.0.0.1:4222"
    assert (settings.http_host, settings.http_port, settings.health_port) == ("127.0.0.1", 8080, None)
    assert settings.grace_seconds == 20.0


def test_the_table_of_variables_is_found():
    assert {"MUSTER_NATS_URL", "ANTHROPIC_API_KEY", "OTEL_TRACES_SAMPLER"} <= set(VARIABLES)


@pytest.mark.parametrize("name", VARIABLES)
def test_every_documented_variable_is_read(name: str):
    assert read_settings({name: VALUES.get(name, "value")}) != Settings()


@pytest.mark.parametrize("name", [name for name in VARIABLES if name.startswith("MUSTER_")])
def test_an_empty_variable_is_not_set(name: str):
    assert read_settings({name: ""}) == Settings()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("text", LogSettings()),
        ("json", LogSettings(is_json=True)),
        ("json,debug", LogSettings(is_json=True, level="debug")),
        ("quiet", LogSettings(level="warning")),
    ],
)
def test_the_log_has_a_format_and_a_level(text: str, expected: LogSettings):
    assert read_settings({"MUSTER_LOG": text}).log == expected


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("MUSTER_HTTP_PORT", "0", "'0' is not a port from 1 to 65535"),
        ("MUSTER_HTTP_PORT", "65536", "'65536' is not a port from 1 to 65535"),
        ("MUSTER_HEALTH_PORT", "abc", "'abc' is not a port from 1 to 65535"),
        ("MUSTER_GRACE_SECONDS", "-1", "'-1' is not a number of seconds"),
        ("MUSTER_GRACE_SECONDS", "inf", "'inf' is not a number of seconds"),
        ("MUSTER_GRACE_SECONDS", "soon", "'soon' is not a number of seconds"),
        (
            "MUSTER_CALLBACK_SECRET",
            "short",
            "has fewer than 16 characters; `openssl rand -hex 32` makes a good one",
        ),
        ("MUSTER_CALLBACK_SECRET_FILE", "/nowhere", "cannot be read: FileNotFoundError"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_the_variable(name: str, text: str, complaint: str):
    with pytest.raises(Invalid) as refusal:
        read_settings({name: text})

    assert str(refusal.value) == f"{name}: {complaint}"


def test_neither_the_text_of_the_settings_nor_of_their_parts_shows_a_secret():
    given = {"MUSTER_CALLBACK_SECRET": "a secret of ours"}
    settings = read_settings(
        {**given, "ANTHROPIC_API_KEY": "sk-secret", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=secret"}
    )

    assert settings.model_env["ANTHROPIC_API_KEY"] == "sk-secret"
    assert "secret" not in f"{settings!r} {settings!s}"


def test_settings_cannot_be_changed():
    settings = read_settings({"ANTHROPIC_API_KEY": "a"})

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(settings, "http_port", 1)  # noqa: B010 - a plain assignment is refused by the type checker already
    with pytest.raises(TypeError):
        operator.setitem(cast("dict[str, str]", settings.model_env), "ANTHROPIC_API_KEY", "b")


@pytest.mark.parametrize(
    ("text", "word"), [("bogus", "'bogus'; known"), ("json,debg", "'debg'; did you mean 'debug'?")]
)
def test_an_unknown_word_for_the_log_is_refused_with_the_nearest(text: str, word: str):
    with pytest.raises(Invalid, match=f"MUSTER_LOG: unknown word {re.escape(word)}"):
        read_settings({"MUSTER_LOG": text})


def test_a_team_is_named_and_its_file_is_something_else():
    assert (read_settings({"MUSTER_TEAM": "shop"}).team, read_settings({"MUSTER_TEAM_FILE": "x.yaml"}).team_file) == (
        "shop",
        "x.yaml",
    )
    with pytest.raises(Invalid, match=r"'x\.yaml' is not a team's name; a team file is named by MUSTER_TEAM_FILE"):
        read_settings({"MUSTER_TEAM": "x.yaml"})
