"""Roles that share a provider of models are left alone together, by what all of them and the supervisors see of it."""

from pathlib import Path

from muster_agent.models.choose import provider_of
from muster_agent.team.file import load_team
from muster_agent.team.schema import Team
from muster_bus.buckets.breakers import shown_breakers
from muster_bus.connection import Bus
from muster_protocol.messages import Failure, Result, ResultStatus, Usage
from muster_protocol.workers.breaker import PAUSE_SECONDS, THRESHOLD, BreakerEvent
from muster_supervisor.choosing.breaking import READ_SECONDS, Breakers
from muster_supervisor.choosing.providers import Providers
from muster_testing.waiting import until_asked
from tests.guards import guards

TEAM = """\
team: default
roles:
  - {name: reader, model: claude-sonnet-5-5}
  - {name: writer, model: auto}
  - {name: either, model: auto, other_model: offline}
  - {name: clerk, model: offline}
  - {name: lister, model: [auto, openai/gpt-5, "claude-x", offline]}
"""
KEY = {"ANTHROPIC_API_KEY": "sk-test"}
AT = 1_700_000_000.0


def team_in(folder: Path, text: str = TEAM) -> Team:
    (folder / "team.yaml").write_text(text)
    return load_team(folder / "team.yaml")


def breakers_of(bus: Bus, team: Team) -> Breakers:
    return Breakers(bus, team, Providers(team, lambda name: provider_of(name, KEY)))


def failed(role: str, provider: str | None = "anthropic") -> Result:
    error = Failure(error_class="network", message="busy (529)", provider=provider)
    return Result(
        request_id="r1", task_id="t1", attempt=1, status=ResultStatus.FAILED, error=error, worker="w1", role=role
    )


def done(role: str, calls: int = 1) -> Result:
    usage = Usage(model_calls=calls)
    return failed(role).model_copy(update={"status": ResultStatus.DONE, "error": None, "usage": usage})


def test_a_model_has_a_provider_by_its_name_and_the_environment() -> None:
    behind = {**KEY, "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}

    assert [provider_of(name, KEY) for name in ("claude-x", "auto", "offline")] == ["anthropic", "anthropic", ""]
    assert (provider_of("auto", {}), provider_of("auto", behind)) == ("", "anthropic-base-url")


async def test_what_two_roles_see_together_holds_every_role_of_the_provider(bus: Bus, tmp_path: Path) -> None:
    breakers = breakers_of(bus, team_in(tmp_path))
    for _ in range(THRESHOLD // 2):
        breakers.observe(failed("reader"), AT, by_owner=False)
        breakers.observe(failed("writer"), AT, by_owner=False)

    free = AT + PAUSE_SECONDS
    assert breakers.of("reader").is_closed
    assert [breakers.free_at(role) for role in ("reader", "writer", "either", "clerk")] == [free, free, 0.0, 0.0]
    assert breakers.spare_of("either", AT) == "offline"
    assert breakers.spare_of("reader", AT) is None
    assert breakers.holder("writer")[0] == "provider 'anthropic'"


ANSWERS = "if self._answers(model, now)), None)"


@guards("services/supervisor/muster_supervisor/choosing/breaking.py", ANSWERS, rule="I4", replace="), None)")
async def test_a_role_with_a_list_uses_the_first_whose_provider_answers(bus: Bus, tmp_path: Path) -> None:
    breakers = breakers_of(bus, team_in(tmp_path))
    assert breakers.spare_of("lister", AT) is None
    for provider, spare in (("anthropic", "openai/gpt-5"), ("openai", "offline")):
        for _ in range(THRESHOLD):
            breakers.observe_provider(provider, BreakerEvent("failed", AT))

        assert breakers.spare_of("lister", AT) == spare
        assert breakers.free_at("lister") == 0


async def test_a_role_all_of_whose_providers_are_away_waits_for_the_first_that_is_tried_again(
    bus: Bus, tmp_path: Path
) -> None:
    breakers = breakers_of(bus, team_in(tmp_path, TEAM.replace(", offline]", "]")))
    for provider, at in (("openai", AT), ("anthropic", AT + 5)):
        for _ in range(THRESHOLD):
            breakers.observe_provider(provider, BreakerEvent("failed", at))

    assert breakers.spare_of("lister", AT + 6) is None
    assert breakers.free_at("lister") == AT + PAUSE_SECONDS
    assert breakers.spare_of("lister", AT + PAUSE_SECONDS) == "openai/gpt-5"


async def test_one_probe_decides_for_all_of_its_roles(bus: Bus, tmp_path: Path) -> None:
    breakers = breakers_of(bus, team_in(tmp_path))
    for _ in range(THRESHOLD):
        breakers.observe(failed("reader", None), AT, by_owner=False)
        breakers.observe(failed("either"), AT, by_owner=False)
    later = AT + PAUSE_SECONDS
    breakers.probe("writer", later)
    assert breakers.free_at("writer") > later
    breakers.observe(failed("writer"), later + 1, by_owner=False)
    assert breakers.of("writer").failures == ()
    assert breakers.of("either").is_closed
    assert breakers.free_at("writer") == later + 1 + 2 * PAUSE_SECONDS

    breakers.observe(done("writer", calls=0), later + 2, by_owner=False)
    assert breakers.free_at("writer") > 0
    breakers.observe(done("either"), later + 2, by_owner=False, model="offline")
    assert breakers.free_at("writer") > 0
    breakers.observe(done("writer"), later + 2, by_owner=False)

    assert breakers.free_at("writer") == 0
    assert breakers.free_at("reader") == AT + PAUSE_SECONDS


async def test_a_model_that_is_away_alone_closes_its_own_role_alone(bus: Bus, tmp_path: Path) -> None:
    breakers = breakers_of(bus, team_in(tmp_path))
    for second in range(THRESHOLD):
        breakers.observe(failed("reader"), AT + second, by_owner=False)
        breakers.observe(done("writer"), AT + second + 0.5, by_owner=False)

    assert breakers.free_at("reader") > 0
    assert breakers.holder("reader")[0] == "role 'reader'"
    assert breakers.free_at("writer") == 0


async def test_two_supervisors_agree_within_a_second_and_people_see_it(bus: Bus, other: Bus, tmp_path: Path) -> None:
    team = team_in(tmp_path)
    first, second = breakers_of(bus, team), breakers_of(other, team)
    now = bus.clock.now()
    for one in (first, second):
        one.start(lambda: True, lambda: None)
    for _ in range(THRESHOLD // 2):
        first.observe(failed("reader"), now, by_owner=False)
        second.observe_provider("anthropic", BreakerEvent("failed", now))

    async def are(*, is_closed: bool) -> bool:
        return {one.of_provider("anthropic").is_closed for one in (first, second)} == {is_closed}

    await until_asked(lambda: are(is_closed=False), "both are open")
    assert READ_SECONDS <= 0.5
    (shown,) = await shown_breakers(bus, now)
    second.observe(done("writer"), now + 1, by_owner=False)
    await until_asked(lambda: are(is_closed=True), "both are closed")

    assert (shown["role"], shown["provider"], shown["state"]) == ("", "default.anthropic", "open")
    first.stop()
    second.stop()


@guards(
    "services/supervisor/muster_supervisor/choosing/breaking.py",
    'asked = result.model.partition("/")[0]',
    rule="I4",
    replace="pass",
)
async def test_a_fallback_that_a_worker_asked_for_lack_of_a_key_says_nothing_of_the_first(
    bus: Bus, tmp_path: Path
) -> None:
    breakers = breakers_of(bus, team_in(tmp_path))
    for _ in range(THRESHOLD):
        breakers.observe_provider("anthropic", BreakerEvent("failed", AT))
    fallback = done("lister").model_copy(update={"model": "openai/gpt-5"})

    breakers.observe(fallback, AT + PAUSE_SECONDS + 1, by_owner=False)
    assert not breakers.of_provider("anthropic").is_closed
    first = done("lister").model_copy(update={"model": "anthropic/claude-sonnet-5-5"})
    breakers.observe(first, AT + PAUSE_SECONDS + 1, by_owner=False)
    assert breakers.of_provider("anthropic").is_closed
