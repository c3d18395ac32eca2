"""Files that are put in place in one step, and bytes that are all written."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from webarcfs.archive.system.files import replacing, write_all, write_all_at

pytestmark = pytest.mark.store


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_put_in_place_when_it_is_whole(tmp_path: Path, durable: bool) -> None:
    path, scratch = tmp_path / "file", tmp_path / ".file.new"
    for content in (b"first", b"second"):
        with replacing(path, scratch, durable=durable) as file:
            file.write(content)
            assert not path.exists() or path.read_bytes() == b"first"
        assert path.read_bytes() == content and not scratch.exists()


def test_what_was_there_stays_where_the_new_one_fails(tmp_path: Path) -> None:
    path, scratch = tmp_path / "file", tmp_path / ".file.new"
    path.write_bytes(b"old")
    with pytest.raises(KeyError), replacing(path, scratch) as file:
        file.write(b"half")
        raise KeyError
    assert path.read_bytes() == b"old" and not scratch.exists()


def test_a_scratch_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path, scratch = tmp_path / "file", tmp_path / ".file.new"
    scratch.write_bytes(b"another's")
    with pytest.raises(FileExistsError), replacing(path, scratch):
        pytest.fail("it was begun")
    assert scratch.read_bytes() == b"another's" and not path.exists()


def test_all_bytes_are_written_also_where_a_pipe_takes_few_at_a_time(tmp_path: Path) -> None:
    read, write = os.pipe()
    data = os.urandom(300_000)
    child = os.fork()
    if child == 0:
        os.close(read)
        write_all(write, data)
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:  # noqa: PTH123 # it is a descriptor
        assert pipe.read() == data
    assert os.waitpid(child, 0)[1] == 0
    with (tmp_path / "file").open("wb") as file:
        write_all_at(file.fileno(), data, 5)
    assert (tmp_path / "file").read_bytes() == bytes(5) + data


def test_a_write_that_the_limit_cuts_short_fails(tmp_path: Path) -> None:
    """write(2) takes as much as fits, and only the next call says that there is no more: nobody may miss that."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        code = 1
        with (tmp_path / "file").open("wb") as file:
            try:
                write_all_at(file.fileno(), bytes(2000), 0)
            except OSError:
                code = 0
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
