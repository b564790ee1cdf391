"""Restricts the sources of a replay to the rows that its spec names.

A source is known by the number of its node; its operation and its line must be those of the original. A
source of RDDs keeps its partitions, the order of its records, its node and the form in which others read it.
Only its records are fewer, and numbered anew. A scan of a DataFrame drops rows once they are numbered.
Where a source cannot be restricted it is read whole, and why is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spark_agent.driver.monkeypatch import rdd_module
from spark_agent.driver.nodes import Node
from spark_agent.driver.rdd.batch_formats import batches_in
from spark_agent.driver.replay.few_partitions import in_few_parts
from spark_agent.driver.replay.kept_rows import partitions_of
from spark_agent.worker.operators.kept_positions import Keep, KeptChain
from spark_agent.worker.pipeline import Pipeline

if TYPE_CHECKING:
    from spark_agent.driver.replay.report import Report

Source = Mapping[str, Any]

#: Sources whose records are whole files.
_OF_FILES = ("binaryFiles", "wholeTextFiles")
NOT_NAMED = "the row set does not name it"
_OF_FRAMES = "rows of DataFrames can be chosen of files only, in queries whose records are followed"
_REPLACED = "only lines of textFile can be replaced"
_WRITTEN_HERE = (
    "this replay wrote it before: all of that is read, since positions of the original do not hold for it"
)


class CannotRestrictError(Exception):
    """A source has to be read whole. The text says why."""


class Restriction:
    """The sources of one replay. `is_other`: of another application, which reads all of its rows."""

    def __init__(self, spec: Mapping[str, Any], report: Report, *, is_other: bool = False) -> None:
        self._mode, self._report, self._is_other = spec["mode"], report, is_other
        self._is_compact = spec.get("compact") is True
        sources = () if is_other else spec["sources"]
        self._sources: dict[int, Source] = {source["node"]: source for source in sources}
        self._reported: set[int] = set()
        self._of_frames: dict[int, str] = {}  # scans of DataFrames: why they are read whole, "" if not

    def of_rdd(self, dataset: Any, node: Node, *, is_copy: bool) -> Any:
        """The RDD in place of a source that was just made. `is_copy`: it reads what this replay has written.

        Called outside of an operation, so that RDDs which are made here have no nodes.
        """
        try:
            source = self._named(node.number)
            self._compare(source, node.number, node.name, node.call_site)
            restricted, way = self._restricted(dataset, node, source, is_copy=is_copy)
        except CannotRestrictError as reason:
            self._note(node.number, node.name, node.call_site, "whole", str(reason))
            return dataset
        self._note(node.number, node.name, node.call_site, way)
        restricted._lineage_node = node
        node.is_in_python = False
        return restricted

    def of_frame(self, number: int, name: str, call_site: str) -> None:
        """A source of a DataFrame was published."""
        if number not in self._reported:
            source = self._sources.get(number)
            is_meant = source is not None and not source["whole"]
            why = self._of_frames.get(number, _OF_FRAMES if is_meant else NOT_NAMED)
            self._note(number, name, call_site, "whole" if why else "filter", why)

    def blocks_of(
        self, number: int, name: str, call_site: str, *, is_copy: bool
    ) -> Sequence[Mapping[str, Any]] | None:
        """The blocks of a scan's source in the spec; None where all of it is read."""
        try:
            blocks = self._blocks(self._named(number), number, name, call_site, is_copy=is_copy)
        except CannotRestrictError as reason:
            self._of_frames[number] = str(reason)
            return None
        self._of_frames[number] = ""
        return blocks

    def _blocks(
        self, source: Source, number: int, name: str, call_site: str, *, is_copy: bool
    ) -> Sequence[Mapping[str, Any]]:
        """Raises CannotRestrictError."""
        self._compare(source, number, name, call_site)
        if is_copy:
            raise CannotRestrictError(_WRITTEN_HERE)
        if self._mode == "replace":
            raise CannotRestrictError(_REPLACED)
        blocks: Sequence[Mapping[str, Any]] | None = source.get("blocks")
        if blocks is None:
            raise CannotRestrictError(source.get("why") or _OF_FRAMES)
        return blocks

    def _named(self, number: int) -> Source:
        """The source in the spec. Raises CannotRestrictError where it is not there, or meant as a whole."""
        source = self._sources.get(number)
        if source is None or source["whole"]:
            why = NOT_NAMED if source is None else source.get("why") or "all its rows are meant"
            raise CannotRestrictError(why)
        return source

    def end(self) -> None:
        """Say which sources of the original were not read."""
        for number, source in self._sources.items():
            if number not in self._reported:
                self._report.differs(f"{_in_words(source)} of the original was not read", is_about_rows=True)

    def _note(self, number: int, name: str, call_site: str, way: str, why: str = "") -> None:
        self._reported.add(number)
        if not self._is_other:
            self._report.source(number, name, call_site, way, why)

    def _compare(self, source: Source, number: int, name: str, call_site: str) -> None:
        """Raises CannotRestrictError unless the source is that of the original."""
        site = source.get("call_site")
        if source["name"] != name or (site and site != call_site):
            is_now = f"{name} at {call_site}" if call_site else name
            self._report.differs(
                f"node {number} is {is_now} here, and was {_in_words(source)} in the original: "
                "it is read whole",
                is_about_rows=True,
            )
            raise CannotRestrictError(f"it was {_in_words(source)} in the original")

    def _restricted(self, dataset: Any, node: Node, source: Source, *, is_copy: bool) -> tuple[Any, str]:
        """What is read in place of the source, and which way that is. Raises CannotRestrictError."""
        count, texts = source.get("partitions"), source.get("texts")
        is_text = reads_texts(dataset) and node.name == "textFile"
        if self._mode == "only" and texts is not None and is_text and count is not None:
            self._describe(dataset, node, source)
            lines = in_few_parts(texts) if self._is_compact else (texts, count)
            return literal(dataset, *lines), "literal"
        if is_copy:
            raise CannotRestrictError(_WRITTEN_HERE)
        if count is None:
            raise CannotRestrictError("the row set does not say how many partitions it had")
        _check_partitions(dataset, count)
        if self._mode != "replace":
            self._describe(dataset, node, source)
        return kept(dataset, self._keep(source, is_text=is_text), is_text=is_text), "filter"

    def _keep(self, source: Source, *, is_text: bool) -> Keep:
        positions = {split["split"]: split["positions"] for split in source.get("splits", ())}
        if self._mode != "replace":
            return Keep(positions, is_without=self._mode == "without")
        if not is_text:
            raise CannotRestrictError(_REPLACED)
        replaced = {
            int(split): {int(position): text for position, text in texts.items()}
            for split, texts in (source.get("replaced") or {}).items()
        }
        return Keep({}, is_without=True, replaced=replaced)

    def _describe(self, dataset: Any, node: Node, source: Source) -> None:
        """What the partitions consist of, now that the records are numbered anew."""
        describe = node.describe
        if describe is None:
            return
        is_text = node.name == "textFile"
        is_known = self._mode == "only" and (is_text or node.name in _OF_FILES)
        needs_list = not is_text or len(source.get("files") or ()) > 1
        count = source.get("partitions") or 0

        def described() -> list[Any]:
            if not is_known:
                return [{"split": split} for split in range(count)]
            return partitions_of(source, describe() if needs_list else None)

        node.describe = described


def _in_words(source: Source) -> str:
    site = source.get("call_site")
    return f"{source['name']} at {site}" if site else str(source["name"])


def reads_texts(dataset: Any) -> bool:
    from pyspark.serializers import UTF8Deserializer

    return type(dataset._jrdd_deserializer) is UTF8Deserializer


def _check_partitions(dataset: Any, count: int) -> None:
    try:
        now = dataset.getNumPartitions()
    except Exception as error:  # noqa: BLE001 - no such file: the job says so itself, when it reads it
        problem = str(error).partition("\n")[0]
        raise CannotRestrictError(f"its partitions could not be counted ({problem})") from None
    if now != count:
        raise CannotRestrictError(f"it has {now} partitions here, and had {count} in the original")


# -- what stands in place of a source ------------------------------------------------------------------


def literal(dataset: Any, texts: Mapping[str, list[str]], count: int) -> Any:
    """An RDD of `count` partitions with these lines, in the form of `dataset`, which textFile made.

    No file is read: the lines go to the JVM as one pickled list for each partition.
    """
    context = dataset.ctx
    jvm = context._jvm
    if not count:
        return rdd_module().RDD(context._jsc.emptyRDD(), context, dataset._jrdd_deserializer)
    lines = [texts.get(str(split), []) for split in range(count)]
    pickled = context._serialize_to_jvm(
        lines,
        context._unbatched_serializer,
        lambda file: jvm.PythonRDD.readRDDFromFile(context._jsc, file, count),
        lambda: jvm.PythonParallelizeServer(context._jsc.sc(), count),
    )
    return _strings(dataset, pickled)


def _strings(dataset: Any, pickled: Any) -> Any:
    """An RDD of the JVM of pickled lists of texts as one of texts, read as `dataset` is."""
    context = dataset.ctx
    return rdd_module().RDD(
        context._jvm.SerDeUtil.pythonToJava(pickled, True), context, dataset._jrdd_deserializer
    )


def kept(dataset: Any, keep: Keep, *, is_text: bool) -> Any:
    """`dataset`, a source, with the records that `keep` keeps; if `is_text`, in the form of a text source."""
    from pyspark.serializers import AutoBatchedSerializer, CPickleSerializer, UTF8Deserializer

    module = rdd_module()
    if isinstance(dataset, module.PipelinedRDD):
        is_chain = isinstance(dataset.func, Pipeline)
        functions: tuple[Callable[[int, Any], Any], ...] = (
            dataset.func.functions if is_chain else (dataset.func,)
        )
        base = module.RDD(dataset._prev_jrdd, dataset.ctx, dataset._prev_jrdd_deserializer)
    else:
        functions = ()
        form = UTF8Deserializer(True) if is_text else dataset._jrdd_deserializer
        base = module.RDD(dataset._jrdd, dataset.ctx, form)
    chain = module.PipelinedRDD.__new__(module.PipelinedRDD)
    # Unpatched: what it makes is no node of the job's, and not captured.
    unpatched = getattr(module.PipelinedRDD.__init__, "__wrapped__", module.PipelinedRDD.__init__)
    unpatched(chain, base, KeptChain(functions, keep), True)
    if is_text:
        chain._jrdd_deserializer = AutoBatchedSerializer(CPickleSerializer())
        return _strings(dataset, chain._jrdd)
    if batches_in(dataset._jrdd_deserializer) == 1:
        chain._jrdd_deserializer = dataset._jrdd_deserializer  # batches of the size that they had
    return module.RDD(chain._jrdd, dataset.ctx, chain._jrdd_deserializer)
