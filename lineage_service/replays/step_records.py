"""Makes the steps of a replay from a trace of it with values. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from lineage_service.lineage import Failure, Record, ReplayStep, StepRecord, Trace, TracedNode

__all__ = ["MOST_LISTED", "error_step", "steps_of"]

#: Records of each operation.
MOST_LISTED = 100


def steps_of(trace: Trace, call_sites: Mapping[str, str]) -> tuple[ReplayStep, ...]:
    """From the inputs on. `call_sites` are by node id."""
    nodes = trace.nodes if trace.direction == "forward" else tuple(reversed(trace.nodes))
    listed = {f"{node.node_id}#{record.record_id}" for node in nodes for record in node.records[:MOST_LISTED]}
    made_of: dict[str, list[str]] = defaultdict(list)
    for flow in trace.flows:
        if flow.hash_in in listed:
            made_of[flow.hash_out].append(flow.hash_in)
    return tuple(_step(node, call_sites.get(node.node_id, ""), made_of) for node in nodes)


def _step(node: TracedNode, call_site: str, made_of: Mapping[str, Sequence[str]]) -> ReplayStep:
    return ReplayStep(
        node_id=node.node_id,
        name=node.name,
        kind=node.kind,
        call_site=call_site,
        exact=node.exact,
        total=node.total,
        records=tuple(
            _record(record, made_of.get(f"{node.node_id}#{record.record_id}", ()))
            for record in node.records[:MOST_LISTED]
        ),
    )


def _record(record: Record, made_of: Sequence[str]) -> StepRecord:
    value, value_type, row = record.value, record.value_type, record.source
    if row is not None and row.text is not None:
        value, value_type = row.text, "text"
    return StepRecord(
        record_id=record.record_id,
        key=record.key,
        value=value,
        value_type=value_type,
        path=None if row is None else row.path,
        line=None if row is None else row.line,
        made_of=tuple(made_of),
    )


def error_step(application_id: str, failure: Failure) -> ReplayStep:
    """The operation that failed: its record went in, and an error came out."""
    record = failure.record
    said = f"{failure.error}: {failure.message}" if failure.message else failure.error
    error = StepRecord(
        record_id=None,
        key=None,
        value=said,
        value_type="error",
        path=None,
        line=None,
        made_of=() if record is None else (f"{record.node_id}#{record.record_id}",),
    )
    return ReplayStep(
        node_id=failure.node_id or application_id,
        name=failure.name or "an operation",
        kind="operator",
        call_site=failure.call_site or "",
        exact=failure.exact,
        total=1,
        records=(error,),
    )
