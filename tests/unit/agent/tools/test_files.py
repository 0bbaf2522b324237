"""Files are listed, read and written below one folder, and nowhere else."""

import itertools
import os
import threading
from contextlib import suppress
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_agent.team.schema import ModelRole
from muster_agent.tools.files.paths import PathRefused, parts_of
from muster_agent.tools.files.root import MAX_BYTES, FileRefused, Root
from muster_agent.tools.load import tools_for
from muster_protocol.errors import Invalid
from tests.guards import guards
from tests.unit.agent.teams import team

REFUSED = (PathRefused, FileRefused)


@given(st.text(alphabet="ab./\\~:\x00\n é", max_size=30) | st.text(max_size=40))
def test_a_path_stays_below_its_folder_or_is_refused(path: str):
    try:
        parts = parts_of(path)
    except PathRefused:
        return
    assert all(part not in ("", ".", "..") and "/" not in part and "\x00" not in part for part in parts)
    assert PurePosixPath("/root", *parts).is_relative_to("/root")


@pytest.fixture
def root(tmp_path: Path) -> Root:
    folder = tmp_path / "files"
    (folder / "notes").mkdir(parents=True)
    (folder / "a.md").write_text("first\nsecond\n")
    (folder / "notes" / "b.txt").write_text("b")
    (folder / ".hidden").write_text("key")
    (tmp_path / "secret.md").write_text("swordfish")
    (tmp_path / "beside").mkdir()
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    return Root(folder)


def test_files_are_listed_without_links_and_hidden_ones(root: Root):
    assert [one.path for one in root.files()] == ["a.md", "notes/b.txt"]
    assert [one.path for one in root.files("notes")] == ["notes/b.txt"]


@guards(
    "libs/agent/muster_agent/tools/files/root.py",
    "os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK",
    rule="I10",
    replace="os.O_RDONLY | os.O_NONBLOCK",
)
@guards("libs/agent/muster_agent/tools/files/paths.py", 'if ".." in parts:', rule="I10", replace="if False:")
@pytest.mark.parametrize(
    "path",
    ["link.md", "up/secret.md", "../secret.md", "notes/../../secret.md", "/etc/passwd", "~/x", ".hidden", "notes", "",
     "gone.md", "a.md/x", "a\x00.md", "x/" * 40 + "y", "notes\\b.txt"],
)  # fmt: skip
def test_what_lies_outside_or_is_no_file_is_not_read(root: Root, path: str):
    with pytest.raises(REFUSED) as refused:
        root.read(path)
    assert str(root.folder) not in str(refused.value)


@pytest.mark.parametrize("path", ["link.md", "up/new.md", "../new.md", "/tmp/new.md", "notes", "", ".x", "a.md/b"])
def test_nothing_is_written_outside_or_over_a_link(root: Root, path: str):
    with pytest.raises(REFUSED):
        root.write(path, "x")
    assert (root.folder.parent / "secret.md").read_text() == "swordfish"
    assert not (root.folder.parent / "new.md").exists()


def test_a_folder_that_becomes_a_link_leads_nowhere(root: Root):
    """Somebody swaps a folder for a link all the time: what is written is inside, or is refused."""
    inside, outside = root.folder / "swapped", root.folder.parent / "beside"
    done = threading.Event()

    def swap() -> None:
        for number in itertools.count():
            if done.is_set():
                return
            with suppress(OSError):  # the other side makes the folder anew
                os.rename(inside, root.folder / f"kept{number}")
            with suppress(OSError):
                inside.symlink_to(outside)
            with suppress(OSError):
                inside.unlink()

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for number in range(200):
            try:
                root.write(f"swapped/{number}.md", "x")
            except REFUSED:
                continue
    finally:
        done.set()
        swapping.join(10)
    assert list(outside.iterdir()) == []


def test_a_file_is_replaced_as_a_whole(root: Root):
    """Whoever reads while it is written sees the old text or the new one."""
    texts = ["a" * 200_000, "b" * 200_000]
    root.write("big.md", texts[0])
    seen: set[str] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(root.read("big.md"))

    reading = threading.Thread(target=read)
    reading.start()
    for number in range(40):
        root.write("big.md", texts[number % 2])
    done.set()
    reading.join(10)
    assert seen <= set(texts)
    assert [one.path for one in root.files() if one.path.startswith(".")] == []


def test_what_is_too_large_or_no_text_is_refused(root: Root):
    (root.folder / "large.txt").write_bytes(b"x" * (MAX_BYTES + 1))
    (root.folder / "image.md").write_bytes(b"\x89PNG\xff")
    os.mkfifo(root.folder / "pipe")
    for name, reason in (("large.txt", "too much to read"), ("image.md", "not a text"), ("pipe", "is no file")):
        with pytest.raises(FileRefused, match=reason):
            root.read(name)
    with pytest.raises(FileRefused, match="at most"):
        root.write("new.md", "é" * MAX_BYTES)
    assert not (root.folder / "new.md").exists()


async def test_the_tools_page_through_a_file_and_write_where_the_role_may(tmp_path: Path):
    (tmp_path / "lines.txt").write_text("\n".join(map(str, range(1, 2501))))
    found = team(
        {"name": "reader", "tools": ["list_files", "read_file"]},
        {"name": "writer", "tools": ["write_file"]},
        folder=tmp_path,
        files={"root": ".", "write": True},
    )
    reader, writer = (tools_for(role, found) for role in found.roles if isinstance(role, ModelRole))

    assert await reader["list_files"].call({}) == "lines.txt (11,392 bytes)"
    first = await reader["read_file"].call({"path": "lines.txt"})
    assert first.splitlines()[-2:] == ["1000", "[1,500 more lines; go on with first_line=1001]"]
    assert (await reader["read_file"].call({"path": "lines.txt", "first_line": 2001})).splitlines()[-1] == "2500"
    assert (
        await writer["write_file"].call({"path": "out/report.md", "text": "done"}) == "wrote 4 bytes to out/report.md"
    )
    assert (tmp_path / "out" / "report.md").read_text() == "done"
    assert "write_file" not in reader


def test_no_role_writes_where_the_team_file_does_not_say_so(tmp_path: Path):
    with pytest.raises(Invalid, match=r"write_file needs files\.write: true; add it"):
        team({"name": "w", "tools": ["write_file"]}, folder=tmp_path, files={"root": "."})
