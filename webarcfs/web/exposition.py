"""Figures for monitoring systems: OpenMetrics 1.0 and Prometheus' text format 0.0.4. Pure.

A sample is the same line in both; the two differ in their comments. So lines that did not change need not be written
again for the next scrape, which a library that makes a page from values each time cannot do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

#: A label's text may have any characters but these; lone surrogates have no place in UTF-8.
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class MetricKind(StrEnum):
    """What a family of samples is, as OpenMetrics calls it."""

    GAUGE = "gauge"
    INFO = "info"
    STATE_SET = "stateset"


class MetricForm(StrEnum):
    """How a page is written."""

    OPEN_METRICS = "openmetrics"
    PROMETHEUS = "prometheus"

    @property
    def content_type(self) -> str:
        """The media type of a page."""
        if self is MetricForm.OPEN_METRICS:
            return "application/openmetrics-text; version=1.0.0; charset=utf-8"
        return "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """The name of a family of samples, without `_info`, and what it says. `explain` has no quotes or line ends."""

    name: str
    explain: str
    kind: MetricKind = MetricKind.GAUGE

    @property
    def sample_name(self) -> str:
        """The name of its samples."""
        return f"{self.name}_info" if self.kind is MetricKind.INFO else self.name

    def head(self, form: MetricForm) -> str:
        """Return the comments before its samples."""
        if form is MetricForm.OPEN_METRICS:
            return f"# TYPE {self.name} {self.kind}\n# HELP {self.name} {self.explain}\n"
        return f"# HELP {self.sample_name} {self.explain}\n# TYPE {self.sample_name} gauge\n"

    def sample(self, value: float, labels: Mapping[str, str]) -> str:
        """Return the line of a sample."""
        return f"{self.sample_name}{_braced(labels)} {_number(value)}\n"

    def states(self, state: str, states: Iterable[str], labels: Mapping[str, str]) -> str:
        """Return the lines of a set of states, of which one holds. Their label has the name of the family."""
        return "".join(self.sample(float(name == state), {**labels, self.name: name}) for name in states)


def page(families: Iterable[tuple[MetricFamily, str]], form: MetricForm) -> bytes:
    """Return a page of families and their samples; families without samples are left out."""
    parts = [f"{family.head(form)}{samples}" for family, samples in families if samples]
    if form is MetricForm.OPEN_METRICS:
        parts.append("# EOF\n")
    return "".join(parts).encode()


def escaped_label(text: str) -> str:
    """Return the text of a label; what is no Unicode (names of files may not be) is replaced."""
    return text.encode("utf-8", "replace").decode().translate(_ESCAPES)


def form_for(accept: str) -> MetricForm:
    """Return the form that a client prefers, by its `Accept`; Prometheus' own where it says nothing."""
    wishes = {MetricForm.OPEN_METRICS: 0.0, MetricForm.PROMETHEUS: 0.0}
    for wish in accept.split(",")[:50]:
        kind, *parameters = (part.strip().lower() for part in wish.split(";"))
        form = {
            "application/openmetrics-text": MetricForm.OPEN_METRICS,
            "text/plain": MetricForm.PROMETHEUS,
            "text/*": MetricForm.PROMETHEUS,
        }.get(kind)
        if form is not None:
            wishes[form] = max(wishes[form], _quality(parameters))
    is_open = wishes[MetricForm.OPEN_METRICS] > 0 and wishes[MetricForm.OPEN_METRICS] >= wishes[MetricForm.PROMETHEUS]
    return MetricForm.OPEN_METRICS if is_open else MetricForm.PROMETHEUS


def _quality(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        name, _, text = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(text)
            except ValueError:
                return 0.0
            return quality if 0 <= quality <= 1 else 0.0
    return 1.0


def _braced(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{escaped_label(text)}"' for name, text in labels.items())
    return f"{{{inside}}}" if inside else ""


def _number(value: float) -> str:
    if math.isfinite(value) and value == int(value):
        return str(int(value))
    return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN" if math.isnan(value) else repr(value))
