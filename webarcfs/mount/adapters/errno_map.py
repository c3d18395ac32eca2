"""What an adapter answers when an operation fails: the one place where an exception becomes an errno.

Shared by all adapters; safe for any thread. What nobody expected is logged with its traceback and is EIO; no exception
ends the mount.
"""

from __future__ import annotations

import errno
import logging

from webarcfs.archive.model.errors import WebarcError, errno_of

# Errors of the system that mean to the caller what they mean to us. Any other is about files of the archive that the
# caller never named, and ENOENT for one of those would tell him that *his* file is not there.
_RESOURCES = frozenset((errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EFBIG, errno.EIO))

_HINTS = {
    errno.EMFILE: "; each file being written takes one of the mount's descriptors, and its hard limit is reached "
    "(ulimit -Hn, LimitNOFILE=)",
    errno.ENFILE: "; the system's limit of open files is reached (sysctl fs.file-max)",
}

_log = logging.getLogger(__name__)


def errno_for(error: BaseException, operation: str, where: object = "") -> int:
    """The errno for `error`, raised by `operation` on `where`; what the archive is to blame for is logged."""
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
