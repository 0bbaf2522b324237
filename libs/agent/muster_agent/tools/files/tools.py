"""The tools that list, read and write the files of a team."""

from typing import Annotated

from pydantic import Field

from muster_agent.tools.files.root import MAX_LISTED, Root
from muster_agent.tools.tool import Tool, tool_of
from muster_protocol.counted import counted

_LINES = 1000  # of a file that one call returns
Path = Annotated[str, Field(description="below the folder of files, such as notes/a.md")]


def list_files_tool(root: Root) -> Tool:
    def list_files(folder: Annotated[str, Field(description="empty: all files")] = "") -> str:
        found = root.files(folder)
        shown = [f"{one.path} ({one.size:,} bytes)" for one in found[:MAX_LISTED]]
        more = [f"[more than {MAX_LISTED} files; name a folder]"] if len(found) > MAX_LISTED else []
        return "\n".join([*shown, *more]) or "there are no files"

    return tool_of(list_files, "List the team's files, with their sizes.")


def read_file_tool(root: Root) -> Tool:
    def read_file(path: Path, first_line: Annotated[int, Field(ge=1)] = 1) -> str:
        lines = root.read(path).splitlines()
        if first_line > max(1, len(lines)):
            return f"{path} has only {counted(len(lines), 'line')}"
        shown = lines[first_line - 1 : first_line - 1 + _LINES]
        left = len(lines) - (first_line - 1 + len(shown))
        more = [f"[{counted(left, 'more line')}; go on with first_line={first_line + len(shown)}]"] if left else []
        return "\n".join([*shown, *more]) or f"{path} is empty"

    return tool_of(read_file, f"Read one of the team's text files, {_LINES:,} lines at a time.")


def write_file_tool(root: Root) -> Tool:
    def write_file(path: Path, text: str) -> str:
        return f"wrote {counted(root.write(path, text), 'byte')} to {path}"

    return tool_of(write_file, "Write a text file of the team; one that is there is replaced.")
