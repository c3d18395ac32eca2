"""One family of errors: each with its errno, exit code and status of HTTP."""

import errno
from http import HTTPStatus

import pytest

from webarcfs.archive.model import errors
from webarcfs.archive.model.errors import Exit, WebarcError, errno_of, exit_code_of, http_status_of

pytestmark = pytest.mark.pure


def family(kind: type[WebarcError] = WebarcError) -> list[type[WebarcError]]:
    return [kind, *(each for below in kind.__subclasses__() for each in family(below))]


def make(kind: type[WebarcError]) -> WebarcError:
    given: dict[type[WebarcError], tuple[object, ...]] = {
        errors.FieldsRefused: ("heading", {"url": ("Address", "Type one.")}),
        errors.SettingsError: ("source", ["fault"]),
        errors.FetchFailed: (-1, "word"),
    }
    return kind(*given.get(kind, ("message",)))


@pytest.mark.parametrize("kind", family())
def test_every_class_has_an_errno_and_an_exit_code(kind: type[WebarcError]) -> None:
    error = make(kind)
    assert errno_of(error) == kind.errno and kind.errno in errno.errorcode
    assert exit_code_of(error) == kind.exit_code
    assert kind.exit_code in (Exit.USAGE, Exit.FAILED, Exit.MOUNT_FAILED)
    assert kind.__doc__ and str(error)


def test_all_that_is_raised_on_purpose_is_defined_there() -> None:
    assert {kind.__module__ for kind in family()} == {errors.__name__}


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (errors.NotPermitted, errno.EPERM),
        (errors.ReadOnly, errno.EROFS),
        (errors.Exists, errno.EEXIST),
        (errors.Stale, errno.ESTALE),
        (errors.InvalidDocument, errno.EINVAL),
        (errors.NotFound, errno.ENOENT),
        (errors.Damaged, errno.EIO),
    ],
)
def test_errnos_of_the_table_of_writing(kind: type[WebarcError], number: int) -> None:
    """Writers are told these, as SEMANTICS.md says."""
    assert errno_of(kind("x")) == number


@pytest.mark.parametrize("kind", family())
def test_every_class_has_a_status_and_each_is_an_error(kind: type[WebarcError]) -> None:
    assert http_status_of(make(kind)) == kind.http_status >= HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.WebarcError, 500),
        (errors.UsageError, 400),
        (errors.BadCondition, 400),
        (errors.UrlRefused, 400),
        (errors.TooMany, 400),
        (errors.Forbidden, 403),
        (errors.NotFound, 404),
        (errors.NameTooLong, 404),
        (errors.Busy, 503),
        (errors.TookTooLong, 503),
        (errors.Damaged, 503),
        (errors.DatabaseDamaged, 503),
        (errors.SettingsError, 503),
        (errors.InvalidDocument, 500),
    ],
)
def test_statuses_that_readers_get(kind: type[WebarcError], status: int) -> None:
    """What a reader may mend is in the 400s; what cannot be decided is closed, and is tried again later."""
    assert http_status_of(make(kind)) == status


def test_others() -> None:
    assert http_status_of(OSError(errno.EIO, "x")) == 503
    assert http_status_of(ValueError()) == http_status_of(KeyboardInterrupt()) == 500
    assert errno_of(OSError(errno.ENOSPC, "full")) == errno.ENOSPC
    assert errno_of(OSError("no number")) == errno_of(ValueError()) == errno_of(KeyboardInterrupt()) == errno.EIO
    assert exit_code_of(OSError(errno.ENOSPC, "full")) == exit_code_of(ValueError()) == Exit.FAILED
    assert (Exit.DONE, Exit.USAGE, Exit.FAILED, Exit.INCOMPLETE, Exit.MOUNT_FAILED) == (0, 1, 2, 3, 32)
