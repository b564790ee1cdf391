"""Where records come into Spark: the file, and the row or the piece of it, that each source record is."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark.application import Application, part_rows, rows_at

Run = Callable[..., tuple[Any, Application]]


def test_each_kind_of_source_knows_its_records(run: Run, tmp_path: Path) -> None:
    """One application reads them all and saves each; every output row is traced."""
    texts, whole, out = tmp_path / "texts", tmp_path / "whole", tmp_path / "out"
    for folder in (texts, whole, out):
        folder.mkdir()
    (texts / "a.txt").write_text("".join(f"a{i}\n" for i in range(9)))
    with gzip.open(texts / "b.txt.gz", "wt") as file:
        file.write("".join(f"b{i}\n" for i in range(5)))
    for name in "xyz":
        (whole / f"{name}.txt").write_text(f"{name}\n{name}\n")
    (tmp_path / "records.bin").write_bytes(b"".join(b"%04d" % i for i in range(25)))

    def job(context: Any) -> None:
        def save(dataset: Any, name: str) -> None:
            dataset.saveAsTextFile(str(out / name))

        save(context.textFile(str(texts), 3).map(str), "textFile")
        save(context.textFile(f"{texts / 'a.txt'},{texts / 'b.txt.gz'}").map(str), "several")
        save(context.wholeTextFiles(str(whole), 2).map(lambda pair: pair[1][0]), "wholeTextFiles")
        save(context.binaryFiles(str(whole)).map(lambda pair: pair[1][:1].decode()), "binaryFiles")
        save(context.binaryRecords(str(tmp_path / "records.bin"), 4).map(bytes.decode), "binaryRecords")
        save(context.parallelize([f"p{i}" for i in range(17)], 3).map(str), "parallelize")
        save(context.range(0, 30, 3, 4).map(str), "range")
        save(context.parallelize(range(5), 2).map(str), "parallelize of a range")

    _, application = run(job)

    def source_rows(name: str) -> list[tuple[str, set[tuple[str, int]]]]:
        return [(text, set(application.sources_of(part, row))) for part, row, text in part_rows(out / name)]

    for name in ("textFile", "several"):
        found = source_rows(name)
        assert len(found) == 14
        for text, rows in found:
            assert rows == {({"a": "a.txt", "b": "b.txt.gz"}[text[0]], int(text[1:]))}
    for name in ("wholeTextFiles", "binaryFiles"):
        assert sorted(source_rows(name)) == [(name, {(f"{name}.txt", 0)}) for name in "xyz"]
    assert source_rows("binaryRecords") == [(f"{i:04}", {("records.bin", i)}) for i in range(25)]

    counted = {"parallelize": 17, "range": 10, "parallelize of a range": 5}
    for name, count in counted.items():
        origins = []
        for part, row, _ in part_rows(out / name):
            trace = application.trace(direction="backward", path=str(part), row=row)
            assert trace.exact
            ((record,),) = [node.records for node in trace.nodes if node.kind == "source"]
            origins.append((record.partition, record.offset))
        assert len(origins) == len(set(origins)) == count, name
        assert origins == sorted(origins), name


NO_ROWS = {
    "a delimiter": ({"textinputformat.record.delimiter": ";"}, [f"a\n{i}" for i in range(30)]),
    "a length": ({"mapreduce.input.linerecordreader.line.maxlength": "3"}, ["a"]),
}


@pytest.mark.parametrize("name", NO_ROWS)
def test_records_that_are_no_rows_are_not_taken_for_rows(run: Run, tmp_path: Path, name: str) -> None:
    conf, records = NO_ROWS[name]
    source = tmp_path / "in.txt"
    source.write_text("".join(f"a\n{i};" for i in range(30)))

    def job(context: Any) -> list[str]:
        for key, value in conf.items():
            context._jsc.hadoopConfiguration().set(key, value)
        return context.textFile(str(source), 1).collect()  # type: ignore[no-any-return]

    result, application = run(job)
    assert result[: len(records)] == records
    (sink,) = application.sinks()
    for at in range(len(result)):
        trace = application.trace(direction="backward", node=sink.node_id, record=f"0#{at}")
        ((record,),) = [node.records for node in trace.nodes if node.kind == "source"]
        assert trace.exact
        assert (record.partition, record.offset, record.source) == (0, at, None)


def test_a_file_that_hadoop_reads_not_as_it_is_called_has_no_rows(run: Run, tmp_path: Path) -> None:
    for name in ("plain.txt", "copy.passthrough"):
        (tmp_path / name).write_text("one\ntwo\n")

    def job(context: Any) -> list[str]:
        hadoop = context._jsc.hadoopConfiguration()
        hadoop.set("io.compression.codecs", "org.apache.hadoop.io.compress.PassthroughCodec")
        return context.textFile(f"{tmp_path}/plain.txt,{tmp_path}/copy.passthrough", 1).collect()  # type: ignore[no-any-return]

    result, application = run(job)
    assert result == ["one", "two"] * 2
    (sink,) = application.sinks()
    found = {}
    for split, name in enumerate(("plain.txt", "copy.passthrough")):
        trace = application.trace(direction="backward", node=sink.node_id, record=f"{split}#1")
        ((record,),) = [node.records for node in trace.nodes if node.kind == "source"]
        found[name] = record.source and (record.source.row, record.source.text)
    assert found == {"plain.txt": (1, "two"), "copy.passthrough": None}


def test_a_whole_file_and_a_binary_record_are_found_by_path_and_row(run: Run, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    for name in "xyz":
        (whole / f"{name}.txt").write_text(name)
    records = tmp_path / "records.bin"
    records.write_bytes(bytes(range(40)))

    def job(context: Any) -> list[Any]:
        names = context.wholeTextFiles(str(whole)).map(lambda pair: pair[1]).collect()
        return [names, context.binaryRecords(str(records), 8).map(lambda record: record[0]).collect()]

    (names, firsts), application = run(job)
    assert firsts == [0, 8, 16, 24, 32]
    for name in names:
        trace = application.trace(direction="forward", path=str(whole / f"{name}.txt"), row=0)
        assert trace.exact
        assert [node.total for node in trace.nodes] == [1, 1, 1]
    trace = application.trace(direction="forward", path=str(records), row=3)
    assert rows_at(trace, "source") == {("records.bin", 3)}
    (start,) = trace.start
    assert start.source is not None
    assert start.source.text == bytes(range(24, 32)).hex()
