"""The rows that real jobs read and wrote, as people are shown them: names, compression, formats."""

from __future__ import annotations

import bz2
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lineage_service.lineage import SourceRow
from lineage_service.queries import RecordQuery
from tests.support.spark.application import Application

Run = Callable[..., tuple[Any, Application]]


def rows_by_node(application: Application) -> dict[tuple[str, str], list[SourceRow]]:
    """(node's name, last part of its path) -> the rows of its records, in order."""
    graph = application.questions.graph(application.application_id)
    return {
        (node.name, Path(node.description).name): [
            record.source
            for record in application.questions.records(
                application.application_id, RecordQuery(node=node.node_id, limit=10_000)
            ).records
            if record.source is not None
        ]
        for node in graph.nodes
        if node.kind != "operator"
    }


def test_rows_are_shown_whatever_the_file_is_called_and_however_it_was_written(
    run: Run, tmp_path: Path
) -> None:
    """bzip2 of ten blocks, whose splits begin inside; names that look like parts of URLs."""
    folder = tmp_path / "50%25 of #1"
    folder.mkdir()
    odd = folder / "a%20b #2;c.txt"
    odd.write_text("".join(f"odd {row}\n" for row in range(30)))
    packed = tmp_path / "packed.txt.bz2"
    chance = random.Random(7)
    lines = [f"{row} {chance.randbytes(chance.randrange(99)).hex()}" for row in range(9_000)]
    packed.write_bytes(bz2.compress("".join(f"{line}\n" for line in lines).encode(), 1))
    out = tmp_path / "out"

    def job(context: Any) -> int:
        context.textFile(str(odd), 3).saveAsTextFile(str(out / "plain%25 #3"))
        codec = "org.apache.hadoop.io.compress."
        for name, each in (("gz", "GzipCodec"), ("bz2", "BZip2Codec"), ("deflate", "DefaultCodec")):
            context.textFile(str(odd), 2).saveAsTextFile(str(out / name), codec + each)
        context.textFile(str(odd), 2).map(lambda row: (row, 1)).saveAsSequenceFile(str(out / "sequence"))
        context.textFile(str(odd), 2).saveAsPickleFile(str(out / "pickle"))
        return context.textFile(str(packed), 4).count()

    count, application = run(job)
    assert count == len(lines)
    found = rows_by_node(application)
    expected = [(row, f"odd {row}", None) for row in range(30)]
    assert [(row.row, row.text, row.warning) for row in found["textFile", odd.name]] == expected
    assert {row.path for row in found["textFile", odd.name]} == {str(odd)}
    for name in ("plain%25 #3", "gz", "bz2", "deflate"):
        written = found["saveAsTextFile", name]
        assert [(row.text, row.warning) for row in written] == [(text, None) for _, text, _ in expected]
    for key in (("saveAsSequenceFile", "sequence"), ("saveAsPickleFile", "pickle")):
        assert len(found[key]) == 30
        assert all(row.text is None and "no rows of text" in (row.warning or "") for row in found[key])
    shown = found["textFile", packed.name]
    assert [(row.row, row.text, row.warning) for row in shown] == [
        (at, line, None) for at, line in enumerate(lines)
    ]
    splits = {
        record.partition
        for at in range(0, len(lines), 500)
        for record in application.trace(direction="forward", path=str(packed), row=at).start
        if record.source is not None and record.source.text == lines[at]
    }
    assert len(splits) == 4
