"""Whatever a sound question asks of a real store: an answer of its schema, or a problem that says why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lineage_api.app import create_app
from lineage_service.tracing.query.service import LineageQueries
from tests.support.api_client import Client
from tests.support.api_store import APP, HALF, build

FOLDER = "FOLDER"
numbers = st.one_of(st.integers(0, 5), st.integers(0, 2**31 - 1))
nodes = st.one_of(
    st.integers(0, 4).map(str),
    st.integers(0, 4).map(lambda node: f"{APP}#{node}"),
    numbers.map(str),
    st.just("x#1"),
)
records = st.one_of(
    st.builds(
        "{}{}#{}".format, st.sampled_from(["", "read#", "write#"]), st.integers(0, 1), st.integers(0, 5)
    ),
    st.builds("{}#{}#{}#{}".format, st.sampled_from([APP, "other"]), st.integers(0, 4), numbers, numbers),
)
texts = st.one_of(st.sampled_from(["North", "paid", "order in row 1", ""]), st.text(max_size=20))
paths = st.one_of(
    st.sampled_from([f"{FOLDER}/{name}" for name in ("orders.csv", "sums.csv", "gone.csv", "", "flows")]),
    st.sampled_from(["s3://bucket/key", "/", ".", "orders.csv"]),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20),
)
cursors = st.one_of(
    st.integers(0, 9).map(str), st.from_regex(r"[0-9]{1,20}:[0-9]{1,20}|[!-~]{1,8}", fullmatch=True)
)
starts = st.one_of(
    st.fixed_dictionaries({"record": records}, optional={"node": nodes}),
    st.fixed_dictionaries(
        {"node": nodes, "partition": numbers, "offset": st.one_of(numbers, st.just(2**53 - 1))}
    ),
    st.fixed_dictionaries({"node": nodes, "key": texts}),
    st.fixed_dictionaries({"path": paths, "row": st.one_of(numbers, st.just(2**53 - 1))}),
    st.fixed_dictionaries(
        {"where": st.sampled_from(["value like '%5'", "amount > 'x'"])},
        optional={"path": paths, "node": nodes},
    ),
)
of_one_place = st.one_of(
    st.fixed_dictionaries({"path": paths, "rows": st.lists(numbers, max_size=3)}, optional={"row": numbers}),
    st.fixed_dictionaries({"node": nodes, "partition": numbers, "offsets": st.lists(numbers, max_size=3)}),
    st.fixed_dictionaries({"node": nodes, "key": texts, "rows": st.lists(numbers, max_size=2)}),
)
several = st.one_of(
    st.lists(st.one_of(starts, of_one_place), min_size=1, max_size=3).map(
        lambda chosen: {"starts": json.dumps(chosen)}
    ),
    st.one_of(st.just("[]"), st.just("[{}]"), st.text(max_size=20)).map(lambda text: {"starts": text}),
)
pages = {"limit": st.sampled_from([1, 2, 10_000]), "cursor": cursors}
more = st.fixed_dictionaries(
    {"direction": st.sampled_from(["backward", "forward"])},
    optional={
        "to": nodes,
        "depth": st.integers(1, 10_000),
        "values": st.sampled_from(["true", "false"]),
        **pages,
    },
)
filters = st.fixed_dictionaries(
    {},
    optional={
        "text": texts,
        "where": st.just("value like '%5'"),
        "key": texts,
        "partition": numbers,
        **pages,
    },
)
wheres = st.one_of(
    st.sampled_from(
        [
            "value like '%North%'",
            "value is not null",
            "valeu = 1",
            "value = 'x' or not value > 'N'",
            "value in (1)",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
)
rows = st.one_of(
    st.fixed_dictionaries({"where": wheres}, optional={"all": st.sampled_from(["true", "false"])}),
    st.fixed_dictionaries({"row": numbers}),
    st.fixed_dictionaries({"key": texts}),
)
about_rows = st.fixed_dictionaries(
    {},
    optional={
        "direction": st.sampled_from(["backward", "forward"]),
        "app": st.sampled_from([APP, HALF, "last", "other"]),
        "at": numbers,
        "node": nodes,
        "limit": st.sampled_from([1, 2, 10_000]),
        "cursor": st.one_of(cursors, st.from_regex(r"[0-9]{1,3}:[0-9]{1,20}:[0-9]{1,3}", fullmatch=True)),
    },
)
applications = st.sampled_from([APP, APP, APP, HALF, "other"])


class Asked:
    def __init__(self, folder: Any) -> None:
        app = create_app(LineageQueries(build(folder), time_budget_s=60))
        self._client, self._folder, self._openapi = Client(app), str(folder), app.openapi()

    def check(self, operation: str, application: str, parameters: dict[str, Any], node: str = "") -> None:
        """The answer is one that OpenAPI tells of, and none that only a defect gives."""
        given = {name: str(value).replace(FOLDER, self._folder) for name, value in parameters.items()}
        path = operation.replace("{app}", application).replace("{node}", node.replace("#", "%23"))
        answer = self._client.get(path, params=given)
        assert answer.status_code in (200, 404, 422), (path, given, answer.text)
        content = self._openapi["paths"][operation]["get"]["responses"]["200"]["content"]
        schema = content["application/json"]["schema"]
        if answer.status_code != 200:
            schema = {"$ref": "#/components/schemas/Problem"}
        components = {"components": self._openapi["components"]}
        jsonschema.validate(answer.json(), {**schema, **components}, jsonschema.Draft202012Validator)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    return Asked(tmp_path_factory.mktemp("store"))


@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(application=applications, start=st.one_of(starts, several), others=more)
def test_a_trace_from_any_start_is_an_answer_or_a_problem(asked, application, start, others):
    asked.check("/api/applications/{app}/trace", application, {**others, **start})


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(application=applications, start=st.one_of(starts, several), limit=st.sampled_from([0, 1, 10_000]))
def test_a_row_set_of_any_starts_is_an_answer_or_a_problem(asked, application, start, limit):
    asked.check("/api/applications/{app}/rowset", application, {"limit": limit, **start})


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    application=applications,
    start=st.one_of(starts, several),
    others=st.fixed_dictionaries(
        {},
        optional={
            "limit": st.sampled_from([0, 1, 10_000]),
            "plain": st.sampled_from(["true", "false", "x"]),
            "cursor": st.one_of(cursors, st.from_regex(r"[0-9]{1,11}(:[0-9]{1,19}){2}", fullmatch=True)),
            "same": st.sampled_from(["true", "false"]),
            "how": st.sampled_from(["true", "false"]),
            "with": several.map(lambda chosen: chosen["starts"]),
            "compare": st.sampled_from([APP, HALF, "last", "other"]),
            "compare_starts": several.map(lambda chosen: chosen["starts"]),
        },
    ),
)
def test_an_explanation_of_any_starts_is_an_answer_or_a_problem(asked, application, start, others):
    asked.check("/api/applications/{app}/explanation", application, {**others, **start})


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(application=applications, node=nodes, key=texts, limit=st.sampled_from([0, 1, 10_000]))
def test_an_absent_key_is_an_answer_or_a_problem(asked, application, node, key, limit):
    about = {"node": node, "key": key, "limit": limit}
    asked.check("/api/applications/{app}/absence", application, about)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dataset=paths, start=rows, others=about_rows)
def test_a_trace_of_any_data_set_is_an_answer_or_a_problem(asked, dataset, start, others):
    asked.check("/api/trace", APP, {"dataset": dataset, **start, **others})


@settings(max_examples=150)
@given(application=applications, node=nodes, parameters=filters)
def test_a_page_of_any_node_is_an_answer_or_a_problem(asked, application, node, parameters):
    asked.check("/api/applications/{app}/nodes/{node}/records", application, parameters, node)


@settings(max_examples=100)
@given(application=applications, record=records, node=st.one_of(st.none(), nodes))
def test_values_of_any_record_are_an_answer_or_a_problem(asked, application, record, node):
    parameters = {"record": record} if node is None else {"record": record, "node": node}
    asked.check("/api/applications/{app}/values", application, parameters)
