"""The results of queries: applications, graphs, records, traces, values, the lag.

Plain frozen data, and the one statement of its shape: fields, types and descriptions. The JSON of the API,
its OpenAPI document and the types of the page are made from these classes. Commands print the same with
`--json`.
Knows nothing of HTTP, of stores or of how a trace is found.
"""

from lineage_service.lineage.applications import (
    ActionState,
    Application,
    ApplicationError,
    Applications,
    ApplicationState,
    NodeError,
)
from lineage_service.lineage.comparisons import ChangedInput, ChangedRow, ComparedRow, ComparedRun, Comparison
from lineage_service.lineage.datasets import (
    DatasetGraph,
    DatasetGraphEdge,
    DatasetGraphNode,
    DatasetPage,
    Datasets,
    DatasetSummary,
    DatasetUse,
    DatasetUseState,
    DatasetWrite,
)
from lineage_service.lineage.failures import FailedRecord, Failure, Failures
from lineage_service.lineage.graphs import Edge, Graph, Node
from lineage_service.lineage.lags import ApplicationLag, GroupLag, Lag, PartitionLag
from lineage_service.lineage.missing_rows import (
    AskedInput,
    Duplicate,
    MissedOutput,
    Missing,
    MissingRow,
    ReachedRow,
    RowEnd,
    RowOfInput,
)
from lineage_service.lineage.places import Column, Dataset, Symlink
from lineage_service.lineage.records import Choice, Choices, Record, RecordPage, Remark, SourceRow
from lineage_service.lineage.results import Direction, Result, doc
from lineage_service.lineage.row_sets import AskedRecord, RowSet, RowSetFile, RowSetSource, RowSetSplit
from lineage_service.lineage.suspects import (
    Contrast,
    SharedProperty,
    Suspect,
    SuspectFeature,
    SuspectRecord,
    Suspects,
    SuspectsMethod,
)
from lineage_service.lineage.traces import (
    Flow,
    Materialized,
    Trace,
    TracedNode,
    TraceStart,
    Values,
    ValueStep,
)

__all__ = [
    "ActionState",
    "Application",
    "ApplicationError",
    "ApplicationLag",
    "ApplicationState",
    "Applications",
    "AskedInput",
    "AskedRecord",
    "ChangedInput",
    "ChangedRow",
    "Choice",
    "Choices",
    "Column",
    "ComparedRow",
    "ComparedRun",
    "Comparison",
    "Contrast",
    "Dataset",
    "DatasetGraph",
    "DatasetGraphEdge",
    "DatasetGraphNode",
    "DatasetPage",
    "DatasetSummary",
    "DatasetUse",
    "DatasetUseState",
    "DatasetWrite",
    "Datasets",
    "Direction",
    "Duplicate",
    "Edge",
    "FailedRecord",
    "Failure",
    "Failures",
    "Flow",
    "Graph",
    "GroupLag",
    "Lag",
    "Materialized",
    "MissedOutput",
    "Missing",
    "MissingRow",
    "Node",
    "NodeError",
    "PartitionLag",
    "ReachedRow",
    "Record",
    "RecordPage",
    "Remark",
    "Result",
    "RowEnd",
    "RowOfInput",
    "RowSet",
    "RowSetFile",
    "RowSetSource",
    "RowSetSplit",
    "SharedProperty",
    "SourceRow",
    "Suspect",
    "SuspectFeature",
    "SuspectRecord",
    "Suspects",
    "SuspectsMethod",
    "Symlink",
    "Trace",
    "TraceStart",
    "TracedNode",
    "ValueStep",
    "Values",
    "doc",
]
