"""A cached tool is called once for equal calls of a request, whichever worker makes them."""

from pathlib import Path

from muster_testing import running_team

TEAM = """
team: shop
roles:
  - name: first
    tools: [{use: "counting:look", cache: true}]
    model: offline
  - name: second
    tools: [{use: "counting:look", cache: true}]
    model: offline
"""
CODE = '''
from pathlib import Path

CALLS = Path(__file__).with_name("calls.txt")


def look(what: str) -> str:
    """Look something up."""
    with CALLS.open("a") as file:
        file.write(f"{what}\\n")
    return f"found {what}"
'''
PLAN = {
    "goal": "look twice",
    "tasks": [
        {"id": "a", "tag": "first", "description": "apples"},
        {"id": "b", "tag": "second", "description": "apples", "dependencies": ["a"]},
    ],
}


async def test_two_workers_call_a_cached_tool_once_in_a_request(tmp_path: Path):
    (tmp_path / "team.yaml").write_text(TEAM)
    (tmp_path / "counting.py").write_text(CODE)
    calls = tmp_path / "calls.txt"
    async with running_team(tmp_path / "team.yaml", tmp_path, workers=0) as team:
        await team.start("worker", "w1", "--role", "first")
        await team.start("worker", "w2", "--role", "second")

        one = await team.client.submit(plan=PLAN)
        answer = await team.answer(one)
        results = {result.task_id: result for result in await team.results(one)}

        assert "found apples" in answer.text
        assert calls.read_text() == "apples\n"
        assert {result.worker for result in results.values()} == {"w1", "w2"}
        assert [results[task].tool_calls[0].get("reused") for task in "ab"] == [None, True]
        assert [results[task].tool_calls[0]["output"] for task in "ab"] == ["found apples"] * 2

        await team.ask(plan=PLAN)
        assert calls.read_text() == "apples\n" * 2
