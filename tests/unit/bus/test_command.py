"""A command ends with an exit code and a line, unless it has a bug: that is to be seen."""

import errno

import pytest

from muster_bus.process.command import run_command


def test_an_error_of_a_command_that_is_none_of_writing_is_not_hidden():
    def broken() -> int:
        raise FileNotFoundError(errno.ENOENT, "no such file")

    with pytest.raises(FileNotFoundError):
        run_command(broken)
