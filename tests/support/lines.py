"""Lines of text as Hadoop reads them, the plain way."""

import re


def naive(data: bytes) -> list[tuple[int, bytes]]:
    """(offset, row) by one regular expression."""
    rows = []
    for found in re.finditer(rb"([^\r\n]*)(\r\n|\r|\n|\Z)", data):
        if found.group(2) or found.group(1):
            rows.append((found.start(), found.group(1)))
    return rows
