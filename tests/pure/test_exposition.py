"""OpenMetrics and Prometheus' text: read by another program's parsers, whatever names and figures there are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import openmetrics
from prometheus_client import parser as prometheus
from prometheus_client.openmetrics import parser as open_metrics  # noqa: F401 # loads it

from webarcfs.web.exposition import MetricFamily, MetricForm, MetricKind, form_for, page

pytestmark = pytest.mark.pure

FIGURE = MetricFamily("webarc_figure", "A figure of a \\ test: 100 %, äöü.".replace("\\", "/"))
STATES = MetricFamily("webarc_state", "A state.", MetricKind.STATE_SET)
BUILD = MetricFamily("webarc_build", "A version.", MetricKind.INFO)
#: Texts as JSON, URLs and names of files have them; the parser ends a line at \r, as no scraper does.
TEXTS = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\r"), max_size=40)


@given(st.dictionaries(TEXTS, st.floats(allow_nan=False), max_size=8))
def test_labels_and_figures_come_back(figures: dict[str, float]) -> None:
    lines = "".join(FIGURE.sample(value, {"publication": name}) for name, value in figures.items())
    for form, read in (
        (MetricForm.OPEN_METRICS, openmetrics.parser.text_string_to_metric_families),
        (MetricForm.PROMETHEUS, prometheus.text_string_to_metric_families),
    ):
        families = list(read(page([(FIGURE, lines)], form).decode()))
        samples = {sample.labels["publication"]: sample.value for family in families for sample in family.samples}
        assert samples == figures
        assert len(families) == bool(figures)


def test_a_state_is_one_of_its_set_and_a_version_is_information() -> None:
    states = STATES.states("failed", ("complete", "failed"), {"publication": "town"})
    text = page([(STATES, states), (BUILD, BUILD.sample(1, {"version": "1"})), (FIGURE, "")], MetricForm.OPEN_METRICS)
    state, build = openmetrics.parser.text_string_to_metric_families(text.decode())
    assert (state.type, build.type) == ("stateset", "info")
    assert {sample.labels["webarc_state"]: sample.value for sample in state.samples} == {"complete": 0, "failed": 1}
    assert text.endswith(b"# EOF\n")


def test_figures_are_written_as_both_forms_know_them() -> None:
    values = [0, 1793491800, 0.5, 1e300, math.inf, -math.inf]
    text = "".join(FIGURE.sample(value, {}) for value in values)
    assert [line.split()[1] for line in text.splitlines()][:3] == ["0", "1793491800", "0.5"]
    assert [float(line.split()[1]) for line in text.splitlines()] == values
    assert FIGURE.sample(math.nan, {}) == "webarc_figure NaN\n"


def test_what_is_no_unicode_is_replaced_in_a_label() -> None:
    assert page([(FIGURE, FIGURE.sample(1, {"name": "a\udcffb"}))], MetricForm.PROMETHEUS).decode().count("a?b") == 1


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", MetricForm.PROMETHEUS),
        ("*/*", MetricForm.PROMETHEUS),
        ("text/html,application/xhtml+xml,*/*;q=0.8", MetricForm.PROMETHEUS),
        ("application/openmetrics-text", MetricForm.OPEN_METRICS),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", MetricForm.PROMETHEUS),
        (
            "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            MetricForm.OPEN_METRICS,
        ),
        ("application/openmetrics-text;q=0.2,text/plain;q=0.9", MetricForm.PROMETHEUS),
        ("application/openmetrics-text;q=0", MetricForm.PROMETHEUS),
        ("application/openmetrics-text;q=nan", MetricForm.PROMETHEUS),
        ("application/openmetrics-text;q=x", MetricForm.PROMETHEUS),
    ],
)
def test_a_client_gets_the_form_that_it_prefers(accept: str, form: MetricForm) -> None:
    assert form_for(accept) is form


@given(st.text(max_size=200))
def test_any_accept_has_a_form(accept: str) -> None:
    assert form_for(accept) in MetricForm
