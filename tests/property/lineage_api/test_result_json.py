"""A result's JSON has its fields in their order, null where they are None, whatever they hold."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lineage_service import lineage
from lineage_service.result_json import json_bytes

#: What UTF-8 cannot hold never comes here.
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_numbers = st.integers(-(1 << 62), (1 << 63) - 1)
_flags = st.booleans()


def _several(some: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(some, max_size=3).map(tuple)


_rows = st.builds(
    lineage.SourceRow,
    path=_texts,
    row=_numbers,
    line=_numbers,
    text=st.none() | _texts,
    warning=st.none() | _texts,
    columns=st.none() | st.dictionaries(_texts, st.none() | _flags | _numbers | _texts | st.lists(_texts)),
    columns_cut=st.none() | _flags,
)
_records = st.builds(
    lineage.Record,
    record_id=_texts,
    partition=_numbers,
    offset=_numbers,
    key=st.none() | _texts,
    value=st.none() | _texts,
    value_type=st.none() | _texts,
    source=st.none() | _rows,
)
_nodes = st.builds(
    lineage.TracedNode,
    node_id=_texts,
    name=_texts,
    kind=_texts,
    exact=_flags,
    total=_numbers,
    records=_several(_records),
)
_starts = st.builds(
    lineage.TraceStart,
    node_id=_texts,
    application_id=_texts,
    application_name=_texts,
    name=_texts,
    kind=_texts,
    total=_numbers,
    records=_several(_records),
)
_flows = st.builds(lineage.Flow, hash_in=_texts, hash_out=_texts, node_id=_texts)
_traces = st.builds(
    lineage.Trace,
    direction=st.sampled_from(("backward", "forward")),
    start=_several(_records),
    start_node=_texts,
    starts=_several(_starts),
    complete=_flags,
    exact=_flags,
    truncated=_flags,
    nodes=_several(_nodes),
    flows=_several(_flows),
    next=st.none() | _texts,
    how=_texts,
)
_pages = st.builds(
    lineage.RecordPage,
    node_id=_texts,
    total=st.none() | _numbers,
    records=_several(_records),
    next=st.none() | _texts,
    warnings=_several(_texts),
)
_datasets = st.builds(
    lineage.Dataset,
    namespace=_texts,
    name=_texts,
    format=_texts,
    partitions=_several(_texts),
    symlinks=_several(st.builds(lineage.Symlink, namespace=_texts, name=_texts)),
)
_columns = st.recursive(
    st.builds(lineage.Column, name=_texts, type=_texts, nullable=st.none() | _flags),
    lambda columns: st.builds(lineage.Column, name=_texts, type=_texts, fields=_several(columns)),
    max_leaves=5,
)
_graphs = st.builds(
    lineage.Graph,
    application_id=_texts,
    nodes=_several(
        st.builds(
            lineage.Node,
            node_id=_texts,
            node=_numbers,
            name=_texts,
            description=_texts,
            kind=st.sampled_from(("source", "operator", "sink")),
            call_site=_texts,
            exact=_flags,
            reason=_texts,
            dataset=st.none() | _datasets,
            schema=_several(_columns),
            schema_note=_texts,
            records=st.none() | _numbers,
            has_values=_flags,
        )
    ),
    edges=_several(
        st.builds(lineage.Edge, source=_texts, target=_texts, flows=st.none() | _numbers, shuffle=_flags)
    ),
)


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if not isinstance(value, lineage.Result):
        return value
    assert dataclasses.is_dataclass(value)
    fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    always = type(value).required_fields()
    return {name: item for name, item in fields.items() if name in always or item is not None}


@given(result=_traces | _pages | _graphs)
def test_json_has_the_fields_of_a_result(result: lineage.Result) -> None:
    written = json.dumps(_plain(result), ensure_ascii=False, separators=(",", ":"))
    assert json_bytes(result) == written.encode()
    assert json.loads(json_bytes(result, indent=2)) == json.loads(written)
