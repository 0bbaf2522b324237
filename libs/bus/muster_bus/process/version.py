"""The version of Muster that runs here: all its packages are released together under one number."""

from importlib import metadata


def version() -> str:
    return metadata.version("muster-bus")
