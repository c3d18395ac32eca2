"""`python -m agent.steps.worker ARCHIVE FOLDER`: the process of one step, which the agent starts.

It ends on SIGTERM, or when the agent does (end of stdin); the next process resumes the step where it was.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from agent.catalogue import stepfolders
from agent.catalogue.stepfolders import StepEnd
from agent.steps.running import run_step
from webarcfs.archive.config import directory
from webarcfs.archive.model.errors import Busy, Interrupted, NotFound, StepRefused, WebarcError

_log = logging.getLogger("webarc")


def main(root: str, name: str) -> int:
    """Run a step; return the exit code."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    threading.Thread(target=_watch_agent, args=(stop,), daemon=True).start()
    archive = directory.open_archive(Path(root))
    try:
        run_step(archive, name, stop=stop)
    except Busy as error:
        _log.info("%s", error)
        return StepEnd.ELSEWHERE
    except Interrupted as error:
        _log.info("%s", error)
        return StepEnd.STOPPED
    except (StepRefused, NotFound) as error:
        _log.warning("%s", error)
    except WebarcError as error:
        _log.error("%s", error)
        return _failed(root, name, str(error))
    except Exception as error:
        _log.exception("unexpected, please report it")
        return _failed(root, name, f"{type(error).__name__}: {error}")
    return StepEnd.DONE


def _failed(root: str, name: str, reason: str) -> StepEnd:
    with contextlib.suppress(OSError):  # the folder is gone, or the disk is full: it is tried again
        stepfolders.failed(directory.open_archive(Path(root)), name, reason)
    return StepEnd.FAILED


def _watch_agent(stop: threading.Event) -> None:
    """Set `stop` at the end of stdin: the agent holds its other end and never writes."""
    with contextlib.suppress(OSError):
        while os.read(0, 512):
            pass
    stop.set()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    sys.exit(main(*sys.argv[1:3]))
