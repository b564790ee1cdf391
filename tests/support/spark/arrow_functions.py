"""Functions over Arrow tables, for several tests."""

from __future__ import annotations

import pyarrow as pa


def counted_group(table: pa.Table) -> pa.Table:
    return pa.table({"tag": table["tag"][:1], "n": pa.array([len(table)], pa.int64())})


def counted_groups(left: pa.Table, right: pa.Table) -> pa.Table:
    tag = (left if len(left) else right)["tag"][:1]
    return pa.table({"tag": tag, "n": pa.array([len(left)]), "m": pa.array([len(right)])})
