"""Fields of forms, in the language of who asks: of a record, and of the archive's settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, get_type_hints

from agent.desk.theme import words
from agent.desk.views import FieldSet, FormField
from agent.desk.visit import DeskVisit
from webarcfs.archive.catalogue.record import Field, Record
from webarcfs.archive.catalogue.workflow import ABOUT, may_edit
from webarcfs.room.pages.records import GROUPS


def of_field(visit: DeskVisit, field: Field, value: str, *, is_told: bool = False, now: str | None = None) -> FormField:
    """Return a field of a record. The English help names the German term of 2005, by which archivists know it."""
    is_area = field.name.casefold().endswith("remarks") or "\n" in value
    label, help_text = words.of_field(field, visit.language, visit.desk.look_up(visit.language))
    faults = visit.problem.faults if visit.problem is not None else {}
    return FormField(
        name=field.name,
        label=label,
        value=value,
        kind="told" if is_told else "area" if is_area else "text",
        help=help_text,
        fault=faults.get(field.name, ""),
        now=now,
        number=field.number,
    )


def sets_of(visit: DeskVisit, record: Record, groups: Iterable[tuple[str, tuple[Field, ...]]]) -> tuple[FieldSet, ...]:
    """Return the description of a record as a form, by groups; what may not be changed is shown, if it has a value.

    After a conflict, what the archive has by now is beside what was typed.
    """
    role = visit.person.role
    is_conflict = visit.problem is not None and visit.problem.status == 409
    field_sets = [FieldSet(words.ABOUT, tuple(_about(visit, record, is_conflict=is_conflict)))]
    for number, members in groups:
        shown = []
        for field in members:
            value = record.text(field.number)
            if may_edit(field, role, is_fetched=bool(record.parts)):
                typed = visit.typed(field.name, value)
                shown.append(of_field(visit, field, typed, now=value if is_conflict and typed != value else None))
            elif value:
                shown.append(of_field(visit, field, value, is_told=True))
        if shown:
            field_sets.append(FieldSet(GROUPS[number], tuple(shown), is_open=number == "1"))
    return tuple(field_sets)


def _about(visit: DeskVisit, record: Record, *, is_conflict: bool) -> Iterable[FormField]:
    for name in ABOUT:
        value = getattr(record, name).text
        typed = visit.typed(name, value)
        label, help_text = words.of_about(name, visit.desk.look_up(visit.language))
        yield FormField(
            name=name, label=label, value=typed, help=help_text, now=value if is_conflict and typed != value else None
        )


# -- settings ----------------------------------------------------------------------------------------------------------


def of_settings(
    visit: DeskVisit, kind: type, values: Mapping[str, Any], *, prefix: str = "", is_open: bool = True,
    leave_out: frozenset[str] = frozenset(), own: Mapping[str, Any] | None = None,
) -> tuple[FormField, ...]:  # fmt: skip
    """Return a table of settings as fields, filled with the values in force.

    `own` are those that the table says itself: the others are shown as the default that holds.
    """
    hints = get_type_hints(kind)
    text = visit.desk.look_up(visit.language)
    faults = visit.problem.faults if visit.problem is not None else {}
    form_fields = []
    for field in dataclasses.fields(kind):
        if "check" not in field.metadata or field.name in leave_out:
            continue
        key = field.metadata.get("key", field.name)
        name = f"{prefix}{key}"
        value = values.get(field.name, field.default)
        shown = as_text(value)
        written = shown if own is None or key in own else ""
        several = words.ticks_of_setting(key, text)
        kind_of_field = _kind(hints[field.name], field.metadata["check"], is_open=is_open)
        if several and not is_open:
            written = "\n".join(label for value, label in several if value in written.splitlines())
        form_fields.append(
            FormField(
                name=name,
                label=words.label_of_default(key, text),
                value=typed_in(visit, name) if visit.is_typed and visit.form.has(name) else written,
                kind="several" if several and is_open else kind_of_field,
                help=text(field.metadata["help"]),
                choices=several or _choices(key, field.metadata["check"], value, text, has_default=own is not None),
                fault=faults.get(key, ""),
                placeholder=shown if own is not None else "",
            )
        )
    return tuple(form_fields)


def typed_in(visit: DeskVisit, name: str) -> str:
    """Return what was typed for a setting; of boxes that were ticked a line each."""
    ticked = [value for value in visit.form.all(name) if value]
    return "\n".join(ticked) if len(ticked) > 1 else visit.form.raw(name) if not ticked else ticked[0]


def _kind(hint: Any, check: Any, *, is_open: bool) -> str:
    if not is_open:
        return "told"
    words_of_check: tuple[str, ...] = getattr(check, "words", ())
    if hint is bool or words_of_check:
        return "choice"
    return "area" if str(hint).startswith("tuple") else "text"


def _choices(key: str, check: Any, value: Any, text: Any, *, has_default: bool) -> tuple[tuple[str, str], ...]:
    """Return the values that a setting may have, where these are few."""
    values: tuple[str, ...] = ("yes", "no") if isinstance(value, bool) else getattr(check, "words", ())
    first = (("", text("as the archive says")),) if has_default else ()
    return (*first, *words.choices_of_setting(key, values, text)) if values else ()


def as_text(value: Any) -> str:
    """Return a setting as it is in a form: lists a line each."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "\n".join(map(str, value))
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return str(value)


def from_text(kind: type, name: str, text: str) -> Any:
    """Return the TOML value of what was typed for a setting: its check judges it afterwards."""
    hint = get_type_hints(kind)[name]
    if hint is bool:
        return {"yes": True, "no": False}.get(text, text)
    if hint in (int, float):
        for number in (int, float):
            try:
                return number(text)
            except ValueError:
                continue
        return text
    if str(hint).startswith("tuple"):
        return [line.strip() for line in text.splitlines() if line.strip()]
    return text
