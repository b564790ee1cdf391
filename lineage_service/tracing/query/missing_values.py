"""What the values of traced records say, and why some of them have none: what to do about it, for people.

A value that is not there was not captured, not chosen, not in the sample, or has not arrived; one that is
there may be cut or withheld. What redaction made of a value looks like any other value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lineage_service.lineage import TracedNode, ValueStep
from lineage_service.tracing.columns.application import AnySnapshot, OpenedApplication
from lineage_service.tracing.model.elements import TopologyNode
from spark_agent import contract

__all__ = ["how_to_see", "value_steps"]

_NOT_CAPTURED = (
    "values of intermediate records were not captured; run the job with --conf spark.lineage.detailed=true"
)
#: Records pass through these as they are, and no Python worker sees them.
_UNSEEN = frozenset((contract.STATIC, contract.ZIP, contract.PRODUCT))
_ROW_TYPE = "text"  # of a row of a file
_MOST_NAMES = 5


def value_steps(opened: OpenedApplication[AnySnapshot], nodes: Iterable[TracedNode]) -> Iterator[ValueStep]:
    """The value of each listed record that has one, else the row of the file that it is."""
    for node in nodes:
        for record in node.records:
            text, type_ = record.value, record.value_type
            if text is None and record.source is not None:
                text, type_ = record.source.text, _ROW_TYPE
            if text is not None:
                yield ValueStep(
                    node_id=node.node_id,
                    application_id=node.application_id,
                    application_name=node.application_name,
                    name=node.name,
                    record_id=record.record_id,
                    type=type_ or _ROW_TYPE,
                    value=text,
                    cut=record.value is not None and _is_cut(opened, text),
                )


def how_to_see(opened: OpenedApplication[AnySnapshot], nodes: Sequence[TracedNode]) -> str:
    """What to do to see what the listed records lack of values; empty where they lack nothing."""
    nodes_by_number = opened.graph.topology.nodes
    operators = [
        (nodes_by_number[int(traced.node_id.rpartition("#")[2])], traced)
        for traced in nodes
        if traced.kind == "operator"
    ]
    lacking = [node for node, traced in operators if any(record.value is None for record in traced.records)]
    valued_records = [
        record for _, traced in operators for record in traced.records if record.value is not None
    ]
    if lacking and not opened.is_detailed:
        return _NOT_CAPTURED
    valued = opened.graph.blocks.valued
    said = [
        *_unchosen([node for node in lacking if node.number not in valued]),
        *_absent(opened, [node for node in lacking if node.number in valued]),
    ]
    if any(record.value_type == contract.WITHHELD[0] for record in valued_records):
        said.append(
            "values of the type `withheld` did not leave, since the function of spark.lineage.redact failed: "
            "Spark's log says how"
        )
    if any(_is_cut(opened, record.value or "") for record in valued_records):
        said.append(
            "values that end with … were cut: run the job with a larger spark.lineage.values.max.characters"
        )
    return "; ".join(said)


def _unchosen(nodes: Sequence[TopologyNode]) -> Iterator[str]:
    if seen := [node for node in nodes if node.relation not in _UNSEEN]:
        yield (
            f"no values were captured of {_names(seen)}: spark.lineage.values.nodes or "
            "spark.lineage.values.call.sites chose others, or its records never came to a Python worker"
        )
    if unseen := [node for node in nodes if node.relation in _UNSEEN]:
        yield f"the records of {_names(unseen)} are those of the operations before, as they are"


def _absent(opened: OpenedApplication[AnySnapshot], nodes: Sequence[TopologyNode]) -> Iterator[str]:
    if not nodes:
        return
    if opened.values_sample < 1:
        yield (
            f"some records of {_names(nodes)} are not in the sample: run the job with "
            f"spark.lineage.values.sample=1, not {opened.values_sample:g}"
        )
    elif not opened.application.complete:
        yield f"some values of {_names(nodes)} have not arrived: {opened.application.missing}"
    else:
        yield f"some records of {_names(nodes)} have no value, though values were captured there"


def _names(nodes: Sequence[TopologyNode]) -> str:
    named = [f"{node.name} ({node.number})" for node in nodes[:_MOST_NAMES]]
    return ", ".join(named) + (f" and {len(nodes) - _MOST_NAMES} more" if len(nodes) > _MOST_NAMES else "")


def _is_cut(opened: OpenedApplication[AnySnapshot], text: str) -> bool:
    """A value may end so by itself; where none was cut, all that do end so by themselves."""
    return text.endswith("…") and opened.application.counters.get("cut", 0) > 0
