"""Blocks on `lineage-flow`: columns of positions or texts, one stream for each operator of a task run.

Promises that a block is decoded on its own, in any order, that every count, width and bound is checked before
memory is taken, and that nothing here ever unpickles. A block written as JSON is called a record.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_agent.contract.columns import decode_integers, encode_integers
from spark_agent.contract.errors import ContractError, check_size, in_short
from spark_agent.contract.limits import (
    MAX_BLOCK_BYTES,
    MAX_BLOCK_CHARACTERS,
    MAX_COLUMN_VALUES,
    MAX_HEADER_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_NUMBER,
    MAX_POSITION,
    MAX_RUN,
)
from spark_agent.contract.texts import (
    TEXT_COLUMN_TYPES,
    Text,
    decode_texts,
    encode_texts,
    rebuilt,
    typed_texts,
)
from spark_agent.contract.version import MAJOR, MINOR, VERSION, check_version

MAGIC = b"LMFB"
_PREAMBLE = struct.Struct("<4sBBI")

# Block relations. `base_out` and `base_in` count what earlier blocks of the same stream covered, so that
# each block is decoded on its own, in any order.
POSITIONS = "positions"  # in: output base_out+k comes from input in[k]
COUNTS = "counts"  # count: input base_in+k made count[k] outputs, contiguous from base_out
CODES = "codes"  # code: input base_in+k went into output code[k]
SPANS = "spans"  # count, in, step[, run]: the next count[k] outputs come from in[k] + j*step[k]
GATHER = "gather"  # count, in: output base_out+k comes from the next count[k] entries of in
PAIRS = "pairs"  # out, in[, run]: output out[k] comes from input in[k] (of run[k])
KEYS = "keys"  # text[, out][, code]: output base_out+k, or out[k], has the key text[k], or text[code[k]]
VALUES = "values"  # text[, out][, code]: the same of values (spark.lineage.detailed)

#: in[, count, step]: output base_out+k comes from id base_in+in[k]; with `count`, the next count[k] outputs
#: come from ids base_in+in[k] + j*step[k].
IDS = "ids"

#: out, count: input base_in+k went into the count[k] outputs from out[k] on. Ranges may overlap.
RANGES = "ranges"

# What blocks say beside flows. Nothing of it leads a trace from one record to another.
WINNERS = "winners"  # out, in: of all inputs of output out[k], input in[k] alone decides it
DIGESTS = "digests"  # digest[, out]: output base_out+k, or out[k], has the digest digest[k]: 63 bits
OPERATIONS = "operations"  # operation[, out]: what was done with it, by its number in ROW_OPERATIONS
GROUPS = "groups"  # count: group base_in+k gave the next count[k] outputs, from base_out on

#: What a statement of a table does with a row that it writes or deletes.
ROW_OPERATIONS: Mapping[int, str] = {1: "insert", 2: "update", 3: "delete", 4: "copy"}

#: Block relations by what their rows are: flows, texts, a number for each of some outputs, or nothing that
#: an answer uses yet.
FLOW_BLOCKS = (POSITIONS, COUNTS, CODES, SPANS, GATHER, PAIRS, IDS, RANGES)
TEXT_BLOCKS = (KEYS, VALUES)
ANNOTATION_BLOCKS = (WINNERS, DIGESTS, OPERATIONS)
OTHER_BLOCKS = (GROUPS,)

#: Block relations whose inputs may be, and one whose inputs are, ids of the header's node `source`.
BY_ID = (POSITIONS, PAIRS, IDS)

#: Block relation -> the columns that it must have.
BLOCK_COLUMNS: Mapping[str, tuple[str, ...]] = {
    POSITIONS: ("in",),
    COUNTS: ("count",),
    CODES: ("code",),
    SPANS: ("count", "in", "step"),
    GATHER: ("count", "in"),
    PAIRS: ("out", "in"),
    IDS: ("in",),
    RANGES: ("out", "count"),
    KEYS: ("text",),
    VALUES: ("text",),
    WINNERS: ("out", "in"),
    DIGESTS: ("digest",),
    OPERATIONS: ("operation",),
    GROUPS: ("count",),
}
OPTIONAL_COLUMNS: Mapping[str, tuple[str, ...]] = {
    SPANS: ("run",),
    PAIRS: ("run",),
    IDS: ("count", "step"),
    KEYS: ("out", "code"),
    VALUES: ("out", "code"),
    DIGESTS: ("out",),
    OPERATIONS: ("out",),
}

_NUMBERS_BELOW = {
    "node": MAX_NUMBER + 1,
    "run": MAX_RUN,
    "split": MAX_NUMBER + 1,
    "seq": MAX_NUMBER + 1,
    "base_in": MAX_POSITION + 1,
    "base_out": MAX_POSITION + 1,
}


@dataclass(frozen=True)
class Block:
    """One message of `lineage-flow`, decoded.

    `columns` maps a name to a sequence of non-negative integers; `text` columns hold typed texts. With
    `source`, inputs are ids of that node.
    """

    application_id: str
    node: int
    run: int
    split: int
    seq: int
    relation: str
    base_in: int = 0
    base_out: int = 0
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    source: int | None = None


def encode_block(block: Block) -> bytes:
    """The block as bytes: preamble, JSON header, then each column as `columns` writes it."""
    described: list[dict[str, Any]] = []
    payloads: list[bytes] = []
    for name, values in block.columns.items():
        if name == "text":
            payload, how = encode_texts(values)
            described.append({"name": name, "count": len(values), "bytes": len(payload), **how})
        else:
            payload, width, is_delta = encode_integers(values)
            described.append(
                {"name": name, "count": len(values), "bytes": len(payload), "width": width, "delta": is_delta}
            )
        payloads.append(payload)
    header = {
        "application_id": block.application_id,
        "node": block.node,
        "run": block.run,
        "split": block.split,
        "seq": block.seq,
        "relation": block.relation,
        "base_in": block.base_in,
        "base_out": block.base_out,
        **({} if block.source is None else {"source": block.source}),
        "columns": described,
    }
    head = json.dumps(header, separators=(",", ":")).encode()
    return b"".join((_PREAMBLE.pack(MAGIC, MAJOR, MINOR, len(head)), head, *payloads))


def encode_record(block: Block) -> bytes:
    """The block as JSON: larger than `encode_block`, and no program needs more than JSON to write it."""
    record = {"version": VERSION, **vars(block), "columns": {k: list(v) for k, v in block.columns.items()}}
    if block.source is None:
        del record["source"]
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def decode_block(message: bytes) -> Block:
    """The block, every count, width and bound checked before memory is taken. Raises ContractError."""
    if message.startswith(b"{"):
        return _decode_record(message)
    check_size("block", message, MAX_MESSAGE_BYTES)
    if len(message) < _PREAMBLE.size:
        raise ContractError(f"block of {len(message)} bytes is shorter than its preamble")
    magic, major, minor, head_bytes = _PREAMBLE.unpack_from(message)
    if magic != MAGIC:
        raise ContractError("message does not begin with the block mark LMFB")
    check_version(f"{major}.{minor}")
    start = _PREAMBLE.size + head_bytes
    if head_bytes > MAX_HEADER_BYTES or start > len(message):
        raise ContractError(f"header of {head_bytes} bytes does not fit a block of {len(message)}")
    try:
        header = json.loads(message[_PREAMBLE.size : start])
    except (ValueError, RecursionError) as error:
        raise ContractError(f"block header is not JSON: {error}") from None
    if not isinstance(header, dict) or not isinstance(header.get("application_id"), str):
        raise ContractError("block header has no application_id")
    return _block(header, _decode_columns(header.get("columns"), message, start))


def _decode_record(message: bytes) -> Block:
    check_size("record", message, MAX_BLOCK_BYTES)
    try:
        record = json.loads(message.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ContractError(f"record is not JSON: {error}") from None
    check_version(record.get("version"))
    if not isinstance(record.get("application_id"), str):
        raise ContractError("record has no application_id")
    columns = record.get("columns")
    if not isinstance(columns, dict):
        raise ContractError("record has no object of columns")
    for name, values in columns.items():
        if not isinstance(values, list) or len(values) > MAX_COLUMN_VALUES:
            raise ContractError(f"column {name[:80]!r} is no list of at most {MAX_COLUMN_VALUES}")
        if name == "text":
            try:
                columns[name] = typed_texts(values)
            except ValueError as error:
                raise ContractError(str(error)) from None
        elif not all(type(value) is int and 0 <= value < 1 << 63 for value in values):
            raise ContractError(f"column {name[:80]!r} holds what is not a number from 0 to 2**63 - 1")
    return _block({"base_in": 0, "base_out": 0, **record}, columns)


def _block(header: Mapping[str, Any], columns: dict[str, Sequence[Any]]) -> Block:
    numbers = {name: _natural(header, name, below) for name, below in _NUMBERS_BELOW.items()}
    relation = header.get("relation")
    if not isinstance(relation, str) or relation not in BLOCK_COLUMNS:
        raise ContractError(f"block relation {in_short(relation)} is not known")
    required, optional = set(BLOCK_COLUMNS[relation]), set(OPTIONAL_COLUMNS.get(relation, ()))
    if not required <= set(columns) or not set(columns) <= required | optional:
        raise ContractError(f"{relation} block has columns {sorted(columns)}, needs {sorted(required)}")
    if "text" in columns:
        try:
            columns = {**columns, "text": rebuilt(columns["text"])}
        except ValueError as error:
            raise ContractError(str(error)) from None
    if "code" in columns and "text" in columns:
        codes = columns.pop("code")
        columns = {**columns, "text": _looked_up(columns["text"], codes)}
    _check_lengths(relation, columns)
    source = _source(header, relation, columns)
    return Block(header["application_id"], relation=relation, columns=columns, source=source, **numbers)


def _source(header: Mapping[str, Any], relation: str, columns: Mapping[str, Sequence[Any]]) -> int | None:
    if header.get("source") is None:
        if relation == IDS:
            raise ContractError("ids block has no source: the node whose ids its inputs are")
        return None
    if relation not in BY_ID or "run" in columns:
        raise ContractError(
            f"{relation} block with columns {sorted(columns)} has a source; only ids, positions and pairs "
            "without the column 'run' may name ids"
        )
    return _natural(header, "source", MAX_NUMBER + 1)


def _looked_up(texts: Sequence[Text], codes: Sequence[int]) -> list[Text]:
    try:
        written_out = [texts[code] for code in codes]
    except IndexError:
        raise ContractError(f"column 'code' names a text beyond the {len(texts)} there are") from None
    longest = max((len(kind) + len(text) for kind, text in texts), default=0)
    if len(codes) * longest > MAX_BLOCK_CHARACTERS < sum(len(kind) + len(text) for kind, text in written_out):
        raise ContractError(f"texts have over {MAX_BLOCK_CHARACTERS} characters for all outputs together")
    return written_out


def _natural(header: Mapping[str, Any], name: str, below: int) -> int:
    value = header.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < below:
        raise ContractError(
            f"block header field {name!r} is {in_short(value)}, not a number from 0 to {below - 1}"
        )
    return value


def _decode_columns(described: object, message: bytes, start: int) -> dict[str, Sequence[Any]]:
    if not isinstance(described, list) or len(described) > 8:
        raise ContractError("block header has no list of columns")
    columns: dict[str, Sequence[Any]] = {}
    for column in described:
        if not isinstance(column, dict) or not isinstance(column.get("name"), str):
            raise ContractError("block column has no name")
        name = column["name"]
        count = _natural(column, "count", MAX_COLUMN_VALUES + 1)
        size = _natural(column, "bytes", len(message) + 1)
        payload = message[start : start + size]
        if len(payload) != size:
            raise ContractError(f"column {name!r} is cut: {len(payload)} of {size} bytes")
        start += size
        if (column.get("type") in TEXT_COLUMN_TYPES) is not (name == "text"):
            raise ContractError(f"column {name!r} has type {in_short(column.get('type'))}")
        try:
            columns[name] = (
                decode_texts(payload, count, column)
                if name == "text"
                else decode_integers(payload, count, column.get("width"), column.get("delta") is True)
            )
        except ValueError as error:
            raise ContractError(str(error)) from None
    if start != len(message):
        raise ContractError(f"block has {len(message) - start} bytes after its last column")
    return columns


def _check_lengths(relation: str, columns: Mapping[str, Sequence[Any]]) -> None:
    if relation == GATHER:
        if sum(columns["count"]) != len(columns["in"]):
            raise ContractError("gather block's counts do not add up to its inputs")
    elif len({len(values) for values in columns.values()}) > 1:
        raise ContractError(f"{relation} block has columns of different lengths")
    if relation == IDS and ("count" in columns) is not ("step" in columns):
        raise ContractError("ids block has only one of the columns 'count' and 'step'")
