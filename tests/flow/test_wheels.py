"""What is built and installed elsewhere works there: no file of the repository is needed, and none is left out."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.architecture.test_arrows import PACKAGES
from tests.flow.command_line import Here
from tests.harness import ROOT

UV = Path(sysconfig.get_path("scripts")) / "uv"
BUILD_SECONDS = 200
DEMO_SECONDS = 100


def build(folder: Path, *packages: str) -> list[Path]:
    """The wheels of these distributions, or of all; what builds them was fetched when this environment was made."""
    chosen = [option for package in packages for option in ("--package", package)] or ["--all-packages"]
    command = [str(UV), "build", "--offline", "--wheel", "--quiet", "--out-dir", str(folder), *chosen]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    assert built.returncode == 0, built.stderr
    return sorted(folder.glob("*.whl"))


def files_of(package: Path) -> set[str]:
    """The files of a package, all of which belong into its wheel."""
    files = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(package.parent)) for path in files}


def test_the_wheel_of_the_command_has_its_texts_and_the_sample(tmp_path: Path):
    (wheel,) = build(tmp_path, "muster-cli")

    names = set(zipfile.ZipFile(wheel).namelist())
    assert files_of(ROOT / "cli" / "muster_cli") <= names
    assert {"muster_cli/examples/cloud/team.yaml", "muster_cli/starting/texts/team.yaml.txt"} <= names


class Elsewhere:
    """A Python with our wheels and what they need, without the repository on any path."""

    def __init__(self, folder: Path, wheels: list[Path]) -> None:
        self.folder = folder
        venv.create(folder / "venv", symlinks=True)
        self.scripts = folder / "venv" / "bin"
        scheme = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
        packages = Path(sysconfig.get_path("purelib", "venv", scheme))
        # what others wrote: a path that stands in a file is searched, and files of that kind in it are not followed
        (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        options = ("--offline", "--no-deps", "--quiet", "--python", str(self.scripts / "python"))
        installed = subprocess.run([str(UV), "pip", "install", *options, *map(str, wheels)], check=False, cwd=folder)
        assert installed.returncode == 0
        (self.scripts / "nats-server").symlink_to(Path(sys.executable).with_name("nats-server"))
        self.env = Here(folder).env | {"PATH": f"{self.scripts}:/usr/bin:/bin"}

    def run(self, *words: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(self.scripts / words[0]), *words[1:]],
            cwd=cwd or self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=DEMO_SECONDS,
            check=False,
        )


@pytest.mark.sweep
@pytest.mark.timeout(400)
def test_everything_builds_installs_and_runs_outside_of_the_repository(tmp_path: Path):
    wheels = build(tmp_path / "wheels")
    assert len(wheels) == len(PACKAGES)
    names = {name for wheel in wheels for name in zipfile.ZipFile(wheel).namelist()}
    assert [name for package in PACKAGES for name in files_of(package) if name not in names] == []
    elsewhere = Elsewhere(tmp_path, wheels)

    where = elsewhere.run("python", "-c", "import muster, muster_agent; print(muster.__file__, muster_agent.__file__)")
    assert str(ROOT) not in where.stdout
    made = elsewhere.run("muster", "init", "shop")
    assert made.returncode == 0, made.stderr
    shop = tmp_path / "shop"
    tried = elsewhere.run("muster", "role", "try", "clerk", "How many apples?", cwd=shop)
    assert "Task: How many apples?" in tried.stdout, tried.stderr
    tested = elsewhere.run("python", "-W", "ignore", "-m", "pytest", "-q", cwd=shop)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    demo = elsewhere.run("muster", "demo", cwd=shop)
    assert demo.returncode == 0, demo.stderr
    assert "× faster" in demo.stdout
