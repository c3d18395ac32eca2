"""The pages of the desk: what every page of it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from markupsafe import Markup

from agent.desk.forms import TOKEN
from agent.desk.theme import words
from agent.desk.theme.who_may import role_names, who_may
from agent.desk.visit import DeskVisit
from webarcfs.archive.catalogue.workflow import Right
from webarcfs.archive.config.directory import Archive
from webarcfs.web.rendering import PageRenderer


@dataclass(frozen=True, slots=True)
class Saying:
    """In which language a page is written, at which path, to whom (None: nobody is known), and what happened before."""

    language: str
    path: str
    visit: DeskVisit | None = None
    said: tuple[tuple[str, str], ...] = ()


@lru_cache(maxsize=16)
def options(choices: tuple[tuple[str, str], ...], chosen: str) -> Markup:
    """Return the choices of a field; kept, since there are hundreds of publications to choose from."""
    line, is_chosen = Markup('<option value="%s"%s>%s</option>'), Markup(" selected")
    return Markup("").join(line % (value, is_chosen if value == chosen else "", text) for value, text in choices)


class DeskLook:
    """Renders pages of the desk, and has its files."""

    def __init__(self, archive: Archive) -> None:
        names = {"words": words, "options": options}
        self._pages = PageRenderer(
            Path(__file__).parent, archive, lambda _: names, d="desk_parts.html", trials="trial_parts.html"
        )

    def render(self, template: str, values: Mapping[str, object], saying: Saying) -> str:
        """Return the HTML of a page from a template of the desk, or of the room, and its values."""
        visit = saying.visit

        def token(action: str, state: str = "") -> Markup:
            assert visit is not None, "a form needs a session"
            form_token = visit.desk.tokens.form(visit.session.public, unquote(action), state)
            return Markup('<input type="hidden" name="{}" value="{}">').format(TOKEN, form_token)

        shared = {
            "person": None if visit is None else visit.person,
            "may": (lambda _: False) if visit is None else (lambda right: visit.may(Right(right))),
            "needs": (lambda _: "") if visit is None else (lambda right: who_may(visit, Right(right))),
            "own_roles": "" if visit is None else role_names(visit, visit.person.roles),
            "token": token,
            "said_before": saying.said,
            "problem": None if visit is None else visit.problem,
            "by_proxy": visit is not None and bool(visit.session.proxy),
        }
        return self._pages.render(template, {**values, **shared}, language=saying.language, path=saying.path)

    def static_file(self, path: str) -> tuple[bytes, str] | None:
        """Return the bytes and the type of one of our files; None for any other path."""
        return self._pages.static_file(path)
