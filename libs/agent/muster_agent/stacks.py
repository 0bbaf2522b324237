"""Where in a team's own code something was raised: for people, who can look there."""

import traceback
from pathlib import PurePath

from muster_protocol.status import is_own_code

STACK_FRAMES = 4  # the innermost ones, which are the team's; the others are ours


def own_frames(raised: BaseException) -> list[traceback.FrameSummary]:
    """The frames of code that is neither a library's nor ours."""
    return [frame for frame in traceback.extract_tb(raised.__traceback__) if is_own_code(frame.filename)]


def stack_of(raised: BaseException) -> str:
    """The innermost frames, and before them the last of the team's own: a library may be many frames deep."""
    inner = traceback.extract_tb(raised.__traceback__)[-STACK_FRAMES:]
    own = [frame for frame in own_frames(raised)[-1:] if frame not in inner]
    return "".join(traceback.format_list([*own, *inner]))


def place_of(raised: BaseException) -> str:
    """The last line of the team's own code below which something failed, as ` (tools.py:12)`."""
    own = own_frames(raised)
    return f" ({PurePath(own[-1].filename).name}:{own[-1].lineno})" if own else ""
