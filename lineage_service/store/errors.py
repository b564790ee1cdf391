"""What goes wrong with a flow store, said so that people know what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError

from lineage_service.errors import UnavailableError
from lineage_service.store.log_check import log_damage

__all__ = ["StoreConflictError", "StoreUnavailableError", "translated_errors", "translated_read_errors"]

#: Object stores give their reasons one below the other, each with an arrow, in colours.
_COLOURS = re.compile("\x1b\\[[0-9;]*m")
_ARROWS = " \t↳"


class StoreUnavailableError(UnavailableError):
    """The flow store cannot be read or written now; the same call may succeed later."""


class StoreConflictError(StoreUnavailableError):
    """Another writer was faster. The same call reads the store again and leaves out what is stored."""


@contextmanager
def translated_errors(uri: str) -> Iterator[None]:
    """Errors of the library as those of the store, in one line."""
    try:
        yield
    except CommitFailedError as error:
        raise StoreConflictError(f"another writer was faster in {uri}: {_in_one_line(error)}") from error
    except (DeltaError, pa.ArrowException, OSError) as error:
        damage = log_damage(uri)
        if damage is not None:
            raise StoreUnavailableError(f"the flow store in {uri} cannot be used: {damage}") from error
        raise StoreUnavailableError(
            f"the flow store in {uri} cannot be used now: {_in_one_line(error)}; is there space, and the "
            "right to read and to write?"
        ) from error


@contextmanager
def translated_read_errors(path: str = "") -> Iterator[None]:
    """Errors of reading this file, or files that a snapshot of the store named, as those of the store."""
    try:
        yield
    except (duckdb.IOException, duckdb.InvalidInputException, pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0][:300]
        raise StoreUnavailableError(
            f"{path or 'a file of the flow store'} cannot be read: ask again if it went meanwhile, else it "
            f"is damaged ({reason})"
        ) from error


def _in_one_line(error: Exception) -> str:
    lines = (line.strip(_ARROWS) for line in _COLOURS.sub("", str(error)).splitlines())
    return ": ".join(dict.fromkeys(line.rstrip(":") for line in lines if line))
