"""Where the next page of a trace begins, as text that a client hands back.

A cursor names the last record that was listed at each node that has more, so a page neither repeats nor skips
a record that the page before knew of, whatever arrives meanwhile. It belongs to one query.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields

from lineage_service.errors import InvalidQueryError
from lineage_service.queries import TraceQuery

__all__ = ["Page", "decode", "digest", "encode"]

#: A trace of 500 nodes makes a cursor of some 10,000 bytes before it is compressed.
_MAX_BYTES = 1 << 18
#: The fields that make a query, and the values of those that do not.
_FIELDS = tuple(field.name for field in fields(TraceQuery))
_LEFT_OUT = {"cursor": None, "limit": 0, "values": False, "columns": None, "remarks": False}


@dataclass(frozen=True, slots=True)
class Page:
    """Which records of a trace: at each node, by its id, those after a (partition, offset).

    Nodes that are not named have no more. `after` None is the first page. `so_far`: of what was found
    already, without looking further.
    """

    after: Mapping[str, tuple[int, int]] | None = None
    so_far: bool = False


def digest(application_id: str, query: TraceQuery) -> str:
    """The same for every page of a query, whatever the limit."""
    values = tuple(_LEFT_OUT.get(name, getattr(query, name)) for name in _FIELDS)
    return hashlib.blake2b(repr((application_id, values)).encode(), digest_size=6).hexdigest()


def encode(digest: str, page: Page) -> str:
    """`page` of the query with this digest as a cursor."""
    body = json.dumps([digest, page.after, page.so_far], separators=(",", ":"))
    return base64.urlsafe_b64encode(zlib.compress(body.encode())).rstrip(b"=").decode()


def decode(text: str | None, digest: str) -> Page:
    """The page that a cursor names. Raises InvalidQueryError."""
    if text is None:
        return Page()
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        of, after, so_far = json.loads(zlib.decompressobj().decompress(packed, _MAX_BYTES))
        page = Page(
            after=None
            if after is None
            else {
                str(node): (_natural(partition), _natural(offset))
                for node, (partition, offset) in after.items()
            },
            so_far=so_far is True,
        )
    except (ValueError, TypeError, AttributeError, RecursionError, zlib.error):
        raise InvalidQueryError(f"cursor {text[:80]!r} was not given by this endpoint") from None
    if of != digest:
        raise InvalidQueryError("the cursor belongs to another query; only limit and values may differ")
    return page


def _natural(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(value)
    return value
