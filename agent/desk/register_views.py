"""What the templates show of the registers: values. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.desk.views import FormField


@dataclass(frozen=True, slots=True)
class FormatRow:
    """An extension: how many files the newest captures have of it, and by which programs they are made and read."""

    extension: str
    documents: int
    made_by: str
    read_by: str
    is_at_risk: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistersPage:
    """`/registers`."""

    rows: tuple[FormatRow, ...]
    at_risk: tuple[FormatRow, ...]
    types: tuple[tuple[str, str, str], ...]
    profiles: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...]
    programs: tuple[tuple[str, str, str, str], ...]
    of_format: tuple[FormField, ...]
    of_type: tuple[FormField, ...]
    fault: str
