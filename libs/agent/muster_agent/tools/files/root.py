"""Opens files below one folder, name by name from there down, and follows no link on the way.

Between a check of a path and its use somebody may put a link there. So nothing is checked beforehand: each folder is
opened in the one before, and the system refuses what is a link.
"""

import errno
import os
import secrets
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from muster_agent.tools.files.paths import MAX_DEPTH, parts_of

MAX_BYTES = 1_000_000  # of a file that is read or written
MAX_LISTED = 500
_LINKED = (errno.ENOTDIR, errno.ELOOP)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would wait for its writer
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileRefused(ValueError):
    """What was asked for cannot be done with that file; the text says why."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file, by its path below the root."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Root:
    """The folder of a team's files."""

    folder: Path

    def files(self, path: str = "") -> list[Listed]:
        """The files below, in the order of their paths, with one more than are shown so that the rest can be told."""
        parts = parts_of(path)
        with self._folder(parts, path) as folder:
            found = _walk(folder, "/".join(parts), MAX_DEPTH - len(parts))
            listed = [one for _, one in zip(range(MAX_LISTED + 1), found, strict=False)]
        return sorted(listed, key=lambda one: one.path)

    def read(self, path: str) -> str:
        """The text of a file."""
        *above, name = parts_of(path) or ("",)
        if not name:
            raise FileRefused("name a file, as list_files shows it")
        with self._folder(above, path) as folder, _named(path):
            file = os.open(name, _READ, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise FileRefused(f"{path!r} is no file; list_files shows what there is")
            with os.fdopen(file, "rb", closefd=False) as opened:
                body = opened.read(MAX_BYTES + 1)
        finally:
            os.close(file)
        if len(body) > MAX_BYTES:
            raise FileRefused(f"{path!r} has more than {MAX_BYTES:,} bytes, which is too much to read")
        try:
            return body.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise FileRefused(f"{path!r} is not a text in UTF-8") from None

    def write(self, path: str, text: str) -> int:
        """Write a file, all of it or nothing, with the folders that it needs; returns its bytes."""
        body = text.encode(errors="replace")
        if len(body) > MAX_BYTES:
            raise FileRefused(f"the text has {len(body):,} bytes; a file has at most {MAX_BYTES:,}")
        *above, name = parts_of(path) or ("",)
        if not name:
            raise FileRefused("name a file, such as report.md")
        with self._folder(above, path, makes=True) as folder:
            _check_replaceable(name, folder, path)
            _replace(name, body, folder, path)
        return len(body)

    @contextmanager
    def _folder(self, parts: Sequence[str], path: str, *, makes: bool = False) -> Generator[int]:
        """The folder at the end of these names, opened; `makes` makes those that are missing."""
        with _named(path):
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # the team's own may be a link
        try:
            for part in parts:
                with _named(path):
                    if makes:
                        with suppress(FileExistsError):
                            os.mkdir(part, dir_fd=folder)
                    below = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)


def _walk(folder: int, path: str, depth: int) -> Iterator[Listed]:
    for name in sorted(os.listdir(folder)):
        if name.startswith(".") or not name.isprintable():
            continue
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        below = f"{path}/{name}" if path else name
        if stat.S_ISREG(found.st_mode):
            yield Listed(below, found.st_size)
        elif stat.S_ISDIR(found.st_mode) and depth > 0:
            with suppress(OSError):  # it may have become a link, or be gone
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    yield from _walk(inner, below, depth - 1)
                finally:
                    os.close(inner)


def _check_replaceable(name: str, folder: int, path: str) -> None:
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise FileRefused(f"{path!r} is a folder or a link; choose another name")


def _replace(name: str, body: bytes, folder: int, path: str) -> None:
    """Write beside it, then put it in its place: whoever reads meanwhile sees the old file or the new one."""
    beside = f".{secrets.token_hex(6)}.part"
    with _named(path):
        file = os.open(beside, _WRITE, 0o644, dir_fd=folder)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(body)
                opened.flush()
                os.fsync(file)
            os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside, dir_fd=folder)
            raise
        os.fsync(folder)


@contextmanager
def _named(path: str) -> Generator[None]:
    """Errors of the system under the path that was asked for, without where it lies."""
    try:
        yield
    except FileNotFoundError:
        raise FileRefused(f"there is no {path!r}; list_files shows what there is") from None
    except OSError as error:
        text = "it is a link, or a part of it is no folder" if error.errno in _LINKED else str(error.strerror)
        raise FileRefused(f"{path!r} cannot be used: {text}") from None
