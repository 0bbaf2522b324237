"""A small disk of a broker's own that can be filled, and freed again. To mount one needs root."""

import asyncio
import os
import subprocess
from pathlib import Path

PAGE = 4096
AGAIN_SECONDS = 0.05  # what the broker frees meanwhile is taken, too


class Disk:
    """A file system in memory, mounted where a broker stores."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_mounted = False
        self.why_not = ""

    def mount(self, size: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs"]
        try:
            mounted = subprocess.run(["mount", *options, str(self.folder)], capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.why_not = str(error)
            return
        self.is_mounted = mounted.returncode == 0
        self.why_not = mounted.stderr.strip()

    def unmount(self) -> None:
        if self.is_mounted:
            subprocess.run(["umount", "-l", str(self.folder)], capture_output=True, timeout=10, check=False)
            self.is_mounted = False

    @classmethod
    def unmount_left(cls, below: Path) -> None:
        """Of a run that was killed."""
        for folder in below.glob("**/jetstream"):
            if folder.is_mount():
                disk = cls(folder)
                disk.is_mounted = True
                disk.unmount()

    async def fill(self, seconds: float) -> None:
        """Leave no room for so long."""
        until = asyncio.get_running_loop().time() + seconds
        with (self.folder / "junk").open("ab", buffering=0) as junk:
            await asyncio.to_thread(_take_all, junk.fileno())
            while asyncio.get_running_loop().time() < until:
                await asyncio.sleep(AGAIN_SECONDS)
                await asyncio.to_thread(_take_all, junk.fileno())

    def free(self) -> None:
        (self.folder / "junk").unlink(missing_ok=True)


def _take_all(file: int) -> None:
    """First in one go, then page by page what others leave."""
    try:
        room = os.fstatvfs(file)
        if room.f_bavail:
            os.posix_fallocate(file, os.fstat(file).st_size, room.f_bavail * room.f_frsize)
        while os.write(file, bytes(PAGE)):
            pass
    except OSError:
        return  # it is full
