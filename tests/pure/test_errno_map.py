"""What a mount answers for each error, and which of them its log tells."""

from __future__ import annotations

import errno
import logging

import pytest

from webarcfs.archive.model import errors
from webarcfs.mount.adapters.requests import errno_for

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("error", "number", "logged"),
    [
        # the caller's own mistakes have their number, and nobody reads of them
        (errors.NotFound("x"), errno.ENOENT, ""),
        (errors.NotPermitted("x"), errno.EPERM, ""),
        (errors.Stale("x"), errno.ESTALE, ""),
        # damage is the archive's
        (errors.Damaged("tree 17 is no tree"), errno.EIO, "open /a: tree 17 is no tree"),
        # what the system has too little of is told as it is
        (OSError(errno.ENOSPC, "No space left on device"), errno.ENOSPC, "open /a: [Errno 28] No space left on device"),
        (OSError(errno.EDQUOT, "quota"), errno.EDQUOT, "quota"),
        (OSError(errno.EMFILE, "files"), errno.EMFILE, "LimitNOFILE="),
        (OSError(errno.ENFILE, "files"), errno.ENFILE, "fs.file-max"),
        # a file of the archive that is missing is not the file that the caller named
        (FileNotFoundError(errno.ENOENT, "no pack"), errno.EIO, "open /a failed unexpectedly"),
        (PermissionError(errno.EACCES, "no pack"), errno.EIO, "open /a failed unexpectedly"),
        # and what nobody thought of ends no mount
        (ZeroDivisionError("x"), errno.EIO, "open /a failed unexpectedly"),
        (KeyError("x"), errno.EIO, "open /a failed unexpectedly"),
    ],
)
def test_numbers(error: BaseException, number: int, logged: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert errno_for(error, "open", "/a") == number
    assert [logged in record.getMessage() for record in caplog.records] == ([True] if logged else [])


def test_only_what_nobody_expected_has_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    errno_for(OSError(errno.EIO, "disk"), "read")
    errno_for(LookupError("x"), "read")
    assert [bool(record.exc_info) for record in caplog.records] == [False, True]
