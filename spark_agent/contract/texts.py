"""Typed texts, what keys and values of records become, and how a column of them is written as bytes.

A part of the wire contract, behind its door `contract`. A column is its texts' lengths, as an integer column,
and their UTF-8 one after the other: nothing is quoted. A text of type `parsed` is a JSON document that stands
for what it parses to; a reader puts the text of that in its place. Decoding checks every count, length and
type before it takes memory, and never unpickles.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spark_agent.contract.columns import decode_integers, encode_integers

Text = tuple[str, str]
"""(type, text). Types: str, int, float, bool, none, bytes (hex), json, repr, withheld, parsed."""

MAX_TEXT_CHARACTERS = 4_096
#: Values may be longer where `spark.lineage.values.max.characters` says so, but never longer than this.
MAX_VALUE_CHARACTERS = 65_536
#: Stands for a key or value that the user's redaction function could not be asked about.
WITHHELD: Text = ("withheld", "withheld: the redaction function failed")
#: The type of a JSON document that stands for the value that `json.loads` makes of it.
PARSED = "parsed"
#: A column names so many types, of so many ASCII characters; others are written as a JSON array.
MAX_TYPES, MAX_TYPE_CHARACTERS = 16, 80
#: How a column may be written; `json`, an array of pairs, is what 1.0 and 1.1 wrote.
TEXT_COLUMN_TYPES = ("plain", "json")
#: How deep a document that is sent as `parsed` may be nested; readers have room for more.
MAX_DOCUMENT_DEPTH = 400

#: A string as JSON, in C where there is C.
_quoted: Callable[[str], str] = json.encoder.encode_basestring


# -- what a value becomes ---------------------------------------------------------------------------


def typed_text(value: object, limit: int = MAX_TEXT_CHARACTERS) -> Text:
    """A key or value as (type, text), never longer than `limit` characters."""
    return cut_text(whole_text(value, limit), limit)


def cut_text(text: Text, limit: int) -> Text:
    """`text`, cut to `limit` characters if it is longer; then it ends with `…`."""
    return text if len(text[1]) <= limit else (text[0], text[1][: limit - 1] + "…")


def whole_text(value: object, limit: int) -> Text:
    """A key or value as (type, text). Of a text longer than `limit` any longer beginning may be given.

    Numbers that are equal in Python (1, 1.0, True) keep their own type here.
    """
    if type(value) is str:
        return ("str", value)
    if value is None:
        return ("none", "")
    if type(value) is bool:
        return ("bool", "true" if value else "false")
    if type(value) is int and value.bit_length() < 3 * MAX_TEXT_CHARACTERS:  # Python may refuse longer ones
        return ("int", str(value))
    if type(value) is float:
        return ("float", repr(value))
    if type(value) is bytes:
        return ("bytes", value[:limit].hex())
    kind = type(value)
    if kind in (tuple, list, dict) or hasattr(kind, "__dataclass_fields__"):
        try:
            return ("json", _as_json(_beginning(value, limit)))
        except Exception:  # noqa: BLE001 - no JSON: keys, numbers, depth, or a user's property that raises
            pass
    return ("repr", _safe_repr(value))


def _beginning(value: Any, limit: int) -> Any:
    """So much of a long list or dictionary that its text is too long as well: the rest would be cut."""
    if type(value) is dict:
        return value if len(value) <= limit else dict(itertools.islice(value.items(), limit))
    return value[:limit] if type(value) in (tuple, list) and len(value) > limit else value


def _fields(value: object) -> dict[str, Any]:
    """The fields of a dataclass that its repr has, for json.dumps, which asks about what it does not know."""
    if isinstance(value, type) or not dataclasses.is_dataclass(value):
        raise TypeError(f"{type(value).__name__} has no JSON")
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.repr}


def _json_encoder() -> Callable[[object], str]:
    """What json.dumps does with these options, made once: five times as fast for small values."""
    encoder = json.JSONEncoder(default=_fields, ensure_ascii=False, allow_nan=False, check_circular=False)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return encoder.encode
    pieces = make(None, _fields, _quoted, None, ": ", ", ", False, False, False)
    return lambda value: (
        "".join(pieces(value, 0)) if type(value) in (tuple, list, dict) else encoder.encode(value)
    )


_as_json = _json_encoder()


def _safe_repr(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - a user's broken __repr__ must not break the user's job
        return f"<{type(value).__name__}: no text, {type(error).__name__}>"


# -- documents that stand for what they parse to ----------------------------------------------------


def may_be_parsed(document: str, limit: int) -> bool:
    """May `document`, which json.loads took, be sent in the place of the text of what it made of it?

    Only if that text surely has at most `limit` characters: a text that is cut is counted where it is made.
    """
    # One character becomes 4.5 at most (`1e15`); one that is not ASCII 10 in a repr (U+E0001, beside NaN).
    size = len(document)
    if not document.isascii():
        if 10 * size > limit or not _is_utf8(document):
            return False
    elif 5 * size > limit:
        count = document.count
        separators, exponents = count(",") + count(":"), count("e") + count("E")
        # 1e15 becomes 1000000000000000.0, a fraction of 18 digits gets an exponent, and the others take more
        # room in a repr: quotes, escapes, the one ASCII character that is written as it is and not printable.
        size += separators + 14 * exponents + 4 * count(".")
        if size + count("'") + 2 * count("\\") + 3 * count("\x7f") > limit:
            return False
    is_flat = len(document) <= 2 * MAX_DOCUMENT_DEPTH  # what is opened is closed
    return is_flat or document.count("[") + document.count("{") <= MAX_DOCUMENT_DEPTH


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which does not travel
        return False
    return True


def rebuilt(texts: Sequence[Text]) -> Sequence[Text]:
    """`texts` with what the documents among them stand for. Raises ValueError."""
    if not any(kind == PARSED for kind, _ in texts):
        return texts
    return [_of_document(text) if kind == PARSED else (kind, text) for kind, text in texts]


def _of_document(document: str) -> Text:
    if len(document) > MAX_VALUE_CHARACTERS:
        raise ValueError(f"text of type {PARSED} has over {MAX_VALUE_CHARACTERS} characters")
    try:
        value = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"text of type {PARSED} is not JSON: {error}") from None
    kind, text = typed_text(value, MAX_VALUE_CHARACTERS)
    return (kind, text if text.isascii() else _received(text.encode("utf-8", "surrogatepass")))


def _received(text: bytes) -> str:
    return text.decode("utf-8", "replace")


# -- a column as bytes ------------------------------------------------------------------------------


class Documents(list[str]):
    """A column of texts that are all `parsed`: only these, without their type, to be encoded."""


def encode_texts(texts: Sequence[Text] | Documents) -> tuple[bytes, dict[str, Any]]:
    """A column, and what its block's header says of how it is written."""
    if isinstance(texts, Documents):
        return _encode_plain([PARSED], b"", texts)
    kinds = list(dict.fromkeys([kind for kind, _ in texts]))
    if len(kinds) > MAX_TYPES or not all(map(_is_plain, kinds)):
        encoded = json.dumps(texts, separators=(",", ":"), ensure_ascii=False)
        return encoded.encode("utf-8", "surrogatepass"), {"type": "json"}
    which = b""
    if len(kinds) > 1:
        numbers = {kind: number for number, kind in enumerate(kinds)}
        which = bytes([numbers[kind] for kind, _ in texts])
    return _encode_plain(kinds, which, [text for _, text in texts])


def _encode_plain(kinds: list[str], which: bytes, texts: list[str]) -> tuple[bytes, dict[str, Any]]:
    joined = "".join(texts)
    if joined.isascii():
        lengths, written = list(map(len, texts)), joined.encode()
    else:
        pieces = [text.encode("utf-8", "surrogatepass") for text in texts]
        lengths, written = list(map(len, pieces)), b"".join(pieces)
    sizes, width, is_delta = encode_integers(lengths)
    described = {"type": "plain", "types": kinds, "width": width, "delta": is_delta}
    return b"".join((which, sizes, written)), described


def _is_plain(kind: object) -> bool:
    return isinstance(kind, str) and kind.isascii() and len(kind) <= MAX_TYPE_CHARACTERS


def decode_texts(payload: bytes, count: int, described: Mapping[str, Any]) -> list[Text]:
    """The `count` texts of a column. Raises ValueError."""
    if described.get("type") == "plain":
        return _decode_plain(payload, count, described)
    try:
        texts = json.loads(payload.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"text column is not JSON: {error}") from None
    if not isinstance(texts, list) or len(texts) != count:
        raise ValueError(f"text column does not hold {count} entries")
    return typed_texts(texts)


def _decode_plain(payload: bytes, count: int, described: Mapping[str, Any]) -> list[Text]:
    kinds, width = described.get("types"), described.get("width")
    if not isinstance(kinds, list) or len(kinds) > MAX_TYPES or not all(map(_is_plain, kinds)):
        raise ValueError(
            f"text column has no list of at most {MAX_TYPES} types of {MAX_TYPE_CHARACTERS} ASCII characters"
        )
    first = count if len(kinds) > 1 else 0
    which = payload[:first] if first else bytes(count)
    if len(which) < count or max(which, default=-1) >= len(kinds):
        raise ValueError(f"text column names a type beyond the {len(kinds)} there are")
    if not isinstance(width, int):
        raise ValueError("text column does not say how wide its lengths are")
    start = first + count * width
    lengths = decode_integers(payload[first:start], count, width, described.get("delta") is True)
    written = payload[start:]
    if sum(lengths) != len(written):
        raise ValueError(f"texts of a column have {sum(lengths)} bytes, not the {len(written)} there are")
    ends = list(itertools.accumulate(lengths, initial=0))
    if written.isascii():
        text = written.decode("ascii")
        texts = [text[begin:end] for begin, end in itertools.pairwise(ends)]
    else:
        texts = [_received(written[begin:end]) for begin, end in itertools.pairwise(ends)]
    return list(zip(map(kinds.__getitem__, which), texts, strict=True))


def typed_texts(texts: list[Any]) -> list[Text]:
    """JSON's lists of two as typed texts. Raises ValueError."""
    for text in texts:
        if not isinstance(text, list) or len(text) != 2 or not all(isinstance(part, str) for part in text):
            raise ValueError("text column holds an entry that is not [type, text]")
    return [(kind, text) for kind, text in texts]
