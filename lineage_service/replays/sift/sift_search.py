"""The search of one sift: wrong outputs, candidates, and the tests that reduce them.

1. The check finds the wrong rows in the outputs of the original.
2. Candidates are the rows that a wrong output was made of: those that all wrong outputs share, then those of
   one, then those of all. Where none of these fail, they are all rows of the inputs. Rows do not count that
   fail without any of them, too, because a source is read whole: the next ones are tried.
   The oddest of them is tried first, and alone: where that fails, not all of them are tested.
3. `smallest_rows` chooses on which of them the job runs, one test after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lineage_service.errors import InvalidQueryError, LineageError, NothingMatchesError
from lineage_service.lineage import AskedRecord, FailingOutput, Failure, Sift, SiftedRow, SourceRow
from lineage_service.queries import Queries, RowSetQuery, StartQuery
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.original import Original
from lineage_service.replays.places import depends_on_places, tells_partitions
from lineage_service.replays.sandbox import Sandbox
from lineage_service.replays.sift.candidate_sets import CandidateSets, SourceRows
from lineage_service.replays.sift.candidates import Candidates, Row
from lineage_service.replays.sift.checks import Check, ReadyCheck
from lineage_service.replays.sift.failing_outputs import FailingOutputs, OutputRow
from lineage_service.replays.sift.job_runs import JobRun, JobRuns
from lineage_service.replays.sift.left_out_runs import why_inferred, why_not_restricted
from lineage_service.replays.sift.ready_test import ready_test
from lineage_service.replays.specification import Plan
from spark_agent import contract
from spark_agent.contract.odd_rows import odd_first
from spark_agent.contract.smallest_rows import OutOfTimeError, SmallestRows, Subset

__all__ = [
    "CheckKind",
    "SiftRequest",
    "SiftSearch",
    "SourceRows",
    "order_of_tests",
    "output_row",
    "sifted_rows",
]

CheckKind = Literal["fails", "test", "wrong", "crash"]
Tested = dict[Subset, bool]
"""Which rows were tested, and whether they fail."""
#: Rows of the result that are listed.
_MOST_LISTED = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SiftRequest:
    """What is to be sifted. `starts` name wrong outputs."""

    kind: CheckKind
    text: str
    starts: tuple[StartQuery, ...] = ()
    failure: Failure | None = None
    notes: tuple[str, ...] = ()


class _NothingRestrictedError(ReplayError):
    """All sources of some candidates are read whole."""


class SiftSearch:
    """Of one request. `check` is None where it is made of the wrong row that was named."""

    def __init__(
        self,
        original: Original,
        queries: Queries,
        texts: SourceRows,
        runs: JobRuns,
        request: SiftRequest,
        check: Check | None,
        template: Plan,
    ) -> None:
        self._original, self._queries, self._texts = original, queries, texts
        self._runs, self._request, self._outputs = runs, request, FailingOutputs(original)
        self._template = template
        self._application_id = original.application_id
        self._notes: dict[str, None] = dict.fromkeys(request.notes)
        self._sinks: tuple[int, ...] = ()
        #: The numbers of the rows of runs that could not be judged.
        self._unresolved: set[Subset] = set()
        #: Had each run what its rows alone give?
        self._is_exact = True
        self._check = check if check is not None else self._ready_check()

    def sift(self, sandbox: Sandbox) -> Sift:
        """Raises LineageError, KeyboardInterrupt."""
        failure = self._request.failure
        failing = self._failing() if failure is None else []
        self._sinks = tuple(dict.fromkeys(row.node for row in failing))
        graph = self._queries.graph(self._application_id)
        self._runs.can_be_compact = not tells_partitions(graph)
        place = depends_on_places(graph, self._sinks)
        if place is not None:
            site = place.call_site.rpartition("/")[2]
            self._note(f"{place.name} ({site}) depends on the places of records: among few rows they differ")
        starts = [_start(row) for row in failing]
        candidates, tested = self._failing_candidates(
            starts if failure is None else [StartQuery(failure=failure.failure)]
        )
        search = SmallestRows(
            len(candidates.rows),
            lambda numbers: self._fails(candidates, numbers),
            order_of_tests(candidates),
            tested,
        )
        search.search()
        return self._result(sandbox, failing, candidates, search)

    def _note(self, sentence: str) -> None:
        self._notes[sentence] = None

    # -- wrong outputs -----------------------------------------------------------------------------------

    def _ready_check(self) -> Check:
        asked = self._asked()
        if len(asked) != 1:
            raise InvalidQueryError("--wrong takes one output row: for several say what is wrong by --fails")
        wrong = asked[0]
        others = (
            text
            for path, batch in self._outputs.texts(wrong.node)
            for row, text in batch
            if (path, row) != (wrong.path, wrong.row)
        )
        return ReadyCheck(ready_test(wrong.text, others))

    def _asked(self) -> list[OutputRow]:
        """The output rows that were named. Raises InvalidQueryError."""
        row_set = self._queries.row_set(self._application_id, RowSetQuery(starts=self._request.starts))
        return [output_row(self._original, record) for record in row_set.asked]

    def _failing(self) -> list[OutputRow]:
        if not self._request.starts:
            return self._outputs.failing(self._outputs.sinks(), self._check)
        asked = self._asked()
        if self._check.is_of_all:
            return asked
        wrong = self._check.failing([row.text for row in asked])
        if not wrong:
            raise NothingMatchesError(
                f"of the named output rows none is {self._check.description}"
                + (f" ({self._check.why})" if self._check.why else "")
            )
        return [asked[number] for number in wrong]

    # -- candidates and tests ----------------------------------------------------------------------------

    def _failing_candidates(self, starts: Sequence[StartQuery]) -> tuple[Candidates, Tested]:
        """The first ones that fail because of their rows, and what was tested; else the first that fail.

        Raises NothingMatchesError, ReplayError.
        """
        sets = CandidateSets(self._original, self._queries, self._texts, self._note)
        why = "no source of the job can be restricted to some of its rows, so none can be sifted"
        error: LineageError = ReplayError(why)
        failing_anyway: tuple[Candidates, Tested, set[Subset]] | None = None
        try:
            for candidates in sets.of(starts):
                is_hopeless = candidates.is_whole and isinstance(error, _NothingRestrictedError)
                if is_hopeless or not candidates.rows:
                    continue
                try:
                    restricted, tested = self._tested(candidates)
                except _NothingRestrictedError as reason:
                    error = error if isinstance(error, NothingMatchesError) else reason
                    continue
                if any(tested.values()) and not self._fails_anyway(restricted, tested):
                    return restricted, tested
                if any(tested.values()):
                    failing_anyway = failing_anyway or (restricted, tested, set(self._unresolved))
                error = NothingMatchesError(self._not_again())
        except LineageError:
            if failing_anyway is None and not isinstance(error, _NothingRestrictedError):
                raise
        if failing_anyway is None:
            raise error
        restricted, tested, self._unresolved = failing_anyway
        return restricted, tested

    def _not_again(self) -> str:
        why = f" ({self._check.why})" if self._check.why else ""
        return f"the job does not fail again on its own input: {self._check.description}{why}"

    def _fails_anyway(self, candidates: Candidates, tested: Tested) -> bool:
        """Does it fail without any of these rows, too, because of a source that is read whole?"""
        if not any(source["whole"] for source in candidates.sources):
            return False
        try:
            if () not in tested:
                tested[()] = self._fails(candidates, ())
        except OutOfTimeError:
            return False
        return tested[()]

    def _tested(self, candidates: Candidates) -> tuple[Candidates, Tested]:
        """What fails: the oddest row alone, or all. Sources that cannot be restricted are read whole then."""
        tested: Tested = {}
        self._unresolved.clear()
        try:
            if any(candidates.texts()) and len(candidates.rows) > 1 and not candidates.is_whole:
                oddest = (order_of_tests(candidates)[0],)
                plan = candidates.plan(self._template, oddest)
                run = self._runs.run(plan, self._sinks)
                if not why_not_restricted(run, plan):
                    tested[oddest] = self._judged(run, oddest)
                if tested.get(oddest) and not self._read_whole(candidates, run):
                    self._note_differences(run)
                    return candidates, tested
            everything = tuple(range(len(candidates.rows)))
            run = self._runs.run(candidates.plan(self._template, everything), self._sinks)
        except OutOfTimeError:
            raise ReplayError("no test failed within --seconds: give more of them") from None
        self._note_differences(run)
        whole = self._read_whole(candidates, run)
        for sentence in whole.values():
            self._note(sentence)
        if whole:
            candidates, tested = candidates.whole_but(whole, "the agent cannot restrict it"), {}
        if not candidates.rows:
            raise _NothingRestrictedError(f"nothing can be sifted: {'; '.join(whole.values())}")
        everything = tuple(range(len(candidates.rows)))
        return candidates, {**tested, everything: self._judged(run, everything)}

    def _note_differences(self, run: JobRun) -> None:
        for difference in run.report.differences:
            self._note(difference)
        inferred = why_inferred(run.report.inferred)
        if inferred:
            self._is_exact = False
            self._note(inferred)

    def _read_whole(self, candidates: Candidates, run: JobRun) -> dict[int, str]:
        """The sources that the run did not restrict, and why."""
        nodes = {source["node"] for source in candidates.sources if not source["whole"]}
        whole: dict[int, str] = {
            source.node: f"{source.name} was read whole: {source.why}"
            for source in run.report.sources
            if source.way == "whole" and source.node is not None and source.node in nodes
        }
        read = {source.node for source in run.report.sources}
        for source in candidates.sources:
            if source["node"] in nodes - read:
                whole[source["node"]] = (
                    f"{source['name']} was not restricted: the run did not read it as the original did"
                )
        return whole

    def _fails(self, candidates: Candidates, numbers: Subset) -> bool:
        plan = candidates.plan(self._template, numbers)
        run = self._runs.run(plan, self._sinks)
        why = why_not_restricted(run, plan)
        if not why:
            return self._judged(run, numbers)
        self._is_exact = False
        self._check.unresolved += 1
        self._check.why = self._check.why or why
        self._unresolved.add(numbers)
        return False

    def _judged(self, run: JobRun, numbers: Subset) -> bool:
        before = self._check.unresolved
        fails = self._check.fails(run)
        if not fails and self._check.unresolved > before:
            self._unresolved.add(numbers)
        return fails

    # -- the result --------------------------------------------------------------------------------------

    def _result(
        self, sandbox: Sandbox, failing: Sequence[OutputRow], candidates: Candidates, search: SmallestRows
    ) -> Sift:
        is_necessary = search.is_necessary()
        best = search.best or ()
        if is_necessary is None or not search.is_minimal:
            self._note(f"the time was over after {self._runs.count} tests: this is the best so far")
        if search.rest in self._unresolved:
            is_necessary = None
        is_whole_read = any(source["whole"] for source in candidates.sources)
        if not best and is_whole_read:
            self._note("the job fails without any of these rows: look at the inputs that are read whole")
        elif not best:
            self._note("the job fails on no rows at all: it is not these inputs that are wrong")
        if candidates.is_whole:
            self._note("the rows of the lineage alone did not decide it: all rows of the inputs were sifted")
        if self._check.unresolved:
            tests = "1 test" if self._check.unresolved == 1 else f"{self._check.unresolved:,} tests"
            self._note(f"{tests} counted as passed: {self._check.why}")
        return Sift(
            sift=sandbox.id,
            application_id=self._application_id,
            test=self._check.description,
            rows=sifted_rows(
                self._application_id,
                self._texts,
                [candidates.rows[number] for number in best[:_MOST_LISTED]],
            ),
            total=len(best),
            of=len(candidates.rows),
            outputs=tuple(
                FailingOutput(path=row.path, row=row.row, line=row.row + 1, text=row.text) for row in failing
            ),
            tests=self._runs.count,
            sufficient=True,
            necessary=is_necessary,
            minimal=search.is_minimal,
            whole=candidates.is_whole,
            unresolved=self._check.unresolved,
            exact=self._is_exact and not is_whole_read,
            sandbox=str(sandbox.folder),
            seconds=0.0,
            saved=None,
            notes=tuple(self._notes),
        )


def order_of_tests(candidates: Candidates) -> Sequence[int]:
    """The rows to try first: the oddest, with those that the program took before, then the others."""
    if candidates.is_whole:
        return ()
    odd = odd_first(candidates.texts())
    others = [number for number in odd if candidates.rows[number] not in candidates.taken]
    taken = [number for number in odd if candidates.rows[number] in candidates.taken]
    return [*others[:1], *taken, *others[1:]]


def output_row(original: Original, record: AskedRecord) -> OutputRow:
    """Raises InvalidQueryError where it is none that can be read."""
    if record.node not in original.sinks or record.path is None or record.row is None:
        raise InvalidQueryError("START is no row of an output file: give one as FILE:LINE")
    if record.text is None:
        raise InvalidQueryError(f"{record.path}:{record.row + 1} cannot be read, so nothing can be tested")
    return OutputRow(record.node, record.path, record.row, record.text)


def sifted_rows(application_id: str, texts: SourceRows, rows: Sequence[Row]) -> tuple[SiftedRow, ...]:
    """Records of sources, with the rows of files that they are, where these are known."""
    by_split: dict[tuple[int, int], list[int]] = defaultdict(list)
    for node, split, position in rows:
        by_split[node, split].append(position)
    named = {
        (node, split, position): row
        for (node, split), positions in by_split.items()
        for position, row in texts.rows(application_id, node, split, positions).items()
    }
    return tuple(_sifted(application_id, row, named.get(row)) for row in rows)


def _sifted(application_id: str, record: Row, row: SourceRow | None) -> SiftedRow:
    node, split, position = record
    return SiftedRow(
        record=f"{contract.node_id(application_id, node)}#{split}#{position}",
        path=None if row is None else row.path,
        row=None if row is None else row.row,
        line=None if row is None else row.line,
        text=None if row is None else row.text,
    )


def _start(row: OutputRow) -> StartQuery:
    return StartQuery(node=str(row.node), path=row.path, row=row.row)
