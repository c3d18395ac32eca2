"""Imports point one way, and each outside tool has its one place (/Db-2/)."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.support.sources import MODULES, ROOT, folder_of, imports, tree
from webarcfs.archive.model.errors import WebarcError
from webarcfs.compiled import loader

pytestmark = pytest.mark.pure

#: The folders that hold modules.
FOLDERS = sorted({folder_of(module) for module in MODULES if folder_of(module) != module})
#: Folders of folders whose own layers no contract divides: the subfolder stands below the rest.
FLAT = {"webarcfs.content", "webarcfs.mount.adapters"}
#: Module outside → our modules that may import it.
ONLY = {
    "pygit2": {"webarcfs.archive.git.repository", "webarcfs.content.visible_lines"},
    "sqlite3": {
        "webarcfs.archive.index.query",
        "webarcfs.archive.index.database",
        "webarcfs.access.reader_stores",
        "webarcfs.archive.index.links",
        "webarcfs.archive.index.names",
        "webarcfs.archive.index.sqlite_file",
        "webarcfs.archive.index.stored_rows",
        "agent.crawl.frontier",
    },
    "sqlite_utils": {"webarcfs.archive.index.sqlite_file"},
    "lxml": {
        "agent.crawl.sitemaps",
        "webarcfs.export.bagit",
        "webarcfs.content.visible_lines",
        "webarcfs.export.static_site",
        "webarcfs.room.pages.about",
        "webarcfs.archive.document.data_xml",
        "webarcfs.archive.document.data_nodes",
        "webarcfs.archive.document.schemas",
        "webarcfs.archive.catalogue.record",
        "webarcfs.content.markup",
        "webarcfs.content.outlinks",
        "webarcfs.content.text",
        "webarcfs.content.extractors.text_formats",
    },
    "fuse": {"webarcfs.mount.adapters.fusepy_adapter"},
    "ctypes": {
        "webarcfs.mount.adapters.binding",
        "webarcfs.vfs.content",
        "webarcfs.mount.adapters.libfuse3.library",
        "webarcfs.mount.process.mountpoint",
        "agent.crawl.wgetpool",
    },
    "warcio": set(),
    "uvicorn": {"webarcfs.web.connections", "webarcfs.web.workers"},
    "httpx": {"webarcfs.room.replay.pywb_proxy"},
    "jinja2": {"webarcfs.web.rendering"},
    "re2": {"webarcfs.room.replay.cdx"},
    "babel": {"webarcfs.web.language"},
    "itsdangerous": {"webarcfs.room.replay.replay_url", "agent.desk.login"},
    "argon2": {"agent.desk.login"},
    "tantivy": {f"webarcfs.search.{name}" for name in ("index", "translation", "searching", "collecting")},
    "pypdfium2": {"webarcfs.content.extractors.pdf"},
    "striprtf": {"webarcfs.content.extractors.text_formats"},
    "py3langid": {"webarcfs.content.extractors.extracting"},
    "bagit": {"webarcfs.export.bagit"},
    "zstandard": {"webarcfs.warc.bytestream", "webarcfs.warc.decoding"},
    "tomlkit": {"webarcfs.archive.config.settings_files"},
    "h11": {"agent.crawl.http_fetcher", "agent.service.metrics_listener"},
    "protego": {"agent.crawl.politeness"},
    "publicsuffixlist": {"webarcfs.archive.model.sites"},
    "magic": {"webarcfs.content.mimetype"},
    "xtractmime": {"webarcfs.content.mimetype"},
    "matplotlib": {"webarcfs.commands.output"},
    "mypyc": {"webarcfs.compiled.mypyc_build"},
    "setuptools": {"webarcfs.compiled.mypyc_build"},
}
#: The core of an archive: nothing in it may know the mount, the crawler or their libraries.
ARCHIVE_NEVER = {"fuse", "warcio", "protego", "magic", "click", "rich"}
#: Program → our modules that may start it.
PROGRAMS = {
    # The register of programs asks for their versions; vocabulary has a word for wget.
    "git": {"webarcfs.archive.git.git_command", "agent.operations.registers"},
    "tidy": {"agent.steps.converting", "agent.operations.registers"},
    "wget": {"agent.crawl.wget", "agent.crawl.vocabulary", "agent.operations.registers"},
}
#: Pure modules: they read and write nothing and start nothing (errors and unpickling aside).
PURE = (
    "webarcfs.archive.model.urls",
    "webarcfs.archive.model.arc_paths",
    "webarcfs.archive.model.metadata",
    "webarcfs.archive.config.validators",
    "webarcfs.archive.document.data_nodes",
    "webarcfs.archive.model.errors",
    "webarcfs.archive.model.additions",
    "webarcfs.content.outlinks",
    "webarcfs.content.extractors.extracted",
    "webarcfs.content.extractors.text_formats",
    "webarcfs.search.words",
    "webarcfs.search.query_language",
    "webarcfs.search.searching",
    "agent.crawl.scope",
    "agent.crawl.politeness",
    "agent.importing.crawls",
    "agent.reports.tables",
    "webarcfs.content.markup",
    "webarcfs.content.rewriting.assembly",
    "webarcfs.content.rewriting.html_references",
    "webarcfs.content.css_references",
    "webarcfs.content.rewriting.data_urls",
    "webarcfs.room.replay.replay_url",
    "webarcfs.room.replay.cdx",
    "webarcfs.room.replay.memento",
    "webarcfs.room.replay.headers",
    "webarcfs.room.replay.rewriting",
    "webarcfs.room.views",
)
#: Pure parts of modules that have others, too.
PURE_PARTS = (
    ("agent.crawl.job_folder", "names"),
    ("webarcfs.archive.additions.commit_additions", "batches"),
    ("webarcfs.archive.additions.commit_additions", "pacing"),
    ("webarcfs.archive.additions.journal_log", "log format"),
    ("webarcfs.archive.additions.journal_log", "provisional states"),
    ("webarcfs.archive.git.writing", "tree lines"),
    ("webarcfs.archive.git.writing", "tree stream"),
    ("webarcfs.archive.index.links", "links words"),
    ("webarcfs.archive.index.query", "condition"),
    ("webarcfs.archive.index.query", "condition errors"),
    ("webarcfs.room.theme.rendering", "pictures"),
    ("webarcfs.web.rendering", "links"),
)
IMPURE = {"os", "subprocess", "socket", "sqlite3", "pygit2", "shutil", "tempfile", "threading", "pathlib"}
#: Functions whose first argument is the name of a statement in sql/.
_TAKE_STATEMENTS = {"sql", "_found", "_many", "_one", "_query", "_rows", "_run", "_scalar"}
#: Errors of Python that may be raised: of the system, of a value that a caller refuses, of a method without a body.
_OF_PYTHON = {
    "AssertionError", "EOFError", "FileNotFoundError", "KeyboardInterrupt", "NotImplementedError", "OSError",
    "TimeoutError", "ValueError",
}  # fmt: skip
#: Errors that never leave the modules they are for: name → where it is defined.
_OF_ONE_MODULE = {
    "BadBody": "webarcfs.warc.decoding",
    "Bomb": "webarcfs.warc.decoding",
    "TooBig": "webarcfs.warc.decoding",
    "UnreadableDocument": "webarcfs.content.extractors.extracted",
    "_Busy": "agent.crawl.browser",
    "_Cancelled": "agent.crawl.browser",
    "_Ended": "agent.crawl.browser",
    "_TakesLong": "agent.crawl.resultreader",
    "_TooLong": "agent.importing.har",
}
#: What there is of such libraries that looks at its arguments alone, as getaddrinfo does for addresses in figures.
_OF_VALUES = {"os.fsdecode", "os.fsencode", "os.statvfs_result", "socket.AI_NUMERICHOST", "socket.getaddrinfo"}
#: What a statement of SQL looks like.
_SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX|VIEW|TRIGGER)"
    r"|DROP\s+TABLE|ALTER\s+TABLE|PRAGMA\s+\w+\s*[=;(]|BEGIN\s+(IMMEDIATE|EXCLUSIVE|DEFERRED))",
    re.DOTALL,
)


def strings(module: str) -> Iterator[tuple[int, str]]:
    """Line and text of each string that is no docstring."""
    docs = {id(node.value) for node in ast.walk(tree(module)) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def inside(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def test_imports_point_one_way() -> None:
    """The contracts of pyproject.toml: layers of folders, and no circle, of folders or of modules."""
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_each_folder_of_the_tree_is_in_a_contract() -> None:
    """A folder without a place in the layers could import anything."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    containers = {name for contract in contracts for name in contract.get("containers", ())}
    nested = {folder.rpartition(".")[0] for folder in FOLDERS} - {""}
    assert nested - containers <= FLAT


def test_a_folder_says_what_it_is_for() -> None:
    docstrings = {folder: ast.get_docstring(tree(folder)) or "" for folder in FOLDERS if "." in folder}
    assert [folder for folder, text in docstrings.items() if "Public:" not in text] == []


def test_what_no_layer_says() -> None:
    def is_wrong(module: str, name: str) -> bool:
        return (
            (inside(module, "webarcfs.archive") and name.partition(".")[0] in ARCHIVE_NEVER)
            or (inside(module, "agent") and inside(name, "webarcfs.mount"))
            or (name.endswith("cli") and not module.endswith("__main__"))
            or inside(name, "tests")
            or inside(name, "tools")
        )

    wrong = [f"{module} imports {name}" for module in MODULES for name in imports(module) if is_wrong(module, name)]
    assert wrong == []


def test_a_public_class_name_stands_once() -> None:
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_what_is_compiled_is_not_imported_before_its_form_is_chosen() -> None:
    """`mount.webarcfs` begins in program.py; whatever that imports is there before the compiled form is in front."""
    assert set(loader.MODULES) <= set(MODULES)
    early, more = set(), {"webarcfs.mount.process.program"}
    while more:
        early |= more
        more = {name for module in more for name in imports(module) if name in MODULES} - early
    assert early == {"webarcfs.mount.process.program", "webarcfs.compiled.loader"}


def test_each_library_has_its_place() -> None:
    tops = [(module, name.partition(".")[0]) for module in MODULES for name in imports(module)]
    assert [f"{module} imports {top}" for module, top in tops if module not in ONLY.get(top, {module})] == []


def test_each_program_is_started_in_its_place() -> None:
    """Only the store runs git, only `agent/crawl/wgetpool.py` runs wget."""
    wrong = []
    for module in MODULES:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.List | ast.Tuple):
                words = [element.value for element in node.elts if isinstance(element, ast.Constant)]
                named = [
                    program for program, places in PROGRAMS.items() if program in words[:3] and module not in places
                ]
                wrong += [f"{module}:{node.lineno} names {program}" for program in named]
    assert wrong == []


def test_only_the_store_and_what_writes_for_it_use_git() -> None:
    running = {"run", "copy_blob", "environment", "fail"}
    users = {module for module in MODULES if names_of(module, "webarcfs.archive.git.git_command") & running}
    assert users == {
        *(f"webarcfs.archive.git.{name}" for name in ("repository", "writing")),
        *(f"webarcfs.archive.repair.{name}" for name in ("mending", "repacking")),
    }


def test_one_module_runs_wget() -> None:
    users = {module for module in MODULES if "command" in names_of(module, "agent.crawl.wget")}
    assert {module for module in users if "subprocess" in imports(module)} == {"agent.crawl.wgetpool"}


def names_of(module: str, used: str) -> set[str]:
    """The names of one module that another one uses, however it imports them."""
    folder, _, stem = used.rpartition(".")
    names, aliases = set(), set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module == used:
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == folder:
            aliases |= {alias.asname or alias.name for alias in node.names if alias.name == stem}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            names.add(node.attr)
    return names


def _say_pure() -> Iterator[str]:
    """Modules that say of themselves that they are pure, with no "but" behind it."""
    for module in MODULES:
        if re.search(r"\bPure(\.| \()", ast.get_docstring(tree(module)) or ""):
            yield module


def test_schemas_are_compiled_in_one_place() -> None:
    """libxml2 makes its built-in types with the first schema; where two threads do so at once, both are refused."""
    found = [name for name in MODULES if ".XMLSchema(" in MODULES[name].read_text("utf-8")]
    assert found == ["webarcfs.archive.document.data_xml"]


def test_pure_modules_touch_nothing() -> None:
    used = {
        (module, name)
        for module in {*PURE, *_say_pure()}
        for name in impure_names(module, 1, sys.maxsize, imports=True)
    }
    assert used == set()


def test_pure_parts_touch_nothing() -> None:
    """What a module has below a heading `# == …, pure ==`, up to the next one."""
    parts = {(module, part): lines for module in MODULES for part, lines in pure_parts(module)}
    assert set(PURE_PARTS) <= set(parts)
    assert {(*part, name) for part, lines in parts.items() for name in impure_names(part[0], *lines)} == set()


def pure_parts(module: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The parts of a module that say that they are pure, with their first and last lines."""
    lines = MODULES[module].read_text("utf-8").splitlines()
    headings = [(number, line) for number, line in enumerate(lines, 1) if line.startswith("# == ")]
    for (start, line), (end, _) in pairwise([*headings, (len(lines) + 1, "")]):
        if pure := re.fullmatch(r"# == (.+), pure =+", line):
            yield pure[1], (start, end - 1)


def impure_names(module: str, first: int, last: int, *, imports: bool = False) -> Iterator[str]:
    """The names by which the lines of a module could touch what is outside of it."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in IMPURE:
            bound |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    if imports:
        yield from set(bound.values()) - _OF_VALUES
    for node in ast.walk(tree(module)):
        if first <= getattr(node, "lineno", 0) <= last:
            name = ""
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in IMPURE:
                name = ast.unparse(node)
            elif isinstance(node, ast.Name):
                name = bound.get(node.id, "")
            if name and name not in _OF_VALUES:
                yield name


def test_sql_is_in_files() -> None:
    """/Db-2/: each statement is a file in sql/."""
    lines = ((module, line, text) for module in MODULES for line, text in strings(module))
    assert [f"{module}:{line} has SQL: {text!r}" for module, line, text in lines if _SQL.search(text)] == []


def test_every_statement_is_used_and_every_used_one_is_there() -> None:
    folder = ROOT / "sql"
    files = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.sql")}
    words = {text for module in MODULES for _, text in strings(module)}
    assert files - words == set(), "no module names them"
    assert {name for module in MODULES for name in statements(module)} - files == set(), "there are no such files"


def test_a_statement_of_the_frontier_is_called_as_its_method() -> None:
    """But for those that set it up, and where a method needs two."""
    (frontier,) = (
        node for node in tree("agent.crawl.frontier").body if isinstance(node, ast.ClassDef) and node.name == "Frontier"
    )
    methods = {node.name for node in frontier.body if isinstance(node, ast.FunctionDef)}
    files = {path.stem for path in (ROOT / "sql" / "frontier").glob("*.sql")}
    assert files - methods == {"schema", "tune", "upgrade_2", "upgrade_3", "upgrade_4", "new_batch", "clear_held"}


def statements(module: str) -> Iterator[str]:
    """The names of statements that a module gives, as they are, to the functions that read or run one."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("self.") in _TAKE_STATEMENTS:
            name = node.args[0] if node.args else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value


def test_no_shell_no_pickle_no_eval() -> None:
    """Every command is a list; nothing that is read is run."""
    running = {"os.system", "os.popen", "eval", "exec", "pickle.load", "pickle.loads"}
    calls = ((module, node) for module in MODULES for node in ast.walk(tree(module)) if isinstance(node, ast.Call))
    assert [
        f"{module}:{node.lineno}"
        for module, node in calls
        if ast.unparse(node.func) in running or any(keyword.arg == "shell" for keyword in node.keywords)
    ] == []


def test_no_text_is_read_as_markup() -> None:
    """What people, sites and files say goes to one kind of console, which prints it as it is."""
    calls = [(module, node) for module in MODULES for node in ast.walk(tree(module)) if isinstance(node, ast.Call)]
    makers, readers = set(), []
    for module, node in calls:
        name = ast.unparse(node.func).rpartition(".")[2]
        if name == "Console":
            makers.add(module)
        is_plain = any(ast.unparse(keyword) == "markup=False" for keyword in node.keywords)
        if name == "from_markup" or (name in {"Console", "RichHandler", "TextColumn"} and not is_plain):
            readers.append(f"{module}:{node.lineno}")
    assert makers == {"webarcfs.commands.listing"} and not readers
    used = {name for module in MODULES for name in imports(module) if inside(name, "rich")}
    assert used <= {"rich.console", "rich.logging", "rich.progress", "rich.table", "rich.text"}


def test_every_module_says_what_it_is_for() -> None:
    texts = {module: path.read_text("utf-8") for module, path in MODULES.items()}
    assert [module for module, text in texts.items() if text.strip() and not ast.get_docstring(tree(module))] == []


def test_errors_are_raised_from_the_one_family() -> None:
    """Or they are Python's, or they never leave their module, or they are the word of fusepy for an errno."""
    known = {kind.__name__ for kind in _family(WebarcError)} | _OF_PYTHON | set(_OF_ONE_MODULE) | {"FuseOSError"}
    raised = {(module, name) for module in MODULES for name in _raised(module)}
    assert {(module, name) for module, name in raised if name not in known} == set()


def test_errors_are_defined_in_one_module_but_for_those_that_stay_in_theirs() -> None:
    home = {kind.__name__: kind.__module__ for kind in _family(WebarcError)} | _OF_ONE_MODULE
    defined = {
        (node.name, module)
        for module in MODULES
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ClassDef) and {ast.unparse(base) for base in node.bases} & {*home, "Exception"}
    }
    assert defined == set(home.items())


def _raised(module: str) -> Iterator[str]:
    """The names of the classes that a module raises; what a variable or a function holds is not looked at."""
    raised = [node.exc for node in ast.walk(tree(module)) if isinstance(node, ast.Raise) and node.exc is not None]
    while raised:
        each = raised.pop()
        if isinstance(each, ast.IfExp):
            raised += [each.body, each.orelse]
        elif isinstance(each, ast.Call):
            raised.append(each.func)
        elif re.fullmatch(r"_?[A-Z]\w*", name := ast.unparse(each).rpartition(".")[2]):
            yield name


def _family(kind: type[WebarcError]) -> Iterator[type[WebarcError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _family(below)
