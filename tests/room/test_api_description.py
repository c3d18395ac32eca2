"""openapi.yaml describes the API as it is: its paths, methods and parameters, and what it answers to any request."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from agent.gateway.gateway_app import ADDING, MIRRORING
from agent.indexing import fulltext
from agent.indexing.recovery import recover
from tests.support import archives
from tests.support.rooms import Page, Served, published, served
from webarcfs.api.problems import STATUS
from webarcfs.api.routes import PREFIX, ROUTES
from webarcfs.archive.model.metadata import CET, CommitTag

pytestmark = pytest.mark.store

DOMAIN = "www.example.org"
TAG = CommitTag(datetime(2021, 3, 1, 12, tzinfo=CET), DOMAIN)
#: What the archive has, by the parameter that names it: else no case would come near anything.
REAL = {
    "domain": [DOMAIN],
    "tag": [str(TAG)],
    "path": ["a.html", "index.html"],
    "name": ["data.html", "data.xml", "headers.http", "p", "words"],
    "id": ["20210301T120000-p"],
    "since": [str(TAG)],
    "at": [str(TAG), "2021"],
    "after": [f"/{DOMAIN}/a.html", "a.html/data.xml", "2020", "2021-03-01"],
    "where": ["mimeType = 'text/html'", "title LIKE '%a%'", "crawlTime > 5 OR"],
    "order_by": ["url DESC", "1", "nothing"],
    "words": ["home", "p*", '"a b', "title:home OR (", "*"],
}
CASES = 40


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    archive = archives.make_archive(tmp_path_factory.mktemp("described"))
    pages: dict[str, Page | None] = {
        f"http://{DOMAIN}/": Page(b"<p>home <a href='/a.html'>a</a>"),
        f"http://{DOMAIN}/a.html": Page(b"<p>a"),
    }
    published(archive, DOMAIN, pages, TAG.crawl_time)
    recover(archive)
    fulltext.bring_in_step(archive)
    with served(archive) as room:
        yield room


@pytest.fixture(scope="module")
def description(room: Served) -> dict[str, Any]:
    answer = room.get(f"{PREFIX}/openapi.yaml")
    assert answer.headers["content-type"] == "application/yaml"
    description: dict[str, Any] = yaml.safe_load(answer.body)
    return description


def _parameters(description: dict[str, Any], operation: dict[str, Any], place: str) -> set[str]:
    parameters = operation.get("parameters", [])
    resolved = [
        description["components"]["parameters"][each["$ref"].rpartition("/")[2]] if "$ref" in each else each
        for each in parameters
    ]
    return {each["name"] for each in resolved if each["in"] == place}


def test_its_paths_methods_and_parameters_are_those_of_the_table(description: dict[str, Any]) -> None:
    described = {
        (path, method.upper()): _parameters(description, operation, "query")
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    }
    table = {
        (route.template, method): set(route.parameters)
        for route in ROUTES
        for method in route.methods or ()
        if method != "HEAD"  # every GET has one
    }
    table |= {(row.path, row.method): {"name"} for row in ADDING} | {(row.template, "GET"): set() for row in MIRRORING}
    assert described == table
    for path, methods in description["paths"].items():
        names = {part.partition("}")[0] for part in path.split("{")[1:]}
        for operation in methods.values():
            assert _parameters(description, operation, "path") == names


def test_each_operation_says_what_it_is(description: dict[str, Any]) -> None:
    operations = [operation for methods in description["paths"].values() for operation in methods.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    assert all(operation["summary"] and operation["tags"] for operation in operations)


def _cases(description: dict[str, Any]) -> dict[str, Any]:
    schema = schemathesis.openapi.from_dict(description)
    operations = [result.ok() for result in schema.get_all_operations()]
    return {operation.label: operation for operation in operations}


def _strategy(operation: Any) -> st.SearchStrategy[Any]:
    """Requests that fit the description, and where there is something that may not fit, such as do not."""
    modes = [
        GenerationMode.POSITIVE,
        *([GenerationMode.NEGATIVE] if operation.definition.raw.get("parameters") else []),
    ]
    return st.one_of([operation.as_strategy(generation_mode=mode) for mode in modes])


def _come_near(case: Any, data: st.DataObject) -> None:
    """Let most requests name what there is, and few have all the parameters that they may have."""
    for values in (case.path_parameters or {}, case.query or {}):
        for name in list(values):
            if not data.draw(st.integers(0, 3)):
                continue
            if name in REAL:
                values[name] = data.draw(st.sampled_from(REAL[name]))
            else:
                del values[name]
    if case.operation.path == "/search" and data.draw(st.booleans()):
        case.query = {"words": "home", **(case.query or {})}


@pytest.mark.parametrize("route", [route for route in ROUTES if "GET" in (route.methods or ())], ids=str)
def test_any_request_is_answered_as_it_is_described(room: Served, description: dict[str, Any], route: Any) -> None:
    """No request gets a status, type or form that the description does not have; 5xx only where the table has it."""
    operation = _cases(description)[f"GET {route.template}"]
    may_fail = {int(status) for status in STATUS.values() if status >= 500}

    @settings(
        max_examples=CASES, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=_strategy(operation), data=st.data())
    def ask(case: Any, data: st.DataObject) -> None:
        _come_near(case, data)
        response = case.call(base_url=f"{room.origin}{PREFIX}")
        if response.status_code in may_fail:
            assert response.headers["Retry-After"]
        else:
            # What a condition, a search or a commitTag is, no schema can say: 400 is an answer to any request.
            case.validate_response(response, excluded_checks=[positive_data_acceptance])

    ask()


def test_five_hundred_requests_are_asked() -> None:
    """Of the routes with parameters: others have one request."""
    assert CASES * len([route for route in ROUTES if route.parameters or "{" in route.template]) >= 500
