"""What parameters of several endpoints share: types with their limits, and a page of a result."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from lineage_service.queries import column_names

MAX_LIMIT = 10_000
_MAX_DEPTH = 10_000
_MAX_POSITION = (1 << 53) - 1  # what JSON readers keep whole
MAX_TEXT = 4096  # also the longest path of Linux
_MAX_PARTITION = (1 << 31) - 1
_MAX_ID = 512
_MAX_CURSOR = 16_384  # of a trace of some 2,000 nodes
_MAX_RECORD = _MAX_ID + MAX_TEXT  # NODE_ID#KEY
#: No control characters. A searched text may contain any, and a path all but NUL.
NAME = r"[^\x00-\x1f\x7f]+"
_NODE = rf"^({NAME}#)?[0-9]{{1,10}}$"
_RECORD = rf"^(({NAME}#)?[0-9]{{1,10}}#)?((read|write)#)?[0-9]{{1,18}}#[0-9]{{1,18}}$"
NODE_HELP = "a node id (`APPLICATION_ID#NUMBER`, `#` written as `%23`) or the node's number"

ApplicationId = Annotated[
    str,
    Path(
        examples=["sums-of-orders"],
        description="Spark's `applicationId`, or `last`: the newest application, unless one has that id.",
        min_length=1,
        max_length=_MAX_ID,
        pattern=f"^{NAME}$",
    ),
]
NodeName = Annotated[
    str,
    Path(
        examples=["sums-of-orders#3", "3"],
        description=f"{NODE_HELP[0].upper()}{NODE_HELP[1:]}.",
        max_length=_MAX_ID,
        pattern=_NODE,
    ),
]
NodeNumber = Annotated[str, Field(max_length=_MAX_ID, pattern=_NODE)]
RecordName = Annotated[str, Field(min_length=1, max_length=_MAX_RECORD, pattern=_RECORD)]
#: Of an application or a namespace, as a parameter of a query.
Name = Annotated[str, Field(min_length=1, max_length=_MAX_ID, pattern=f"^{NAME}$")]
PathName = Annotated[str, Field(min_length=1, max_length=MAX_TEXT, pattern=r"^[^\x00]+$")]
Text = Annotated[str, Field(max_length=MAX_TEXT)]
#: A condition, or names of columns.
Expression = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
Partition = Annotated[int, Field(ge=0, le=_MAX_PARTITION)]
Position = Annotated[int, Field(ge=0, le=_MAX_POSITION)]
#: Of a table: its number, which JSON readers need not keep whole, or a branch or tag.
Version = Annotated[str, Field(min_length=1, max_length=_MAX_ID, pattern=f"^{NAME}$")]
Depth = Annotated[int, Field(le=_MAX_DEPTH)]
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT)]


def cursor_field(
    example: str,
    *,
    max_length: int = _MAX_CURSOR,
    pattern: str = r"^[\x21-\x7e]+$",
    description: str = "`next` of the page before.",
) -> Any:
    return Field(
        default=None,
        min_length=1,
        max_length=max_length,
        pattern=pattern,
        description=description,
        examples=[example],
    )


def names(columns: str | None) -> tuple[str, ...] | None:
    """Raises InvalidQueryError."""
    return None if columns is None else column_names(columns)


class Parameters(BaseModel):
    """Of one endpoint. Unknown parameters are refused: a misspelt filter must not be ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PageParameters(Parameters):
    """Of a result that comes in pages. An example of its cursor is that of each endpoint."""

    limit: Limit = Field(default=100, description="At most this many a page.", examples=[100])
    cursor: str | None = cursor_field("0:1")


class RowParameters(Parameters):
    """Of a result that lists rows of files."""

    columns: Expression | None = Field(
        default=None,
        description="List rows of files by these columns, too: `a,b`, or `*` for every column.",
        examples=["*"],
    )


class TracePageParameters(PageParameters, RowParameters):
    """Of a trace, wherever it starts."""

    limit: Limit = Field(default=100, description="At most this many records of each node.", examples=[100])
    values: bool = Field(
        default=False, description="List captured values of intermediate records, too.", examples=[True]
    )
    remarks: bool = Field(
        default=False,
        description="Say which rows at the ends of the trace stand out, with its first page.",
        examples=[True],
    )
    across: bool = Field(
        default=True,
        description="Continue in applications that wrote the input files, or read the output files.",
        examples=[False],
    )
