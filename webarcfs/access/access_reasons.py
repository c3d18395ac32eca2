"""access-reasons.json: why pages are withheld, by the id of their rules. For staff alone (0600).

access.aclj is read by programs that serve readers. So it has no reasons: what readers may see is decided without this
file, and a fault in it takes nothing from readers and shows nothing to them. Programs of before wrote the reasons into
access.aclj; `access_rules` reads them there, and moves them when it changes the rules.

    {"version": 1, "reasons": {"1f2e3d4c": {"reason": "court order 12/2026", "role": "archivist"}}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from webarcfs.archive.config import settings_files
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.model.errors import SettingsError

_VERSION = 1
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class AccessReason:
    """Why a rule was made, and the role that allowed it; empty for an archive without people."""

    reason: str
    role: str = ""


def parse_reasons(text: str, source: str) -> dict[str, AccessReason]:
    """Return the reasons of a file by the ids of rules. Raises SettingsError."""
    try:
        content = json.loads(text)
        if content["version"] != _VERSION:
            raise SettingsError(source, [f"version {content['version']!r} is of another webarcfs"])
        return {
            str(name): AccessReason(str(about["reason"]), str(about.get("role", "")))
            for name, about in content["reasons"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SettingsError(source, [f"no reasons of rules: {error}"]) from None


def text_of_reasons(reasons: Mapping[str, AccessReason]) -> bytes:
    """Return the content of the file."""
    content = {"version": _VERSION, "reasons": {name: asdict(reasons[name]) for name in sorted(reasons)}}
    return json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace") + b"\n"


def load_reasons(archive: Archive) -> dict[str, AccessReason]:
    """Return the reasons of an archive; none without the file. Raises SettingsError for faults, OSError."""
    try:
        text = archive.access_reasons.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise SettingsError(str(archive.access_reasons), [f"not UTF-8 at byte {error.start}"]) from None
    return parse_reasons(text, str(archive.access_reasons))


def replace_reasons(archive: Archive, reasons: Mapping[str, AccessReason]) -> None:
    """Replace the file durably, under the caller's lock. Raises OSError."""
    settings_files.replace_file(archive.access_reasons, text_of_reasons(reasons), _MODE)
