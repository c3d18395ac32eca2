"""Maps exceptions of operations to errno; the only place that does.

Shared by all adapters; safe for any thread. An unexpected exception is logged with its traceback and becomes EIO; no
exception ends the mount.
"""

from __future__ import annotations

import errno
import logging

from webarcfs.archive.model.errors import WebarcError, errno_of

# System errors that mean the same to the caller as to the mount. Any other error concerns files of the archive that the
# caller did not name; its ENOENT, for example, would deny the existence of the *caller's* file.
_RESOURCES = frozenset((errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EFBIG, errno.EIO))

_HINTS = {
    errno.EMFILE: "; each file being written takes one of the mount's descriptors, and its hard limit is reached "
    "(ulimit -Hn, LimitNOFILE=)",
    errno.ENFILE: "; the system's limit of open files is reached (sysctl fs.file-max)",
}

_log = logging.getLogger(__name__)


def errno_for(error: BaseException, operation: str, where: object = "") -> int:
    """Return the errno for `error`, raised by `operation` on `where`; log errors of the archive and the system."""
    number = errno_of(error)
    if isinstance(error, WebarcError):
        if number == errno.EIO:
            _log.error("%s %s: %s", operation, where, error)
        return number
    if isinstance(error, OSError) and number in _RESOURCES:
        _log.error("%s %s: %s%s", operation, where, error, _HINTS.get(number, ""))
        return number
    _log.error("%s %s failed unexpectedly", operation, where, exc_info=error)
    return errno.EIO
