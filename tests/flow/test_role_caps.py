"""A role's slots in the team file cap it in every worker, and `--slots` is the sum over all roles."""

from pathlib import Path

from muster_testing.roles import release, traces
from muster_testing.team import RunningTeam
from tests.guards import guards

TEAM = """\
team: default
supervisor: {model: offline}
roles:
  - {name: scarce, slots: 2, tags: [rare], run: "muster_testing.roles:scripted"}
  - {name: plenty, run: "muster_testing.roles:scripted"}
"""
WAITS = '{"until": "go"}'


@guards("services/worker/muster_worker/worker.py", "self._pull.cap(", rule="I5", seconds=60)
async def test_a_capped_role_never_runs_more_at_once_and_others_use_the_rest(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(TEAM)
    async with RunningTeam.provisioned(tmp_path / "team.yaml", tmp_path, lease_seconds=30.0) as team:
        await team.start("supervisor", "s1")
        await team.start("worker", "w1", "--slots", "10")
        scarce = [{"id": f"s{n}", "tag": ("scarce", "rare")[n % 2], "description": WAITS} for n in range(6)]
        plenty = [{"id": f"p{n}", "tag": "plenty", "description": WAITS} for n in range(12)]
        request = await team.client.submit(plan={"goal": "a test", "tasks": [*scarce, *plenty]})
        await team.until(lambda: len(traces(tmp_path)) >= 10, "ten tasks run")

        running = [line["task"][0] for line in traces(tmp_path)]
        assert (running.count("s"), running.count("p")) == (2, 8)
        release(tmp_path, "go")
        answer = await team.answer(request)

    assert answer.status.value == "done"
    assert _most_at_once(tmp_path) == 2


def _most_at_once(folder: Path) -> int:
    """How many tasks of the capped role ran at the same time, by the recorded times."""
    steps = [(line["time"], 1) for line in traces(folder) if line["task"].startswith("s")]
    steps += [(line["time"], -1) for line in traces(folder, "over") if line["task"].startswith("s")]
    count = most = 0
    for _, step in sorted(steps):
        count += step
        most = max(most, count)
    return most
