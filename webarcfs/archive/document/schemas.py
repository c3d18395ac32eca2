"""Schemas that users add for their data nodes: `ARCHIVE/xsd/<element>.xsd` (/Xm-3.3/, /Xm-4/).

`words.xsd` is the schema of the nodes `words` in its namespace (its targetNamespace, or none), if it declares such an
element. A schema may include and import others of the folder, by their plain names; nothing else is read, from this
machine or another. Compiled schemas are kept until a file changes. Safe for any thread.

`log/validation.log` gets a line for each refused extension of a data.xml, and for each refused schema (/Xm-4/).
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from lxml import etree

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.document import data_xml
from webarcfs.archive.document.data_nodes import enclosed
from webarcfs.archive.model.errors import InvalidDocument
from webarcfs.archive.model.metadata import CET, format_time
from webarcfs.archive.system import rotating_log

# == validation log ===================================================================================================


#: The file's name in `log/`.
LOG_NAME = "validation.log"
#: Longest reason, in characters: it quotes what users wrote.
LONGEST = 1000

_log = logging.getLogger(__name__)


def refused(archive: Archive, user: str, path: str, error: BaseException) -> None:
    """Add a line: time, user, document (its path in the mount), reason.

    Columns are separated by tabs; characters that could end a line are escaped. A failed write is only logged.
    """
    columns = (format_time(datetime.now(CET)), _plain(user), _plain(path), _plain(str(error))[:LONGEST])
    try:
        append(archive.log / LOG_NAME, "\t".join(columns))
    except OSError as trouble:
        _log.warning("%s cannot be written: %s", archive.log / LOG_NAME, trouble)


def append(path: Path, line: str) -> None:
    """Append a line to a log that is rotated by size; several processes may write it."""
    with suppress(FileNotFoundError):
        if path.stat().st_size >= rotating_log.LARGEST:
            rotating_log.rotate(path)
    # One write of O_APPEND: lines of several processes never mix.
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, f"{line}\n".encode("utf-8", "backslashreplace"))
    finally:
        os.close(fd)


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


# == schemas ==========================================================================================================


#: Bytes of one schema, and the most schemas that one may read.
LARGEST_SCHEMA = 1 << 20
MOST_FILES = 100
#: Names of files in the folder: an element's name, without characters that lead elsewhere.
NAME = re.compile(r"[^\x00-\x20/\\:#?%.][^\x00-\x20/\\:#?%]*\.xsd")

# Base of a schema's own name and its references; no such place exists.
_BASE = "xsd:///"
_SCHEMA = "{http://www.w3.org/2001/XMLSchema}schema"
_ELEMENT = "{http://www.w3.org/2001/XMLSchema}element"

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A usable schema, or its fault; with the files that it was read from, and their stamps then."""

    files: dict[str, Stamp | None]
    namespace: str = ""
    elements: frozenset[str] = frozenset()
    schema: etree.XMLSchema | None = None
    fault: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def validate(self, node: etree._Element) -> None:
        """Validate a node. Raises InvalidDocument with fault and line."""
        assert self.schema is not None
        # The error log belongs to the schema, not to the call.
        with self.lock:
            try:
                valid = self.schema.validate(node)
            except etree.XMLSchemaValidateError as error:
                raise InvalidDocument(f"data node {node.tag} is too much for its schema: {error}") from None
            if not valid:
                raise InvalidDocument(
                    f"data node {node.tag} is not valid: {data_xml.first_error(self.schema.error_log)}"
                )


class Schemas:
    """The schemas of one archive; with `strict`, nodes without a schema are refused."""

    def __init__(self, folder: Path, *, strict: bool = False) -> None:
        self._folder = folder
        self._strict = strict
        self._kept: dict[str, Compiled] = {}

    def validate(self, nodes: bytes) -> None:
        """Check data nodes, as data_nodes.py returns them. Raises InvalidDocument for the first invalid one."""
        for node in data_xml.parse_element(enclosed(nodes)) if nodes else ():
            self._validate(node)

    def judge(self, nodes: bytes, elements: Iterable[etree._Element]) -> None:
        """Check data nodes that the caller also has as elements of a tree."""
        try:
            for node in elements:
                self._validate(node)
        except InvalidDocument:
            self.validate(nodes)  # its errors have the nodes' line numbers, not those of that tree

    def _validate(self, node: etree._Element) -> None:
        name = etree.QName(node)
        file = f"{name.localname}.xsd"
        compiled = self._get(file) if NAME.fullmatch(file) else None
        if compiled is not None and compiled.fault:
            raise InvalidDocument(f"the schema {file} for data node {node.tag} cannot be used: {compiled.fault}")
        if (
            compiled is not None
            and compiled.namespace == (name.namespace or "")
            and name.localname in compiled.elements
        ):
            compiled.validate(node)
        elif self._strict:
            raise InvalidDocument(f"data node {node.tag} has no schema; add one as .schemas/{file} first")

    def check(self, file: str, body: bytes) -> None:
        """Check that a new file of the folder is a valid schema, and declares the element of its name, or none.

        One without elements has types for others to include. Raises InvalidDocument with the reason.
        """
        if not NAME.fullmatch(file):
            raise InvalidDocument(f"{file!r} is no name for a schema; it is called <element>.xsd")
        compiled = compile_schema(self._folder, file, body)
        if compiled.fault:
            raise InvalidDocument(f"{file} is no schema that can be used: {compiled.fault}")
        # Nodes are looked up by the file's name, so a schema of other elements alone would check nothing, silently.
        if compiled.elements and file.removesuffix(".xsd") not in compiled.elements:
            declared = ", ".join(sorted(compiled.elements))
            raise InvalidDocument(
                f"{file} is no schema that can be used: it declares {declared}, not the element of its name"
            )

    def _get(self, file: str) -> Compiled | None:
        kept = self._kept.get(file)
        if kept is not None and all(stamp(f"{self._folder}/{name}") == then for name, then in kept.files.items()):
            return kept
        if stamp(self._folder / file) is None:
            self._kept.pop(file, None)
            return None
        return self._kept.setdefault(file, compile_schema(self._folder, file)) if kept is None else self._again(file)

    def _again(self, file: str) -> Compiled:
        self._kept[file] = compiled = compile_schema(self._folder, file)
        return compiled


def compile_schema(folder: Path, file: str, body: bytes | None = None) -> Compiled:
    """Compile a schema of the folder, or `body` under this name, with the schemas that it includes."""
    files = _Files(folder)
    try:
        root = files.parse(file, body)
        schema = data_xml.compiled(root.getroottree())
    except (InvalidDocument, etree.XMLSchemaParseError, OSError) as error:
        return Compiled(files.read, fault=files.fault or _line(str(error)))
    if files.fault:
        return Compiled(files.read, fault=files.fault)
    return Compiled(files.read, root.get("targetNamespace") or "", frozenset(files.elements), schema)


class _Files(etree.Resolver):
    """Gives the parser the schemas of a folder and nothing else, and records which."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self.read: dict[str, Stamp | None] = {}
        self.elements: set[str] = set()
        self.fault = ""

    def parse(self, file: str, body: bytes | None = None) -> etree._Element:
        """Return the root of a schema. Raises InvalidDocument."""
        body = self._take(file, body)
        parser = data_xml.parser()
        parser.resolvers.add(self)
        return etree.fromstring(body, parser, base_url=_BASE + file)

    def resolve(self, system_url: str, public_id: str, context: object) -> object:  # type: ignore[override] # noqa: ARG002 # lxml's interface
        """Resolve a schema that another includes or imports."""
        try:
            return self.resolve_string(self._take(system_url.removeprefix(_BASE), None), context, base_url=system_url)
        except (InvalidDocument, OSError) as error:
            # libxml2's own message has no reason.
            self.fault = self.fault or _line(str(error))
            raise

    def _take(self, file: str, body: bytes | None) -> bytes:
        if not NAME.fullmatch(file):
            raise InvalidDocument(f"it refers to {file!r}; only schemas of the same folder are read")
        if len(self.read) >= MOST_FILES:
            raise InvalidDocument(f"it refers to more than {MOST_FILES} other schemas")
        if body is None:
            self.read[file] = stamp(self._folder / file)
            with (self._folder / file).open("rb") as opened:
                body = opened.read(LARGEST_SCHEMA + 1)
        if len(body) > LARGEST_SCHEMA:
            raise InvalidDocument(f"{file} has more than {LARGEST_SCHEMA} bytes")
        # Entities and the like are refused here, before libxml2's parser of schemas, which expands them.
        root = data_xml.parse_element(body)
        if root.tag != _SCHEMA:
            raise InvalidDocument(f"{file} is no XML Schema")
        self.elements |= set(_global_elements(root))
        return body


def _global_elements(root: etree._Element) -> Iterator[str]:
    return (name for element in root.iterchildren(_ELEMENT) if (name := element.get("name")))


def stamp(path: Path | str) -> Stamp | None:
    """Return a value that differs after a file has changed; None without a file."""
    try:
        status = os.stat(path)  # noqa: PTH116 # for each addition; a Path costs more than the call
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _line(text: str) -> str:
    return " ".join(text.split())
