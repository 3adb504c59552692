"""A folder of the user's own below the temporary folder, for what is run as a program.

Others can write to the temporary folder, too: a program or machine code must not be taken from a
folder there that they have made or can fill.
"""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_folder() -> Path | None:
    """The user's own folder below the temporary folder, made if it is not there.

    Returns:
        The folder; None if it cannot be made, is not a folder, belongs to somebody else, or others
        can write to it.
    """
    folder = Path(tempfile.gettempdir()) / f"anon_spark-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        there = folder.lstat()
        if (
            stat.S_ISDIR(there.st_mode)
            and there.st_uid == os.getuid()
            and not there.st_mode & _OTHERS_MAY_WRITE
        ):
            return folder
    return None
