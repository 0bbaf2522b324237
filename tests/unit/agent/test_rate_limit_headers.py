"""What providers say about their limits in the headers of a reply, and what a team file may say."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_agent.limiting.gates import Gates
from muster_agent.limiting.headers import Said, listening, note_headers, seconds_of
from muster_agent.limiting.words import bound_text
from muster_agent.models.choose import provider_in
from muster_agent.team.file import load_team
from muster_bus.connection import Bus
from muster_protocol.errors import Invalid
from muster_protocol.sender import Sender
from muster_protocol.workers.rate_limits import Bound, Limits
from tests.unit.agent.teams import team


def test_limits_of_a_fallbacks_provider_limit_something(caplog: pytest.LogCaptureFixture) -> None:
    providers = {name: {"kind": "openai", "base_url": f"http://{name}/v1"} for name in ("one", "two")}
    limits = {name: {"max_concurrent": 1} for name in ("one", "two", "tow")}
    known = team({"name": "ok", "model": ["one/a", "two/b"]}, providers=providers, rate_limits=limits)

    Gates(Bus.unconnected("nats://nowhere", Sender("worker", "w")), known).warn_of_unknown(provider_in)

    (said,) = (record.getMessage() for record in caplog.records)
    assert said.startswith("rate_limits.tow limits nothing: no model of this team asks that provider; did you mean")


NOW = 1_795_000_000.0
TEAM = "team: t\nroles: [{name: ok}]\nrate_limits: %s\n"


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("6m0.5s", 360.5),
        ("250ms", 0.25),
        ("1h2m", 3720.0),
        ("12", 12.0),
        ("2026-11-18T10:26:50Z", 2210.0),
        ("soon", None),
    ],
)
def test_a_time_is_read_in_the_words_of_each_provider(reset: str, seconds: float | None) -> None:
    assert seconds_of(reset, 1_794_995_400.0 if "T" in reset else NOW) == seconds


@given(st.dictionaries(st.text(max_size=40), st.text(max_size=40)), st.text(max_size=20))
def test_headers_that_say_nothing_change_nothing(headers: dict[str, str], reset: str) -> None:
    said = Said()
    said.take({**headers, "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": reset})

    assert said.left == {"requests": 0}
    assert (said.seconds_until_reset(NOW) or 0.0) >= 0


def test_only_what_is_used_up_is_waited_for() -> None:
    with listening() as said:
        note_headers({"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "30"})
        note_headers({"anthropic-ratelimit-requests-remaining": "3", "anthropic-ratelimit-requests-reset": "50"})
    note_headers({"anthropic-ratelimit-requests-remaining": "0"})

    assert said.left == {"tokens": 0, "requests": 3}
    assert said.seconds_until_reset(NOW) == 30


def test_a_limit_is_called_what_it_is() -> None:
    limits = Limits(60, 100_000, 5)
    said = [bound_text("anthropic", bound, limits) for bound in Bound]

    assert said[0] == "anthropic's limit of 60 requests a minute"
    assert said[1] == "anthropic's limit of 100,000 tokens a minute"
    assert said[2] == "anthropic's limit of 5 calls at once"


def test_a_team_file_names_the_limits_of_each_provider(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(TEAM % "{anthropic: {requests_per_minute: 60, window_seconds: 10}}")

    assert load_team(tmp_path / "team.yaml").rate_limits["anthropic"].limits == Limits(10, window=10.0)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("{anthropic: {requests_per_minute: 0}}", "needs a number of at least 1, not 0"),
        ("{anthropic: {requests_per_minute: 1.5}}", "needs a whole number, not 1.5"),
        ("{anthropic: {max_concurrent: yes}}", "needs a whole number, not true"),
        ("{anthropic: {requests_a_minute: 5}}", "unknown key 'requests_a_minute'"),
        ("{anthropic: {requests_per_minute: 30, window_seconds: 1}}", "allows not one in 1 s; raise the limit"),
        ("{Anthropic AI: {max_concurrent: 1}}", "rate_limits.Anthropic AI"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(tmp_path: Path, said: str, reason: str) -> None:
    (tmp_path / "team.yaml").write_text(TEAM % said)
    with pytest.raises(Invalid) as refused:
        load_team(tmp_path / "team.yaml")

    assert reason in str(refused.value), str(refused.value)
