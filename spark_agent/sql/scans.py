"""What the leaves of plans read, and how rows of files are known.

A Parquet file tells the index of each row, so a filter may stay beside the scan and be pushed into it: ids
are made of what is left. Elsewhere a row is known by its order in the scan, so nothing may be left out before
rows are numbered, but whole partitions of the data.
"""

from __future__ import annotations

from typing import Any

from spark_agent import partitions
from spark_agent.sql.catalyst import Catalyst, Expression, Plan
from spark_agent.sql.plan_nodes import UncoveredError

#: Class of a file format -> what the dataset of the node says.
_FORMATS = {
    "ParquetFileFormat": "parquet",
    "TextFileFormat": "text",
    "CSVFileFormat": "csv",
    "JsonFileFormat": "json",
    "OrcFileFormat": "orc",
    "AvroFileFormat": "avro",
}


class FileScans:
    """`Scans` of a session. `kept_nodes` knows the nodes of cached and checkpointed DataFrames.

    `borders` knows those of RDDs that DataFrames were made of.
    """

    def __init__(self, catalyst: Catalyst, kept_nodes: Any, borders: Any) -> None:
        self._catalyst = catalyst
        self._kept_nodes = kept_nodes
        self._borders = borders

    def describe(self, leaf: Plan) -> tuple[str, dict[str, str] | None]:
        """Text and dataset of a scan."""
        relation = _file_relation(leaf)
        if relation is None:
            return "", None
        format = _format(relation)
        roots = [str(each.toString()) for each in self._catalyst.items(relation.location().rootPaths())]
        if not roots:
            return format, None
        described = ", ".join(partitions.local_path(each) for each in roots[:3])
        more = f" and {len(roots) - 3} more" if len(roots) > 3 else ""
        options = self._catalyst.options(relation.options())
        if format == "csv" and options.get("header", "false").lower() == "true":
            format = "csv+header"
        if format in ("csv", "csv+header", "json") and options.get("multiline", "false").lower() == "true":
            format = f"multiline {format}"
        return f"{described}{more}", partitions.dataset(roots[0], format)

    def with_row_index(self, leaf: Plan) -> tuple[Plan, Expression] | None:
        """The scan with the index of each row in its file; None where the format does not tell it."""
        relation = _file_relation(leaf)
        if relation is None or _format(relation) != "parquet":
            return None
        columns = self._catalyst.items(leaf.withMetadataColumns().output())
        for at, attribute in enumerate(columns):
            if attribute.name() == "_metadata":
                if all(each.name() != "_metadata" for each in self._catalyst.items(leaf.output())):
                    # Of what Spark knows of a row's file, all that is asked for is made for each row.
                    columns[at] = attribute = self._catalyst.with_fields(attribute, ["row_index"])
                names = list(attribute.dataType().fieldNames())
                if "row_index" not in names:
                    raise UncoveredError("a scan of which other parts of _metadata are asked for")
                return self._catalyst.relation(leaf, columns), self._catalyst.field(
                    attribute, names.index("row_index")
                )
        return None

    def is_interleaved(self, leaf: Plan) -> bool:
        """May a task read this scan and another one by turns? Then nobody knows whose file it is in."""
        relation = _file_relation(leaf)
        return relation is not None and bool(relation.bucketSpec().isDefined())

    def are_of_same_files(self, plan: Plan, other: Plan) -> bool:
        """Do two plans that Spark takes for equal read the same files? It looks at their folders only."""
        leaves = zip(
            self._catalyst.items(plan.collectLeaves()),
            self._catalyst.items(other.collectLeaves()),
            strict=True,
        )
        relations = [(_file_relation(one), _file_relation(two)) for one, two in leaves]
        return all(
            one.sizeInBytes() == two.sizeInBytes()
            and self._catalyst.are_equal(one.location().inputFiles(), two.location().inputFiles())
            for one, two in relations
            if one is not None and two is not None
        )

    def is_pruned_by(self, leaf: Plan, condition: Expression) -> bool:
        """May `condition` be looked at before rows are numbered?"""
        relation = _file_relation(leaf)
        if relation is None:
            return False
        if _format(relation) == "parquet":
            return True
        columns = {str(name) for name in relation.partitionSchema().fieldNames()}
        references = condition.references().iterator()
        while references.hasNext():
            if str(references.next().name()) not in columns:
                return False
        return True

    def kept(self, leaf: Plan) -> int | None:
        found: int | None = self._kept_nodes.of(leaf)
        return found

    def given(self, leaf: Plan) -> int | None:
        found: int | None = self._borders.given(leaf)
        return found


def _file_relation(leaf: Plan) -> Any:
    if str(leaf.getClass().getSimpleName()) != "LogicalRelation":
        return None
    relation = leaf.relation()
    return relation if str(relation.getClass().getSimpleName()) == "HadoopFsRelation" else None


def _format(relation: Any) -> str:
    name = str(relation.fileFormat().getClass().getSimpleName())
    return _FORMATS.get(name, name.removesuffix("FileFormat").lower())
