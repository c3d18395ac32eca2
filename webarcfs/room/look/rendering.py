"""Pages of the room from the values of `views`: a template for each class of page, in the language of the reader.

Everything that a value has is text; the templates escape it, and make a link of it only where it is a path of the room.
Only our own pictures and dates are markup.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from webarcfs.archive.config.directory import Archive
from webarcfs.archive.system import deadline
from webarcfs.room import memento_views, views
from webarcfs.room.look import language as languages
from webarcfs.room.look import pictures
from webarcfs.room.look.links import link_to

_HERE = Path(__file__).parent
_STATIC = _HERE / "static"
#: Times that are kept as elements, of each form: lists have the same ones for years.
_TIMES = 4_096
#: A language, as pages say theirs (BCP 47, its first part).
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,3}")
#: The page of a class.
_TEMPLATES: Mapping[type, str] = {
    views.HomePage: "home.html",
    views.PublicationPage: "publication.html",
    views.RecordPage: "record.html",
    views.ComparePage: "compare.html",
    views.LinksPage: "links.html",
    views.SearchPage: "search.html",
    memento_views.CalendarPage: "calendar.html",
    memento_views.PrefixPage: "prefix.html",
    memento_views.DiffPage: "diff.html",
    memento_views.FramePage: "frame.html",
    memento_views.NoticePage: "notice.html",
    memento_views.MissingPage: "missing.html",
    memento_views.InnerNotice: "inner_notice.html",
    memento_views.ErrorPage: "error.html",
    views.AboutPage: "about.html",
}


@dataclass(frozen=True, slots=True)
class Kit:
    """What another program adds to the room's look: classes and their templates, and a folder with its own
    `templates/` (which come before the room's), `static/` and `locale/`.
    """

    folder: Path
    templates: Mapping[type, str]

    @property
    def locale(self) -> Path:
        """The folder of its texts."""
        return self.folder / "locale"


class Look:
    """Renders pages, and has the room's own files. Any thread may use it."""

    def __init__(self, archive: Archive | None = None, kit: Kit | None = None) -> None:
        """`archive` may have texts of its own in `texts/<language>.toml`."""
        self._kit = kit
        self._templates = {**_TEMPLATES, **(kit.templates if kit is not None else {})}
        static = [*sorted(_STATIC.iterdir()), *(sorted((kit.folder / "static").iterdir()) if kit is not None else ())]
        self._files = {path.name: path.read_bytes() for path in static}
        self._digests = {name: hashlib.sha256(body).hexdigest()[:12] for name, body in self._files.items()}
        self._environments = {each: self._environment(each) for each in languages.LANGUAGES}
        self._texts = {each: _texts(archive, each) for each in languages.LANGUAGES}
        self._version = _version()

    def render(
        self,
        page: object,
        *,
        language: str,
        path: str,
        query: str = "",
        has_search: bool = False,
        more: Mapping[str, object] | None = None,
    ) -> str:
        """Return the HTML of a page. `path` and `query` are the page's own, for the switch of languages.

        `more` are further names for the templates. Ends with the deadline of the thread.
        """
        template = self._environments[language].get_template(self._templates[type(page)])
        pieces = template.generate(
            more or {},
            page=page,
            language=language,
            here=path,
            has_search=has_search,
            texts=self._texts[language],
            version=self._version,
            switches=[(each, _switched(path, query, each)) for each in languages.LANGUAGES],
        )
        return "".join(_until_deadline(pieces))

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

    def _environment(self, language: str) -> Environment:
        environment = Environment(
            loader=FileSystemLoader(
                [*([self._kit.folder / "templates"] if self._kit is not None else []), _HERE / "templates"]
            ),
            autoescape=True,
            undefined=StrictUndefined,
            extensions=["jinja2.ext.i18n"],
            trim_blocks=True,
            lstrip_blocks=True,
        )
        more = self._kit.locale if self._kit is not None else None
        texts = languages.translations(language, more)
        environment.install_gettext_translations(texts, newstyle=True)  # type: ignore[attr-defined] # of the extension
        for name in ("number", "size", "name_of_language"):
            environment.filters[name] = partial(getattr(languages, name), language=language)
        environment.filters["said"] = partial(languages.said, language=language, more=more)
        # Dates are elements; where text is needed, as in a title or an attribute, they are `…_text`.
        for name in ("day", "moment"):
            as_text = partial(getattr(languages, name), language=language)
            environment.filters[f"{name}_text"] = as_text
            environment.filters[name] = lru_cache(_TIMES)(partial(_time, as_text=as_text))
        environment.filters.update(to=link_to, paragraphs=_paragraphs, shown=_shown, lang=_lang)
        environment.globals.update(
            static=self.static,
            swatch=pictures.swatch,
            share=pictures.share,
            strip=pictures.strip,
            parts_of=pictures.parts_of,
            mark=pictures.mark,
            years=partial(pictures.years, language=language),
            sizes=partial(pictures.sizes, language=language),
            months_of=partial(pictures.months_of, language=language),
            years_of=partial(pictures.years_of, language=language),
        )
        return environment


# -- filters of the templates ------------------------------------------------------------------------------------------


def _time(value: datetime, as_text: partial[str]) -> Markup:
    """Return a time as an element that programs can read. Lists have hundreds; `%` costs half of `format`."""
    return Markup('<time datetime="%s">%s</time>') % (value.isoformat(), as_text(value))


def _lang(code: str) -> Markup:
    """Return the attribute that says the language of a text that others wrote; nothing where it is not known."""
    return Markup(' lang="{}"').format(code.lower()) if _LANGUAGE_TAG.fullmatch(code) else Markup("")


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text: an empty line ends one."""
    return [found.strip() for found in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")) if found.strip()]


def _shown(rows: Iterable[object], *names: str) -> frozenset[str]:
    """Return those of the names under which some row has a value: columns that have none are not shown."""
    found = list(rows)
    return frozenset(name for name in names if any(getattr(each, name) not in ("", None, ()) for each in found))


def _switched(path: str, query: str, language: str) -> str:
    """Return the page's own URL in another language; pages about archived URLs keep what follows as it is."""
    if path.startswith(("/web/", "/diff/", "/side/", "/timemap/")):
        return ""
    pairs = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "lang"]
    return f"?{urlencode([*pairs, ('lang', language)])}"


def _texts(archive: Archive | None, language: str) -> dict[str, str]:
    """Return the archive's own texts in a language; a file with faults has none."""
    if archive is None:
        return {}
    try:
        said = tomllib.loads((archive.root / "texts" / f"{language}.toml").read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    return {name: value for name, value in said.items() if isinstance(value, str)}


def _version() -> str:
    try:
        return version("webarcfs")
    except PackageNotFoundError:
        return ""


def _until_deadline(pieces: Iterable[str]) -> Iterator[str]:
    for piece in pieces:
        deadline.check()
        yield piece
