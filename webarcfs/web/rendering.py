"""Pages of the reading room and the desk: templates, in the language of the reader, and the programs' own files.

Everything that a value has is text; the templates escape it. An href becomes a link only where it leads to a path of
the program, whoever wrote it. Only our own pictures and dates are markup.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from webarcfs import __version__
from webarcfs.archive.config.directory import Archive
from webarcfs.archive.system import clocks
from webarcfs.web import language as languages

# == links, pure ======================================================================================================


#: What a browser takes out of a URL, or for a slash.
_NOT_IN_PATHS = re.compile(r"[\x00-\x20\x7f\\]")


def link_to(href: str, beside: str = "", attribute: str = "href") -> Markup:
    """Return the attribute of a link that leads to a path of the room, or to the origin of the URL `beside`.

    Any other href gives none: the words are then text. What a browser would take out of a path, or for a
    slash, is encoded, so that no path becomes the name of another host.
    """
    href = _NOT_IN_PATHS.sub(lambda match: f"%{ord(match[0]):02X}", href)
    is_ours = href.startswith(("/", "?", "#")) and not href.startswith("//")
    origin = origin_of(beside)
    if not is_ours and not (origin and href.startswith(f"{origin}/")):
        return Markup("")
    return Markup(' {}="{}"').format(attribute, href)


def origin_of(url: str) -> str:
    """Return the origin of a web URL; empty for any other."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") and parts.netloc else ""


# == rendering ========================================================================================================


_HERE = Path(__file__).parent
#: Times that are kept as elements, of each form: lists have the same ones for years.
_TIMES = 4_096
#: A language, as pages say theirs (BCP 47, its first part).
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}")
#: Further names for templates, and their values.
_Names = Mapping[str, object]


class PageRenderer:
    """Renders the pages of a program, and has its files. Any thread may use it."""

    def __init__(
        self,
        theme: Path,
        archive: Archive | None,
        names: Callable[[str], _Names],
        *,
        files: Mapping[str, bytes] | None = None,
        **macros: str,
    ) -> None:
        """`theme` has `templates/` and `static/` of the program, `archive` may have texts in `texts/<language>.toml`.

        `names` returns what all templates have in a language, and `macros` are further names: of templates whose macros
        they share. All pages have the style sheets of `static/`; `files` are further ones, for pages that name them.
        """
        self._names = names
        self._macros = {"parts": "parts.html", **macros}
        self._folders = (_HERE, theme)
        static = [path for folder in self._folders for path in sorted((folder / "static").iterdir())]
        self._sheets = [path.name for path in static if path.suffix == ".css"]
        self._files = {path.name: path.read_bytes() for path in static} | dict(files or {})
        self._digests = {name: hashlib.sha256(body).hexdigest()[:12] for name, body in self._files.items()}
        self._environments: dict[str, Environment] = {}  # made when a page needs them: that takes a while
        self._texts = {language: texts_of(archive, language) for language in languages.LANGUAGES}

    def render(
        self,
        template: str,
        values: _Names,
        *,
        language: str,
        path: str,
        query: str = "",
        has_search: bool = False,
    ) -> str:
        """Return the HTML of a page. The template has the values by their names, and those that all pages share.

        `path` and `query` are the page's own, for the switch of languages. Ends with the deadline of the thread.
        """
        pieces = (
            self.environment(language)
            .get_template(template)
            .generate(
                values,
                language=language,
                here=path,
                has_search=has_search,
                texts=self._texts[language],
                version=__version__,
                switches=[(code, _switched(path, query, code)) for code in languages.LANGUAGES],
            )
        )
        return "".join(_until_deadline(pieces))

    def environment(self, language: str) -> Environment:
        """Return the templates of a language. Two threads may make them at once; one of both stays."""
        if language not in self._environments:
            self._environments[language] = self._new_environment(language)
        return self._environments[language]

    def static(self, name: str) -> str:
        """Return the path of one of our files: with its digest, so that it may be kept for a year."""
        return f"/static/{self._digests[name]}/{name}"

    def static_file(self, path: str) -> tuple[bytes, str] | None:
        """Return the bytes and the type of one of our files; None for any other path."""
        if path == "/favicon.ico":
            path = self.static("favicon.svg")
        _, _, rest = path.partition("/static/")
        digest, _, name = rest.partition("/")
        if self._digests.get(name) != digest:
            return None
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return self._files[name], f"{kind}; charset=utf-8" if kind.startswith("text/") else kind

    def _new_environment(self, language: str) -> Environment:
        environment = Environment(
            loader=FileSystemLoader([folder / "templates" for folder in self._folders]),
            autoescape=True,
            undefined=StrictUndefined,
            extensions=["jinja2.ext.i18n"],
            trim_blocks=True,
            lstrip_blocks=True,
        )
        texts = languages.translations(language)
        environment.install_gettext_translations(texts, newstyle=True)  # type: ignore[attr-defined] # of the extension
        for name in ("number", "size", "name_of_language"):
            environment.filters[name] = partial(getattr(languages, name), language=language)
        environment.filters["said"] = partial(languages.translate, language=language)
        # Dates are elements; where text is needed, as in a title or an attribute, they are `…_text`.
        for name in ("day", "moment"):
            as_text = partial(getattr(languages, name), language=language)
            environment.filters[f"{name}_text"] = as_text
            environment.filters[name] = lru_cache(_TIMES)(partial(_time, as_text=as_text))
        environment.filters.update(to=link_to, paragraphs=paragraphs, shown=_shown, lang=_lang)
        sheets = [self.static(name) for name in self._sheets]
        environment.globals.update(self._names(language), static=self.static, sheets=sheets)
        for name, template in self._macros.items():
            environment.globals[name] = environment.get_template(template).module
        return environment


# -- filters of the templates ------------------------------------------------------------------------------------------


def _time(value: datetime, as_text: partial[str]) -> Markup:
    """Return a time as an element that programs can read. Lists have hundreds; `%` costs half of `format`."""
    return Markup('<time datetime="%s">%s</time>') % (value.isoformat(), as_text(value))


def _lang(code: str) -> Markup:
    """Return the attribute that says the language of a text that others wrote; nothing where it is not known."""
    return Markup(' lang="{}"').format(code.lower()) if _LANGUAGE_TAG.fullmatch(code) else Markup("")


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text: an empty line ends one."""
    return [paragraph.strip() for paragraph in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")) if paragraph.strip()]


def _shown(rows: Iterable[object], *names: str) -> frozenset[str]:
    """Return those of the names under which some row has a value: columns that have none are not shown."""
    all_rows = list(rows)
    return frozenset(name for name in names if any(getattr(row, name) not in ("", None, ()) for row in all_rows))


def _switched(path: str, query: str, language: str) -> str:
    """Return the page's own URL in another language; pages about archived URLs keep what follows as it is."""
    if path.startswith(("/web/", "/cite/", "/diff/", "/side/", "/timemap/")):
        return ""
    pairs = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "lang"]
    return f"?{urlencode([*pairs, ('lang', language)])}"


def texts_of(archive: Archive | None, language: str) -> dict[str, str]:
    """Return the archive's own texts in a language; a file with faults has none."""
    if archive is None:
        return {}
    try:
        texts = tomllib.loads((archive.root / "texts" / f"{language}.toml").read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    return {name: value for name, value in texts.items() if isinstance(value, str)}


def _until_deadline(pieces: Iterable[str]) -> Iterator[str]:
    for piece in pieces:
        clocks.check()
        yield piece
