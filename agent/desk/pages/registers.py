"""`/registers`: formats and types with what is known of them, profiles, and the programs that are found here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from starlette.responses import Response

from agent.desk.theme import words
from agent.desk.views import FormField
from agent.desk.visit import DeskVisit
from agent.operations import registers
from agent.operations.registers import Program
from webarcfs.archive.catalogue import formats
from webarcfs.archive.catalogue.catalogue import Catalogue
from webarcfs.archive.catalogue.formats import Format, MediaType
from webarcfs.archive.model.errors import SettingsError

#: Rows of the table of formats.
_MOST = 500


def show(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Show the registers."""
    desk = visit.desk
    archive = desk.archive
    text = desk.look_up(visit.language)
    fault = ""
    own_formats: dict[str, Format] = {}
    own_types: dict[str, MediaType] = {}
    known, types = formats.web_formats(), own_types
    try:
        own_formats, own_types = formats.load(archive), formats.types(archive)
        known, types = formats.known(archive), formats.known_types(archive)
    except SettingsError as error:
        fault = str(error)
    counted = counts_of(visit)
    risky = set(formats.unreadable(known, counted))
    names = sorted(counted.keys() | own_formats.keys(), key=lambda name: (-counted[name], name))
    rows = [(name, counted[name], known.get(name.casefold(), Format())) for name in names]
    further = [(name, 0, known[name]) for name in sorted(known.keys() - names)]
    chosen = visit.form.one("what") if visit.is_typed else visit.parameter("what")
    own = own_formats.get(chosen, Format())
    kind = types.get(chosen, MediaType())
    of_format = (
        FormField(name="what", label=text(words.msgid("Extension")),
                  value=visit.typed("what", "" if "/" in chosen else chosen)),
        FormField(name="made_by", label=text(words.msgid("Made by")), value=visit.typed("made_by", own.made_by),
                  help=text(words.msgid("The programs that make such files."))),
        FormField(name="read_by", label=text(words.msgid("Read by")), value=visit.typed("read_by", own.read_by),
                  help=text(words.msgid("The programs that read them today."))),
    )  # fmt: skip
    of_type = (
        FormField(name="what", label=text(words.msgid("MIME type")),
                  value=visit.typed("what", chosen if "/" in chosen else "")),
        FormField(name="description", label=text(words.msgid("What it is")),
                  value=visit.typed("description", kind.description)),
        FormField(name="extension", label=text(words.msgid("Extension")),
                  value=visit.typed("extension", kind.extension)),
    )  # fmt: skip
    users: dict[str, list[str]] = defaultdict(list)
    for publication in desk.settings().publications:
        users[publication.profile or ""].append(publication.name)
    return visit.page(
        "registers.html",
        rows=rows[:_MOST],
        left=len(rows[_MOST:]),
        further=further,
        at_risk=[row for row in rows if row[0] in risky][:_MOST],
        types=sorted(own_types.items()),
        further_types=sorted((name, types[name]) for name in types.keys() - own_types),
        profiles=desk.settings().profiles,
        users=users,
        programs=programs_of(visit),
        of_format=of_format,
        of_type=of_type,
        fault=fault,
    )


def counts_of(visit: DeskVisit) -> Counter[str]:
    """Return the number of files by extension in the newest crawls: kept, since each of their records is read."""
    archive = visit.desk.archive
    state = Catalogue(archive).state()
    key = ("counts", None if state is None else state.commit)
    return visit.desk.kept(key, lambda: registers.newest_counts(archive))


def programs_of(visit: DeskVisit) -> list[Program]:
    """Return the programs of this machine: kept, since each is asked for its version."""
    return visit.desk.kept(("programs",), registers.programs)


def save(visit: DeskVisit, _: Mapping[str, str]) -> Response:
    """Keep what is known of an extension, or of a MIME type. Raises FieldsRefused, SettingsError."""
    form = visit.form
    what = form.one("what").removeprefix(".").casefold()
    is_type = visit.form.has("description")
    if not what or ("/" in what) != is_type:
        wanted = (
            words.msgid("Name a MIME type, as text/html.") if is_type else words.msgid("Name an extension, as pdf.")
        )
        raise visit.refusal({}, visit.said(wanted))
    if is_type:
        changes = {name: form.one(name) for name in ("description", "extension")}
        formats.keep_type(visit.desk.archive, what, changes)
    else:
        formats.keep(visit.desk.archive, what, {name: form.one(name) for name in ("made_by", "read_by")})
    return visit.led("/registers", words.msgid("It was kept."))
