"""What programs show on a terminal."""

from __future__ import annotations

import errno
import os


def read_to_end(descriptor: int) -> bytes:
    """Read all that is shown on the terminal of a `pty.openpty` until nobody has it open any more; close it."""
    shown = b""
    try:
        while part := os.read(descriptor, 65_536):
            shown += part
    except OSError as error:
        if error.errno != errno.EIO:  # the last process has closed it
            raise
    finally:
        os.close(descriptor)
    return shown
