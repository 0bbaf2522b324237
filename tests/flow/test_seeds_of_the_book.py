"""The book's example of section 10.10 runs over the team of its workers; only imports and set-up differ."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from muster_client.seeds import SharedMemoryPool, team_of
from muster_testing import running_team
from tests.flow.code_blocks import BLOCKS, blocks_of


async def test_the_books_example_runs_with_the_team_of_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    definitions, run = blocks_of(BLOCKS / "book.md")
    (tmp_path / "book_team.py").write_text(definitions)
    space: dict[str, Any] = {"__name__": "book_team"}
    exec(compile(definitions, "book.md", "exec"), space)
    (tmp_path / "team.yaml").write_text(json.dumps(team_of(space["workers"], "book")))

    async with running_team(tmp_path / "team.yaml", tmp_path) as team:
        monkeypatch.setenv("MUSTER_NATS_URL", team.broker.url)
        monkeypatch.setenv("MUSTER_TEAM", "book")
        try:
            await asyncio.to_thread(exec, compile(run, "book.md", "exec"), space)
            executed = await asyncio.to_thread(space["workers"]["writer"].execute, "Write a title", {"t1": "sheep"})
        finally:
            await asyncio.to_thread(SharedMemoryPool().close)

    assert capsys.readouterr().out.strip()
    assert (executed["status"], executed["worker"]) == ("completed", "writer")
