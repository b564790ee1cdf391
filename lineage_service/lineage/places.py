"""Where the records of a source or sink are stored, and their columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from lineage_service.lineage.results import Result, doc


@dataclass(frozen=True, slots=True, kw_only=True)
class Symlink(Result):
    """Another name of a dataset, such as that of its table in a catalog."""

    namespace: str = field(metadata=doc("The catalog, for example `hive://metastore:9083`."))
    name: str = field(metadata=doc("The table, for example `db.sales`."))
    type: str = field(default="TABLE", metadata=doc("`TABLE`, or what an agent calls it."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(Result):
    """Where the records of a source or sink are stored, named by OpenLineage's rules."""

    namespace: str = field(
        metadata=doc("The file system, for example `file`, `s3://bucket` or `hdfs://host:8020`.")
    )
    name: str = field(
        metadata=doc("Path of the file or folder; in object stores without slashes at its ends.")
    )
    format: str = field(metadata=doc("Format, for example `text`, `csv` or `parquet`."))
    partitions: tuple[str, ...] = field(
        default=(), metadata=doc("Names of the columns by which its folders are divided.")
    )
    symlinks: tuple[Symlink, ...] = field(default=(), metadata=doc("Its names in catalogs."))
    version: str | None = field(
        default=None,
        metadata=doc("Version of the table that was read or made, as its format names it; null if unknown."),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Result):
    """A column of a dataset, or a field of a struct."""

    name: str = field(metadata=doc("Name."))
    type: str = field(
        metadata=doc("Spark's simple type, for example `bigint` or `array<string>`; of a struct `struct`.")
    )
    nullable: bool | None = field(default=None, metadata=doc("It may be null; null if this is unknown."))
    fields: tuple[Column, ...] = field(default=(), metadata=doc("Fields of a struct, else empty."))
