"""The wire contract between agents and consumers: topics, messages and the block format.

Promises that every message names its version, that a decoder needs nothing but this page and `columns`,
and that nothing here ever unpickles. Knows nothing of Spark, of Kafka clients or of stores. This is the one
module that both sides import; `docs/contract.md` says the same for people and other languages.

Two topics. `lineage-node` carries JSON events (applications, nodes, links, partitions, committed runs),
keyed by application. `lineage-flow` carries blocks: columns of positions, one stream per operator. A block
written as JSON is called a record.

Words: a *run* is one execution of one pipelined chain of operators over one split by one task
attempt. It is the unit that is accepted or not: its blocks count only once its commit manifest
(`run_committed`) has arrived. `run` is a random number below 2**53, so that JSON readers keep it whole.
"""

from __future__ import annotations

import itertools
import json
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_agent.columns import decode_integers, encode_integers
from spark_agent.events import ACTION_ABORTED as ACTION_ABORTED
from spark_agent.events import ACTION_COMPLETE as ACTION_COMPLETE
from spark_agent.events import ACTION_ENDED as ACTION_ENDED
from spark_agent.events import ACTION_FAILED as ACTION_FAILED
from spark_agent.events import ACTION_STATES as ACTION_STATES
from spark_agent.events import ALIVE as ALIVE
from spark_agent.events import APPLICATION_ENDED as APPLICATION_ENDED
from spark_agent.events import APPLICATION_STARTED as APPLICATION_STARTED
from spark_agent.events import APPLICATION_STATES as APPLICATION_STATES
from spark_agent.events import BATCH_COMMITTED as BATCH_COMMITTED
from spark_agent.events import COLUMNS as COLUMNS
from spark_agent.events import DRIVER as DRIVER
from spark_agent.events import EVENT_FIELDS as EVENT_FIELDS
from spark_agent.events import FAILED as FAILED
from spark_agent.events import GAP as GAP
from spark_agent.events import IGNORABLE as IGNORABLE
from spark_agent.events import LINK as LINK
from spark_agent.events import MANIFESTS as MANIFESTS
from spark_agent.events import NODE_REGISTERED as NODE_REGISTERED
from spark_agent.events import PARTITIONS as PARTITIONS
from spark_agent.events import PERSISTED as PERSISTED
from spark_agent.events import RUN_COMMITTED as RUN_COMMITTED
from spark_agent.events import RUN_FAILED as RUN_FAILED
from spark_agent.events import RUN_KEPT as RUN_KEPT
from spark_agent.events import SUCCEEDED as SUCCEEDED
from spark_agent.texts import MAX_DOCUMENT_DEPTH as MAX_DOCUMENT_DEPTH
from spark_agent.texts import MAX_TEXT_CHARACTERS as MAX_TEXT_CHARACTERS
from spark_agent.texts import MAX_VALUE_CHARACTERS as MAX_VALUE_CHARACTERS
from spark_agent.texts import PARSED as PARSED
from spark_agent.texts import TEXT_COLUMN_TYPES, decode_texts, encode_texts, rebuilt, typed_texts
from spark_agent.texts import WITHHELD as WITHHELD
from spark_agent.texts import Documents as Documents
from spark_agent.texts import Text as Text
from spark_agent.texts import cut_text as cut_text
from spark_agent.texts import may_be_parsed as may_be_parsed
from spark_agent.texts import typed_text as typed_text
from spark_agent.texts import whole_text as whole_text

MAJOR, MINOR = 1, 8
VERSION = f"{MAJOR}.{MINOR}"

NODE_TOPIC = "lineage-node"
FLOW_TOPIC = "lineage-flow"
DEAD_LETTER_TOPIC = "lineage-dead-letter"
NODE_PARTITIONS = 3
FLOW_PARTITIONS = 30

MAX_RUN = 1 << 53
#: No block is larger than this before the producer compresses it; brokers refuse 1 MiB by default.
MAX_BLOCK_BYTES = 900_000
#: No column is longer than this, so a decoder can bound its memory before it allocates.
MAX_COLUMN_VALUES = 1 << 17
MAX_HEADER_BYTES = 64_000
#: No reader takes a larger message: brokers refuse 1 MiB, but before it is unpacked.
MAX_MESSAGE_BYTES = 1 << 20
#: What the texts of one block have at most when they are written out, one for each output, as stores do.
MAX_BLOCK_CHARACTERS = 1 << 26
#: Events are kept, and who reads them later may have less room on its stack.
MAX_EVENT_DEPTH = 32

MAGIC = b"LMFB"
_PREAMBLE = struct.Struct("<4sBBI")

# -- events on lineage-node -------------------------------------------------------------------------

#: How the outputs of a node relate to its inputs. The first three need no flows.
IDENTITY = "identity"  # output k is input k
PARTITION = "partition"  # every input of its split; a bound unless the node is exact
DATASET = "dataset"  # bound: any output may come from any input record of any split
SOURCE = "source"  # no inputs: the records come from outside
STATIC = "static"  # a table from the driver (`partitions`): which parent splits make a split, in order
FLOWS = "flows"  # the flow store holds (output, input) positions
ZIP = "zip"  # output k of a split is made of record k of the same split of each parent
PRODUCT = "product"  # as `zip`; the parents' records are known from blocks of the run that reads the node
AGGREGATE = "aggregate"  # one record, made of every record that the jobs of this action read
CARRIED = "carried"  # no records of its own: rows pass it with their ids, or its steps stand for it
KEYED = "keyed"  # groups: the record of a key is made of the records of the parent with that key
RELATIONS = (IDENTITY, PARTITION, DATASET, SOURCE, STATIC, FLOWS, ZIP, PRODUCT, AGGREGATE, CARRIED, KEYED)

#: Kinds of nodes. A `step` is a part of a public operation (the shuffle inside a join, say).
KINDS = ("source", "operator", "step", "sink")


class ContractError(ValueError):
    """A message does not follow the contract; the text says which field or byte and why."""


class UnknownVersionError(ContractError):
    """The message was written by another major version of the contract."""


def encode_event(event_type: str, application_id: str, time_ms: int, fields: Mapping[str, object]) -> bytes:
    """One event for `lineage-node` as UTF-8 JSON; `time_ms` is Unix time in milliseconds."""
    body: dict[str, object] = {
        "version": VERSION,
        "type": event_type,
        "application_id": application_id,
        "time": time_ms,
    }
    if event_type in IGNORABLE:
        body["ignorable"] = True
    return json.dumps({**body, **fields}, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def decode_event(message: bytes) -> dict[str, Any]:
    """The event as a dictionary, its required fields checked. Raises ContractError.

    An event of a type that is not known comes as it is if it says that it may be ignored.
    """
    _check_size("event", message, MAX_MESSAGE_BYTES)
    try:
        event = json.loads(message.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ContractError(f"event is not JSON: {error}") from None
    if not isinstance(event, dict):
        raise ContractError("event is not a JSON object")
    _check_depth(event)
    _check_version(event.get("version"))
    for name, kind in (("type", str), ("application_id", str), ("time", int)):
        if not isinstance(event.get(name), kind) or isinstance(event[name], bool):
            raise ContractError(f"event has no {kind.__name__} field {name!r}")
    required = EVENT_FIELDS.get(event["type"])
    if required is None:
        if event.get("ignorable") is True and _EVENT_TYPE.fullmatch(event["type"]):
            return event
        raise ContractError(f"event type {in_short(event['type'])} is not known")
    for name, kinds in required.items():
        if name not in event or not isinstance(event[name], kinds):
            raise ContractError(f"{event['type']} event has no valid field {name!r}")
        if isinstance(event[name], bool) and bool not in kinds:
            raise ContractError(f"{event['type']} event has a boolean in field {name!r}")
    return event


def in_short(value: object) -> str:
    """A value of JSON for an error's text: one line, never long, and safe however deep the value is."""
    return type(value).__name__ if isinstance(value, (list, dict)) else f"{value!r:.80}"


def _check_size(what: str, message: bytes, limit: int) -> None:
    if len(message) > limit:
        raise ContractError(f"{what} of {len(message)} bytes is longer than {limit}")


def _check_depth(event: Mapping[str, Any]) -> None:
    level: list[Any] = [event]
    for _ in range(MAX_EVENT_DEPTH):
        within = itertools.chain.from_iterable(
            each.values() if isinstance(each, dict) else each for each in level
        )
        level = [each for each in within if isinstance(each, (dict, list))]
        if not level:
            return
    raise ContractError(f"event is nested more than {MAX_EVENT_DEPTH} deep")


#: What a type that is not known may be called: it becomes a cell of a table.
_EVENT_TYPE = re.compile("[a-z][a-z0-9_]{0,79}", re.ASCII)
_VERSION = re.compile("([0-9]{1,9})[.]([0-9]{1,9})")


def _check_version(version: object) -> None:
    found = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if found is None:
        raise ContractError(f"message has no version MAJOR.MINOR: {in_short(version)}")
    if int(found[1]) != MAJOR:
        raise UnknownVersionError(f"message has version {version}; this reader knows {MAJOR}.x")


def tells_what_is_kept(started: Mapping[str, Any]) -> bool:
    """Does the application of this `application_started` say which RDDs it keeps (since 1.7)?"""
    found = _VERSION.fullmatch(str(started.get("version")))
    return found is not None and int(found[2]) >= 7


# -- blocks on lineage-flow -------------------------------------------------------------------------

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

# What blocks say beside flows. Nothing of it leads a trace from one record to another.
WINNERS = "winners"  # out, in: of all inputs of output out[k], input in[k] alone decides it
DIGESTS = "digests"  # digest[, out]: output base_out+k, or out[k], has the digest digest[k]: 63 bits
GROUPS = "groups"  # count: group base_in+k gave the next count[k] outputs, from base_out on

#: Block relations by what their rows are: flows, texts, or nothing that an answer uses yet.
FLOW_BLOCKS = (POSITIONS, COUNTS, CODES, SPANS, GATHER, PAIRS, IDS)
TEXT_BLOCKS = (KEYS, VALUES)
OTHER_BLOCKS = (WINNERS, DIGESTS, GROUPS)

#: Block relations whose inputs may be, and one whose inputs are, ids of the header's node `source`.
BY_ID = (POSITIONS, PAIRS, IDS)
#: The id of a record of a source is its split and its position in one number; that of a group is its key.
ID_POSITION_BITS = 33

#: Block relation -> the columns that it must have.
BLOCK_COLUMNS: Mapping[str, tuple[str, ...]] = {
    POSITIONS: ("in",),
    COUNTS: ("count",),
    CODES: ("code",),
    SPANS: ("count", "in", "step"),
    GATHER: ("count", "in"),
    PAIRS: ("out", "in"),
    IDS: ("in",),
    KEYS: ("text",),
    VALUES: ("text",),
    WINNERS: ("out", "in"),
    DIGESTS: ("digest",),
    GROUPS: ("count",),
}
OPTIONAL_COLUMNS: Mapping[str, tuple[str, ...]] = {
    SPANS: ("run",),
    PAIRS: ("run",),
    IDS: ("count", "step"),
    KEYS: ("out", "code"),
    VALUES: ("out", "code"),
    DIGESTS: ("out",),
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
    _check_size("block", message, MAX_MESSAGE_BYTES)
    if len(message) < _PREAMBLE.size:
        raise ContractError(f"block of {len(message)} bytes is shorter than its preamble")
    magic, major, minor, head_bytes = _PREAMBLE.unpack_from(message)
    if magic != MAGIC:
        raise ContractError("message does not begin with the block mark LMFB")
    _check_version(f"{major}.{minor}")
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
    _check_size("record", message, MAX_BLOCK_BYTES)
    try:
        record = json.loads(message.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ContractError(f"record is not JSON: {error}") from None
    _check_version(record.get("version"))
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
    numbers = {
        name: _natural(header, name, 1 << 63 if name.startswith("base") else MAX_RUN)
        for name in ("node", "run", "split", "seq", "base_in", "base_out")
    }
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
    return _natural(header, "source", MAX_RUN)


def _looked_up(texts: Sequence[Text], codes: Sequence[int]) -> list[Text]:
    try:
        found = [texts[code] for code in codes]
    except IndexError:
        raise ContractError(f"column 'code' names a text beyond the {len(texts)} there are") from None
    longest = max((len(kind) + len(text) for kind, text in texts), default=0)
    if len(codes) * longest > MAX_BLOCK_CHARACTERS < sum(len(kind) + len(text) for kind, text in found):
        raise ContractError(f"texts have over {MAX_BLOCK_CHARACTERS} characters for all outputs together")
    return found


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


# -- identities ------------------------------------------------------------------------------------

#: Becomes a folder's name and a part of node ids, URLs and Cypher parameters. A colon takes three characters
#: in the name of a folder, which has 255 at most: so 20 of them.
APPLICATION_ID = re.compile(r"(?!(?:[^:]*:){21})[A-Za-z0-9][A-Za-z0-9._:-]{0,199}", re.ASCII)


def node_id(application_id: str, node: int) -> str:
    """`applicationId#rddId`: what people see as the id of a node."""
    return f"{application_id}#{node}"


def record_id(kind: str, split: int, offset: int) -> str:
    """`read#P#ROW` at a source, `write#P#ROW` at a sink, `P#OFFSET` between them."""
    prefix = {"source": "read#", "sink": "write#"}.get(kind, "")
    return f"{prefix}{split}#{offset}"


def parse_record_id(text: str) -> tuple[str | None, int, int]:
    """(`source` | `sink` | None, partition, offset). Raises ContractError."""
    parts = text.split("#")
    kind = {"read": "source", "write": "sink"}.get(parts[0]) if len(parts) == 3 else None
    numbers = parts[1:] if kind else parts
    if len(numbers) != 2 or not all(n.isascii() and n.isdigit() and len(n) < 19 for n in numbers):
        raise ContractError(
            f"record id {text!r} is none of read#PARTITION#ROW, write#PARTITION#ROW, PARTITION#OFFSET"
        )
    return kind, int(numbers[0]), int(numbers[1])
