"""The parameters of each endpoint, their limits, and the queries that they become.

Every text has a maximum length and every number a range, so that nothing unbounded reaches a store. Names
contain no control characters. Unknown parameters are refused: a misspelt filter must not be ignored.
"""

from lineage_api.parameters.absences import AbsenceParameters
from lineage_api.parameters.applications import ApplicationParameters
from lineage_api.parameters.comparisons import CompareParameters, CompareWithParameters
from lineage_api.parameters.datasets import DatasetParameters, DatasetsParameters
from lineage_api.parameters.explanations import ExplanationParameters
from lineage_api.parameters.fields import MAX_LIMIT, ApplicationId, NodeName
from lineage_api.parameters.jobs import DecisionParameters, JobName
from lineage_api.parameters.missing_rows import DatasetMissingParameters, MissingParameters
from lineage_api.parameters.records import RecordParameters, ValueParameters
from lineage_api.parameters.row_histories import RowHistoryParameters
from lineage_api.parameters.row_sets import RowSetParameters
from lineage_api.parameters.suspects import ContrastParameters, SlowParameters, SuspectsParameters
from lineage_api.parameters.traces import DatasetTraceParameters, TraceParameters

__all__ = [
    "MAX_LIMIT",
    "AbsenceParameters",
    "ApplicationId",
    "ApplicationParameters",
    "CompareParameters",
    "CompareWithParameters",
    "ContrastParameters",
    "DatasetMissingParameters",
    "DatasetParameters",
    "DatasetTraceParameters",
    "DatasetsParameters",
    "DecisionParameters",
    "ExplanationParameters",
    "JobName",
    "MissingParameters",
    "NodeName",
    "RecordParameters",
    "RowHistoryParameters",
    "RowSetParameters",
    "SlowParameters",
    "SuspectsParameters",
    "TraceParameters",
    "ValueParameters",
]
