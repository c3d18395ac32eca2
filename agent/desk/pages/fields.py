"""Fields of forms, in the language of who asks: of a record, and of the archive's settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agent.desk import localized
from agent.desk.theme import words
from agent.desk.views import FieldSet, FormField
from agent.desk.visit import DeskVisit
from webarcfs.archive.catalogue.record import Field, Record
from webarcfs.archive.catalogue.workflow import ABOUT, may_edit
from webarcfs.archive.config import settings_files, validators
from webarcfs.archive.config.validators import Interval
from webarcfs.room.pages.records import GROUPS
from webarcfs.web import language as languages


def of_field(visit: DeskVisit, field: Field, value: str, *, is_told: bool = False, now: str | None = None) -> FormField:
    """Return a field of a record. The English help names the German term of 2005, by which archivists know it."""
    is_area = field.name.casefold().endswith("remarks") or "\n" in value
    label, help_text = words.of_field(field, visit.language, visit.desk.look_up(visit.language))
    return FormField(
        name=field.name,
        label=label,
        value=value,
        kind="told" if is_told else "area" if is_area else "text",
        help=help_text,
        fault=visit.fault(field.name),
        now=now,
    )


def sets_of(visit: DeskVisit, record: Record, groups: Iterable[tuple[str, tuple[Field, ...]]]) -> tuple[FieldSet, ...]:
    """Return the description of a record as a form, by groups; what may not be changed is shown, if it has a value.

    After a conflict, what the archive has by now is beside what was typed.
    """
    roles = visit.person.roles
    field_sets = [FieldSet(words.ABOUT, tuple(_about(visit, record)))]
    for number, members in groups:
        shown = []
        for field in members:
            value = record.text(field.number)
            if may_edit(field, roles, is_fetched=bool(record.parts)):
                typed = visit.typed(field.name, value)
                shown.append(of_field(visit, field, typed, now=value if visit.is_conflict and typed != value else None))
            elif value:
                shown.append(of_field(visit, field, value, is_told=True))
        if shown:
            field_sets.append(FieldSet(GROUPS[number], tuple(shown), is_open=number == "1"))
    return tuple(field_sets)


def empty_about(visit: DeskVisit) -> tuple[FormField, ...]:
    """Return title, language and access statement, for several crawls alike."""
    about = ((name, words.of_about(name, visit.desk.look_up(visit.language))) for name in ABOUT)
    return tuple(
        FormField(name=name, label=label, value=visit.typed(name, ""), help=help_text, fault=visit.fault(name))
        for name, (label, help_text) in about
    )


def _about(visit: DeskVisit, record: Record) -> Iterable[FormField]:
    for name in ABOUT:
        value = getattr(record, name).text
        typed = visit.typed(name, value)
        label, help_text = words.of_about(name, visit.desk.look_up(visit.language))
        yield FormField(
            name=name,
            label=label,
            value=typed,
            help=help_text,
            now=value if visit.is_conflict and typed != value else None,
        )


# -- settings ----------------------------------------------------------------------------------------------------------


#: What the choice of a usual interval says where the field beside it has another one.
OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormSetting:
    """A setting in a form. `name` is that of its field, `own` what its table says itself (None: nothing).

    `in_force` is the value that holds. `has_above`: another table says it where this one does not.
    """

    name: str
    key: str
    setting: dataclasses.Field[Any]
    own: Any
    in_force: Any
    has_above: bool = True
    words: tuple[tuple[str, str], ...] = ()

    @property
    def check(self) -> Any:
        """The check of its values."""
        return self.setting.metadata["check"]

    def label(self, visit: DeskVisit) -> str:
        """Return what people call it."""
        text = visit.desk.look_up(visit.language)
        return words.label_of_setting(self.key, text) if self.has_above else words.label_of_default(self.key, text)


def of_setting(visit: DeskVisit, shown: FormSetting, *, is_open: bool) -> FormField:
    """Return the field of a setting, in the language of the page; not `is_open`: its value is shown, as people read it.

    After a conflict, what the archive has by now is beside what was typed.
    """
    text = visit.desk.look_up(visit.language)
    choices = _choices_of(visit, shown)
    current = localized.text_of(shown.check, shown.own, visit.language)
    in_force = localized.text_of(shown.check, shown.in_force, visit.language)
    kind = _kind(visit, shown, choices, current, is_open=is_open)
    if kind == "ticks":
        chosen = current if shown.own is not None else in_force
        current = in_force = chosen
        typed = "\n".join(visit.form.all(shown.name)) if visit.is_typed and visit.form.has(shown.name) else chosen
    else:
        typed = visit.typed(shown.name, current)
    if choices and not shown.has_above and not typed:
        typed = in_force
    value, other = _usual(visit, shown, typed) if kind == "interval" else (typed, "")
    now_is = current if visit.is_conflict and typed != current else None
    return FormField(
        name=shown.name,
        label=shown.label(visit),
        value=value if is_open else said_value(choices, current or in_force, visit.language),
        kind=kind,
        help=words.help_of_setting(shown.key, shown.setting.metadata["help"], text),
        choices=choices,
        fault=visit.fault(shown.name),
        placeholder=said_value((), in_force, visit.language) if shown.has_above else "",
        now=None if now_is is None else said_value(choices, now_is, visit.language),
        other=other,
        is_set=shown.own is not None,
    )


def said_value(choices: tuple[tuple[str, str], ...], value: str, language: str) -> str:
    """Return a value as people read it: the words of a choice, a number with its groups."""
    labels = dict(choices)
    if value in labels or "\n" in value:
        return ", ".join(labels.get(line, line) for line in value.splitlines()) if labels else value
    return languages.number(int(value), language) if value.isdecimal() and len(value) < 16 else value


def _kind(
    visit: DeskVisit, shown: FormSetting, choices: tuple[tuple[str, str], ...], current: str, *, is_open: bool
) -> str:
    if not is_open:
        return "told"
    check = shown.check
    if hasattr(getattr(check, "element", None), "words"):
        return "ticks"
    if shown.key == "interval":
        return "interval"
    if choices:
        return "choice"
    if check is validators.time:
        return time_kind(visit.typed(shown.name, current))
    return "area" if hasattr(check, "element") or hasattr(check, "table") or shown.key == "note" else "text"


def time_kind(typed: str) -> str:
    """Return the kind of a field for a time: a picker, but for what a picker cannot show."""
    with suppress(ValueError):
        return "time" if not typed or localized.time_text(localized.read_time(typed)) == typed else "text"
    return "text"


def day_kind(typed: str) -> str:
    """Return the kind of a field for a day: a picker, but for what a picker cannot show."""
    with suppress(ValueError):
        return "date" if not typed or localized.read_day(typed).isoformat() == typed else "text"
    return "text"


def _choices_of(visit: DeskVisit, shown: FormSetting) -> tuple[tuple[str, str], ...]:
    """Return the values that a setting may have, where these are few; the first takes that of the archive."""
    text = visit.desk.look_up(visit.language)
    check = getattr(shown.check, "element", shown.check)
    if shown.key == "interval":
        in_force = Interval.parse(str(shown.in_force))
        usual = [(str(Interval.parse(value)), text(word)) for value, word in words.INTERVALS.items()]
        above = dict(usual).get(str(in_force), localized.interval_text(in_force, visit.language))
        first = f"{text(_ABOVE)}: {above}" if shown.own is None else text(_ABOVE)
        rest = (*usual, (OTHER, text(words.msgid("another one"))))
        return (("", first), *rest) if shown.has_above else rest
    if shown.words:
        return shown.words
    values: tuple[str, ...] = ("yes", "no") if check is validators.boolean else getattr(check, "words", ())
    if not values:
        return ()
    choices = words.choices_of_setting(shown.key, values, text)
    if not shown.has_above or hasattr(shown.check, "element"):
        return choices
    in_words = dict(choices).get(localized.text_of(check, shown.in_force, visit.language), "")
    above = f"{text(_ABOVE)}: {in_words}" if shown.own is None else text(_ABOVE)
    return (("", above), *choices)


_ABOVE = words.msgid("as the archive says")


def _usual(visit: DeskVisit, shown: FormSetting, typed: str) -> tuple[str, str]:
    """Return which usual interval is chosen, and what stands in the field for others."""
    if visit.is_typed and visit.form.has(f"{shown.name}.{OTHER}"):
        chosen, other = visit.form.raw(shown.name), visit.form.raw(f"{shown.name}.{OTHER}")
        return (chosen, other) if chosen in ("", OTHER, *words.INTERVALS) else _as_chosen(other or chosen)
    return _as_chosen(typed)


def _as_chosen(text: str) -> tuple[str, str]:
    if not text:
        return "", ""
    with suppress(ValueError):
        interval = Interval.parse(str(localized.value_of(validators.interval, text, "en")))
        for value in words.INTERVALS:
            if Interval.parse(value) == interval:
                return value, ""
    return OTHER, text


def typed_interval(visit: DeskVisit, shown: FormSetting) -> str:
    """Return the interval that was chosen or typed: what was changed of the two fields. Raises ValueError for both."""
    chosen = visit.form.one(shown.name)
    other_name = f"{shown.name}.{OTHER}"
    if not visit.form.has(other_name):
        return chosen
    other = visit.form.one(other_name)
    before = _as_chosen(localized.text_of(shown.check, shown.own, visit.language))
    if chosen == OTHER:
        if not other:
            raise ValueError(localized.what_to_type(validators.interval, visit.language))
        return other
    if other and other != before[1]:
        if chosen != before[0]:
            raise ValueError(visit.said(words.msgid("Choose one of the list, or type another: not both.")))
        return other
    return chosen


def typed_setting(visit: DeskVisit, shown: FormSetting) -> tuple[bool, Any]:
    """Return whether a setting was changed in a form, and its new value as TOML has it; None: it was emptied.

    Raises ValueError, whose text says what to type.
    """
    if not visit.form.has(shown.name):
        return False, None
    check = shown.check
    is_ticks = hasattr(getattr(check, "element", None), "words")
    typed = "\n".join(filter(None, visit.form.all(shown.name))) if is_ticks else visit.form.one(shown.name)
    if shown.key == "interval":
        typed = typed_interval(visit, shown)
    current = localized.text_of(check, shown.own, visit.language)
    if typed == current.strip():
        return False, None
    if not typed and not is_ticks:
        return shown.own is not None, None
    if shown.words and typed not in dict(shown.words):
        raise ValueError(localized.what_to_type(validators.boolean, visit.language))
    value = localized.value_of(check, typed, visit.language)
    with suppress(ValueError):
        held = shown.in_force if shown.own is None and (is_ticks or not shown.has_above) else shown.own
        if held is not None and check(value) == check(settings_files.plain(held)):
            return False, None
    return True, value
