"""Which paths a model may name: those that stay below a folder, whatever they are made of. Pure."""

MAX_PATH = 500  # characters
MAX_DEPTH = 16
MAX_NAME = 200  # bytes of one name: file systems take 255, and what is being written has a longer one


class PathRefused(ValueError):
    """The path is not one that may be named; the text says which are."""


def parts_of(path: str) -> tuple[str, ...]:
    """The names from the folder down to what is meant; none of them leads up or out. `` and `.` are the folder."""
    if len(path) > MAX_PATH:
        raise PathRefused(f"a path has at most {MAX_PATH} characters")
    if path.startswith(("/", "~")) or "\\" in path or ":" in path:
        raise PathRefused(f"{path!r} does not begin in the folder: write it as list_files shows it, such as notes/a.md")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise PathRefused(f"{path!r} leads out of the folder; .. is not followed")
    if len(parts) > MAX_DEPTH:
        raise PathRefused(f"{path!r} has more than {MAX_DEPTH} folders in one another")
    for part in parts:
        if part.startswith("."):
            raise PathRefused(f"{part!r} is hidden; such files are neither read nor written")
        if not part.isprintable() or len(part.encode(errors="replace")) > MAX_NAME:
            raise PathRefused(f"{part[:60]!r} cannot be the name of a file")
    return parts
