"""Messages that nobody can use, of every kind that we know, each with a part of the reason that is given."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Mapping
from typing import Any

from spark_agent import contract
from tests.support.lineage_messages import block, event

Poison = Mapping[str, tuple[bytes, str]]

DEEP = 100_000
#: Ids that would leave a folder, a log line, a URL or a Cypher statement.
IDS: Mapping[str, str] = {
    "empty": "",
    "control character": "app\x1b[2J",
    "line end": "app\nlineage: all is well",
    "nul": "app\0",
    "quote": "app'",
    "double quote": 'app"',
    "backtick": "app`",
    "cypher": "app'}) DETACH DELETE n //",
    "backtick cypher": "app` MATCH (n) DETACH DELETE n",
    "parent folder": "..",
    "path": "../../etc/passwd",
    "percent": "app%2F",
    "half a surrogate pair": "app\ud800",
    "digits of another script": "app\u0661",
    "too long": "a" * 201,
    "longer than a folder's name": "a" + 21 * ":",
    "endless": "a" * 800_000,
}


def raw_block(header: Any, payload: bytes = b"", version: tuple[int, int] = (1, 1)) -> bytes:
    """A block with any header: bytes, or what JSON can say."""
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<4sBBI", b"LMFB", *version, len(head)) + head + payload


def header(**fields: Any) -> dict[str, Any]:
    numbers = {"node": 1, "run": 1, "split": 0, "seq": 0, "base_in": 0, "base_out": 0}
    column = {"name": "in", "count": 1, "bytes": 1, "width": 1, "delta": False}
    return {"application_id": "app", "relation": "positions", "columns": [column], **numbers, **fields}


def column(**fields: Any) -> dict[str, Any]:
    return header(columns=[{**header()["columns"][0], **fields}])


def plain(**fields: Any) -> dict[str, Any]:
    """A header with a column of texts."""
    size = fields.get("count", 1) * fields.get("width", 1)
    described = {"name": "text", "count": 1, "bytes": size, "type": "plain", "types": ["str"], "width": 1}
    return header(relation="values", columns=[{**described, **fields}])


def record(**fields: Any) -> bytes:
    body = {
        **header(),
        "version": contract.VERSION,
        "relation": "pairs",
        "columns": {"out": [0], "in": [1]},
        **fields,
    }
    return json.dumps(body).encode()


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def _bomb() -> bytes:
    """Half a megabyte that says the same 300,000 characters 131,072 times: 39 GB."""
    columns = {"text": [("str", "x" * 300_000)], "code": [0] * contract.MAX_COLUMN_VALUES}
    return block(relation=contract.VALUES, columns=columns)


BLOCKS: Poison = {
    "nothing": (b"", "shorter than its preamble"),
    "text": (b"poison", "shorter than its preamble"),
    "random bytes": (random.Random(1).randbytes(1_000), "block mark"),
    "cut in the preamble": (block()[:7], "shorter than its preamble"),
    "cut in the header": (block()[:60], "does not fit"),
    "cut in a column": (block()[:-1], "is cut"),
    "bytes after the end": (block() + b"\0", "after its last column"),
    "oversized": (block() + bytes(2_000_000), "longer than 1048576"),
    "oversized record": (record(seq=0, note="x" * 900_000), "longer than 900000"),
    "another major version": (raw_block(header(), b"\1", (2, 0)), "version 2.0; this reader knows 1.x"),
    "a record's version that writes to the log": (record(version="2.0\nall is well"), "no version"),
    "a record's version that is deep": (
        record(version=0).replace(b'"version": 0', f'"version": {nested(500)}'.encode()),
        "no version",
    ),
    "a header of texts": (raw_block(header(node="1", run="1")), "column 'in' is cut"),
    "a node that is a text": (raw_block(header(node="1"), b"\1"), "'node' is '1'"),
    "a run that is a fraction": (raw_block(header(run=1.5), b"\1"), "'run' is 1.5"),
    "a seq that is true": (raw_block(header(seq=True), b"\1"), "'seq' is True"),
    "a split that is deep": (
        raw_block(
            json.dumps(header(split=0)).replace('"split": 0', f'"split": {nested(500)}').encode(), b"\1"
        ),
        "'split' is list",
    ),
    "a relation that is an object": (raw_block(header(relation={}), b"\1"), "relation dict"),
    "a relation that is long": (raw_block(header(relation="x" * 60_000), b"\1"), "relation 'xxx"),
    "columns that are an object": (raw_block(header(columns={})), "no list of columns"),
    "a column of columns": (raw_block(header(columns=[[]])), "no name"),
    "a thousand columns": (raw_block(header(columns=header()["columns"] * 200)), "no list of columns"),
    "a header that is a list": (raw_block([]), "no application_id"),
    "a header of 4 GB": (b"LMFB\1\1\xff\xff\xff\xff" + bytes(100), "header of 4294967295 bytes"),
    "a column of 8 EB": (raw_block(column(count=2**62, bytes=2**62, width=8)), "'count'"),
    "a column of 1 MB that is not there": (
        raw_block(column(count=contract.MAX_COLUMN_VALUES, bytes=contract.MAX_COLUMN_VALUES * 8, width=8)),
        "'bytes'",
    ),
    "a negative count": (raw_block(column(count=-1), b"\1"), "'count' is -1"),
    "negative bytes": (raw_block(column(bytes=-1), b"\1"), "'bytes' is -1"),
    "a negative width": (raw_block(column(width=-1), b"\1"), "width -1"),
    "a negative node": (raw_block(header(node=-1), b"\1"), "'node' is -1"),
    "a negative position": (record(columns={"out": [-1], "in": [0]}), "not a number"),
    "a position that is a fraction": (record(columns={"out": [0.5], "in": [0]}), "not a number"),
    "a position that is not a number": (
        record(columns={"out": [float("nan")], "in": [0]}),
        "not a number",
    ),
    "a position of 5,000 digits": (
        record(columns={"out": [0], "in": [1]}).replace(b"[1]", b"[" + b"9" * 4_000 + b"]"),
        "not a number",
    ),
    "a position beyond all": (record(columns={"out": [2**63], "in": [0]}), "not a number"),
    "a column beyond all": (raw_block(column(bytes=8, width=8), b"\xff" * 8), "beyond 2**63 - 1"),
    "outputs beyond all": (block(base_out=2**63 - 1), "pass 2**63"),
    "a run beyond all": (
        block(relation=contract.PAIRS, columns={"out": [0], "in": [0], "run": [2**53]}),
        "more than",
    ),
    "counts beyond all": (block(relation=contract.COUNTS, columns={"count": [2**62] * 3}), "pass 2**63"),
    "a span beyond all": (
        block(relation=contract.SPANS, columns={"count": [5], "in": [2**63 - 4], "step": [1]}),
        "passes 2**63",
    ),
    "a gather of inputs that are not there": (
        block(relation=contract.GATHER, columns={"count": [2**62], "in": [1]}),
        "do not add up",
    ),
    "winners of different lengths": (
        block(relation=contract.WINNERS, columns={"out": [0], "in": [1, 2]}),
        "different lengths",
    ),
    "a digest of 64 bits": (
        raw_block(
            header(
                relation="digests",
                columns=[{"name": "digest", "count": 1, "bytes": 8, "width": 8, "delta": False}],
            ),
            b"\xff" * 8,
        ),
        "beyond 2**63 - 1",
    ),
    "digests beyond all": (
        block(relation=contract.DIGESTS, columns={"digest": [1, 2]}, base_out=2**63 - 1),
        "pass 2**63",
    ),
    "groups beyond all": (
        block(relation=contract.GROUPS, columns={"count": [2**62] * 3}),
        "pass 2**63",
    ),
    "a code of a text that is not there": (
        block(relation=contract.KEYS, columns={"text": [("str", "a")], "code": [1]}),
        "beyond the 1",
    ),
    "texts that expand": (_bomb(), "characters for all outputs together"),
    "types that expand": (
        block(relation=contract.KEYS, columns={"text": [("x" * 300_000, "")], "code": [0] * 131_072}),
        "characters for all outputs together",
    ),
    "a type that expands": (
        raw_block(plain(count=100_000, types=["x" * 60_000]), bytes(100_000)),
        "types of 80 ASCII characters",
    ),
    "texts that are longer than the message": (
        raw_block(plain(count=1, width=8), b"\xff" * 7 + b"\1"),
        "bytes",
    ),
    "a document that is not JSON": (
        block(relation=contract.VALUES, columns={"text": [("parsed", "[1")]}),
        "type parsed is not JSON",
    ),
    "a deep document": (
        block(relation=contract.VALUES, columns={"text": [("parsed", nested(DEEP))]}),
        "has over 65536 characters",
    ),
    "documents that expand": (
        block(
            relation=contract.VALUES,
            columns={"text": [("parsed", "[" + "1e15," * 9_000 + "1]")], "code": [0] * 131_072},
        ),
        "characters for all outputs together",
    ),
    "a deep header": (raw_block(nested(30_000).encode()), "header is not JSON"),
    "a deep record": (b'{"version":' + nested(DEEP).encode() + b"}", "record is not JSON"),
    "deep objects": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "record is not JSON"),
    "deep texts": (
        raw_block(
            header(
                relation="keys", columns=[{"name": "text", "count": 1, "bytes": 2 * DEEP, "type": "json"}]
            ),
            nested(DEEP).encode(),
        ),
        "text column is not JSON",
    ),
    **{
        f"an id: {name}": (
            raw_block(header(application_id=text), b"\1")
            if len(text) < 1_000
            else record(application_id=text),
            "application_id",
        )
        for name, text in IDS.items()
    },
}

LINK = event(contract.LINK)
CURRENT = f'"{contract.VERSION}"'.encode()
RUN = event(contract.RUN_COMMITTED, run=1)
EVENTS: Poison = {
    "nothing": (b"", "not JSON"),
    "cut": (LINK[:-1], "not JSON"),
    "random bytes": (random.Random(1).randbytes(1_000), "not JSON"),
    "a list": (b"[]", "not a JSON object"),
    "oversized": (event(contract.APPLICATION_STARTED, name="x" * 2_000_000), "longer than 1048576"),
    "many small things": (b"[" + b"[]," * 300_000 + b"[]]", "not a JSON object"),
    "another major version": (LINK.replace(CURRENT, b'"2.0"'), "version 2.0; this reader knows 1.x"),
    "a version that writes to the log": (LINK.replace(CURRENT, b'"2.0\\nall is well"'), "no version"),
    "an unknown type that is long": (LINK.replace(b'"link"', b'"' + b"x" * 500_000 + b'"'), "'xxx"),
    "a time that is a text": (LINK.replace(b'"time":0', b'"time":"0"'), "'time'"),
    "a negative time": (LINK.replace(b'"time":0', b'"time":-1'), "'time' is -1"),
    "a negative node": (event(contract.LINK, source=-1), "'source' is -1"),
    "a node beyond all": (event(contract.LINK, source=2**31), "'source' is 2147483648"),
    "a port that is true": (event(contract.LINK, port=True), "boolean in field 'port'"),
    "negative blocks": (event(contract.RUN_COMMITTED, blocks=-1), "'blocks' is -1"),
    "a run beyond all": (event(contract.RUN_COMMITTED, run=2**53), "'run' is"),
    "nodes that are texts": (event(contract.RUN_COMMITTED, nodes=["\x1b[2J"]), r"'nodes[0]' is '\x1b[2J'"),
    "counts that are a list": (event(contract.RUN_COMMITTED, counts=[1]), "'counts' is list"),
    "negative counts": (event(contract.RUN_COMMITTED, counts={"1": -1}), "'counts.1' is -1"),
    "unconfirmed that is a text": (event(contract.RUN_COMMITTED, unconfirmed="x"), "'unconfirmed' is 'x'"),
    "counters that are texts": (
        event(contract.APPLICATION_ENDED, counters={"runs": "many"}),
        "'counters.runs' is 'many'",
    ),
    "counters that are not numbers": (
        event(contract.APPLICATION_ENDED, counters={"runs": float("nan")}),
        "'counters.runs' is nan",
    ),
    "a counter beyond all": (
        event(contract.APPLICATION_ENDED, counters={"runs": 10**400}),
        "'counters.runs' is 1000",
    ),
    "an event number that is a text": (event(contract.LINK, event="1"), "'event' is '1'"),
    "parents that are numbers": (
        event(contract.PARTITIONS, partitions=[{"split": 0, "parents": [1]}]),
        "'partitions[0].parents[0]' is 1, not [port, split]",
    ),
    "a file without a start": (
        event(contract.PARTITIONS, partitions=[{"split": 0, "path": "/data/in.txt"}]),
        "'partitions[0].start' is missing",
    ),
    "a path that ends early": (
        event(contract.PARTITIONS, partitions=[{"split": 0, "path": "/data\0/in.txt", "start": 0}]),
        "names a file",
    ),
    "records of no length": (
        event(contract.PARTITIONS, partitions=[{"split": 0, "path": "/a", "start": 0, "record_length": 0}]),
        "'partitions[0].record_length' is 0",
    ),
    "files that are texts": (
        event(contract.PARTITIONS, partitions=[{"split": 0, "files": ["/data/in.txt"]}]),
        "'partitions[0].files[0]' is",
    ),
    "a size that is a text": (
        event(contract.PARTITIONS, partitions=[{"split": 0, "files": [{"path": "/a", "size": "1"}]}]),
        "files[0].size' is '1'",
    ),
    "a file of a record that starts nowhere": (
        event(contract.PARTITIONS, partitions=[{"split": 0, "files": [{"path": "/a", "start": "x"}]}]),
        "files[0].start' is 'x'",
    ),
    "a length of no file": (
        event(contract.PARTITIONS, partitions=[{"split": 0, "length": 10}]),
        "'partitions[0].path' is missing",
    ),
    "a file of no time": (
        event(contract.PARTITIONS, partitions=[{"split": 0, "files": [{"path": "/a", "modified": 10**30}]}]),
        "files[0].modified' is 1000",
    ),
    "a format that is a list": (
        event(contract.NODE_REGISTERED, dataset={"format": []}),
        "'dataset.format' is list",
    ),
    "an operation that is a list": (event(contract.NODE_REGISTERED, operation=[]), "'operation'"),
    "a type that is not known and may not be ignored": (
        LINK.replace(b'"link"', b'"link_of_later"'),
        "'link_of_later' is not known",
    ),
    "a type that is no name and may be ignored": (
        LINK.replace(b'"link"', b'"a b","ignorable":true'),
        "'a b' is not known",
    ),
    "ignorable that is a text": (
        LINK.replace(b'"link"', b'"link_of_later","ignorable":"yes"'),
        "'ignorable' is 'yes'",
    ),
    "an unknown type of a time that is negative": (
        LINK.replace(b'"link"', b'"link_of_later","ignorable":true').replace(b'"time":0', b'"time":-1'),
        "'time' is -1",
    ),
    "an end of no known state": (
        event(contract.APPLICATION_ENDED, state="gone"),
        "application_ended event: 'state' is 'gone'",
    ),
    "an error that is a text": (
        event(contract.APPLICATION_ENDED, error="boom"),
        "'error' is 'boom'",
    ),
    "an error without a message": (
        event(contract.ACTION_ENDED, state="failed", error={"type": "ValueError"}),
        "'error.message' is missing",
    ),
    "an action of no known state": (event(contract.ACTION_ENDED, state="done"), "'state' is 'done'"),
    "a gap without a reason": (event(contract.GAP, reason=7), "'reason'"),
    "a replay of nothing": (event(contract.APPLICATION_STARTED, replay={}), "'replay.of' is missing"),
    "a parent that is a text": (event(contract.APPLICATION_STARTED, parent="job"), "'parent' is 'job'"),
    "a schema of texts": (event(contract.NODE_REGISTERED, schema=["a"]), "'schema[0]' is 'a'"),
    "a visit that is a text": (event(contract.NODE_REGISTERED, site={"visit": "1"}), "'site.visit' is"),
    "a window's frame of no unit": (
        event(contract.NODE_REGISTERED, frame={"from": 0}),
        "'frame.unit' is missing",
    ),
    "a session that is a number": (event(contract.NODE_REGISTERED, session=7), "'session' is 7"),
    "a symlink that is a text": (
        event(contract.NODE_REGISTERED, dataset={"symlinks": ["db.t"]}),
        "'dataset.symlinks[0]' is",
    ),
    "slow records of two numbers": (
        event(contract.RUN_COMMITTED, slow=[[1, 2]]),
        "'slow[0]' is list, not [node, position, ms]",
    ),
    "slow records without end": (event(contract.RUN_COMMITTED, slow=[[1, 2, 3]] * 21), "at most 20"),
    "a batch that is negative": (event(contract.RUN_COMMITTED, batch=-1), "'batch' is -1"),
    "a spool that is a text": (event(contract.RUN_COMMITTED, spooled="all"), "'spooled' is 'all'"),
    "a failure at a node beyond all": (event(contract.RUN_FAILED, failed_node=2**31), "'failed_node' is"),
    "a failed record without a type": (event(contract.RUN_FAILED, record=["a"]), "'record' is list"),
    "columns of texts": (event(contract.COLUMNS, fields={"a": ["b"]}), "'fields.a[0]' is 'b'"),
    "a row id that is a text": (
        event(
            contract.PARTITIONS,
            partitions=[{"split": 0, "parts": [{"path": "/a", "first": 0, "row_id_first": "x"}]}],
        ),
        "parts[0].row_id_first' is 'x'",
    ),
    "a time after the year 9999": (
        LINK.replace(b'"time":0', b'"time":253402300800000'),
        "'time' is 253402300800000",
    ),
    "a reason that is an object": (event(contract.NODE_REGISTERED, reason={}), "'reason'"),
    "a problem that is a number": (event(contract.RUN_COMMITTED, problem=7), "'problem'"),
    "an unknown relation": (
        event(contract.NODE_REGISTERED, relation="x" * 9_999),
        "'relation' is 'xxx",
    ),
    "deep": (LINK[:-1] + b',"x":' + nested(DEEP).encode() + b"}", "not JSON"),
    "deep objects": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "not JSON"),
    "deep for those who read it later": (LINK[:-1] + b',"x":' + nested(500).encode() + b"}", "nested more"),
    "a deep list of nodes": (
        RUN.replace(b'"nodes":[]', f'"nodes":[{nested(20)}]'.encode()),
        "'nodes[0]' is list",
    ),
    **{
        f"an id: {name}": (event(contract.LINK, application_id=text), "application_id")
        for name, text in IDS.items()
    },
}
