"""What inputs gave and outputs were made of, counted from stored flows, against loops over their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.store.tables import TABLES
from lineage_service.tracing.columns.flow_files import FlowFiles
from lineage_service.tracing.debugging.tallies import Tally
from lineage_service.tracing.debugging.unit_tallies import UnitRequest, unit_tallies
from lineage_service.tracing.debugging.unit_values import fan_in_of, fan_out_of, input_with, output_with

NODE, RUN, OTHER = 1, 10, 20
INPUTS = 31

Flow = tuple[int, int, int | None]
"""(output, input, run of the input): one output from one input."""

flows = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, INPUTS - 1), st.sampled_from([None, None, RUN, OTHER])),
    min_size=1,
    max_size=60,
)
cuts = st.integers(1, 20)


@contextmanager
def stored(rows: list[tuple[int, int, int, int | None]], cut: int) -> Iterator[FlowFiles]:
    """Rows (out_pos, out_count, in_pos, in_run) in files, each with rows of other streams around them."""
    with TemporaryDirectory() as name:
        paths = []
        for at, first in enumerate(range(0, len(rows), cut)):
            mine = sorted(rows[first : first + cut], key=lambda row: row[0])
            every = [
                (0, RUN, 3, 1, 4, 0, None),
                *((NODE, RUN, out, count, position, 0, run) for out, count, position, run in mine),
                (NODE, RUN + 1, 5, 1, 5, 0, None),
            ]
            table = pa.table(
                {
                    "application_id": ["app"] * len(every),
                    **{
                        field.name: pa.array([row[column] for row in every], field.type)
                        for column, field in enumerate(list(TABLES["flows"])[1:])
                    },
                }
            )
            paths.append(str(Path(name) / f"{at}.parquet"))
            pq.write_table(table, paths[-1], row_group_size=7)
        yield FlowFiles(paths)


def units(tally: Tally | None) -> list[int]:
    return [] if tally is None else np.repeat(tally.values, tally.counts).tolist()


def check() -> None:
    """The time is never spent."""


@given(flows, cuts)
def test_single_flows_are_counted_by_input_and_by_output(pairs: list[Flow], cut: int) -> None:
    own = Counter(position for _, position, run in pairs if run in (None, RUN))
    made_of = Counter(output for output, _, _ in pairs)
    with stored([(output, 1, position, run) for output, position, run in pairs], cut) as files:
        request = UnitRequest(INPUTS, has_fan_out=True, has_fan_in=True)
        tallies = unit_tallies(files, {(NODE, RUN): request}, check)[NODE, RUN]
        assert tallies.fan_out is not None
        assert tallies.fan_in is not None
        assert units(tallies.fan_out.tally) == sorted(own[at] for at in range(INPUTS))
        assert units(tallies.fan_in.tally) == sorted(made_of.values())
        assert own[tallies.fan_out.low] == min(own[at] for at in range(INPUTS))  # type: ignore[index]
        assert made_of[tallies.fan_in.high] == max(made_of.values())  # type: ignore[index]
        every = np.arange(INPUTS)
        assert fan_out_of(files, (NODE, RUN), every).tolist() == [own[at] for at in range(INPUTS)]
        outputs = np.array(sorted(made_of))
        assert fan_in_of(files, (NODE, RUN), outputs).tolist() == [made_of[at] for at in sorted(made_of)]
        value = made_of[pairs[0][0]]
        assert output_with(files, (NODE, RUN), value, check) == min(
            output for output, count in made_of.items() if count == value
        )
        value = own[pairs[0][1]]
        first = min(at for at in range(INPUTS) if own[at] == value)
        assert input_with(files, (NODE, RUN), request, value, check) == first


@given(st.lists(st.integers(0, 9), min_size=1, max_size=INPUTS), cuts)
def test_spans_are_counted_by_their_sizes(counts: list[int], cut: int) -> None:
    starts = np.cumsum([0, *counts]).tolist()
    rows = [(starts[at], count, at, None) for at, count in enumerate(counts) if count]
    with stored(rows, cut) as files:
        request = UnitRequest(len(counts), has_fan_out=True, is_spanning=True)
        tallies = unit_tallies(files, {(NODE, RUN): request}, check)[NODE, RUN]
        assert units(None if tallies.fan_out is None else tallies.fan_out.tally) == sorted(counts)
        assert tallies.fan_in is None
        assert fan_out_of(files, (NODE, RUN), np.arange(len(counts))).tolist() == counts
        value = counts[-1]
        found = input_with(files, (NODE, RUN), request, value, check)
        assert found is not None
        assert counts[found] == value


def test_a_task_whose_flows_are_not_there_dropped_all_its_inputs() -> None:
    with stored([(0, 1, 0, None)], 1) as files:
        request = UnitRequest(4, has_fan_out=True, has_fan_in=True)
        tallies = unit_tallies(files, {(7, 7): request}, check)[7, 7]
    assert tallies.fan_out is not None
    assert units(tallies.fan_out.tally) == [0, 0, 0, 0]
    assert tallies.fan_in is None
