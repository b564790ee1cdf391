"""Writes the tables of docs/scale.md from a result of perf.ingest.

    python -m perf.scale --ingest perf/results/ingest-DATE.json [--write docs/scale.md] [--terabytes 10]

Without --write it prints them. The same result gives the same tables: the simulated days have a seed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from perf.ingest import report
from perf.ingest.report import Result
from perf.scale import paper
from perf.scale.day import Model

BEGIN, END = "<!-- tables of python -m perf.scale -->", "<!-- end of the tables -->"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m perf.scale", description="Makes the tables of docs/scale.md."
    )
    parser.add_argument("--ingest", type=Path, required=True, metavar="FILE", help="a result of perf.ingest")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page to put them into")
    parser.add_argument("--terabytes", type=float, default=10.0, help="of input a day (default: 10)")
    options = parser.parse_args(arguments)
    result = report.from_json(json.loads(options.ingest.read_text()))
    generated = tables(result, options.ingest.name, options.terabytes)
    if options.write is None:
        print(generated)
    else:
        options.write.write_text(replaced(options.write.read_text(), generated))
    return 0


def replaced(page: str, generated: str) -> str:
    """The page with other tables between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"the page lacks the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{generated}\n\n{END}{after}"


def tables(result: Result, name: str, terabytes: float) -> str:
    """All tables as Markdown; `name` is the file of the result."""
    shapes = paper.shapes(result)
    first, size = shapes[0], terabytes * paper.TB
    need = paper.need(first, size)
    many = paper.model_of(first, size, jobs=100, job_s=1_800.0)
    one = paper.model_of(first, size, jobs=1, job_s=6 * 3_600.0)
    sections = [
        f"From [perf/results/{name}](../perf/results/{name}) ({result.about.get('time', 'no time')}; "
        f"{result.about.get('machine', 'no machine')}; note: {result.about.get('note', 'none')}).",
        f"### On paper: {terabytes:g} TB of input a day",
        paper.needs_table(shapes, size),
        _memory(result),
        f"### Simulated: {_jobs(first, many)} at random times",
        _assumed(many),
        paper.day_table(many, paper.busy_in(need, many.jobs, many.job_s)),
        f"### Simulated: {_jobs(first, one)}",
        _assumed(one),
        paper.day_table(one, paper.busy_in(need, one.jobs, one.job_s)),
    ]
    return "\n\n".join(section for section in sections if section)


def _jobs(shape: paper.Shape, model: Model) -> str:
    period = model.messages_a_job * shape.flows_per_message / shape.flows_per_byte
    number = "one job" if model.jobs == 1 else f"{model.jobs} jobs"
    return f"{shape.title}, {number} of {paper.in_words(period)}, {paper.duration(model.job_s)} each"


def _assumed(model: Model) -> str:
    return (
        f"Each job sends {model.messages_a_job:,} messages, {model.burst:.0%} of them in its last tenth. "
        f"There are {model.partitions} partitions, and the seed is {model.seed}. "
        f"One consumer takes {model.messages_per_s:.1f} messages a second. "
        f"It dies every {model.mtbf_s / 3600:g} h on average and is away for {model.restart_s:g} s."
    )


def _memory(result: Result) -> str:
    after = result.afterwards
    peaks = [cost.peak_mib for case in result.measured for cost in case.costs]
    lines = [f"- A consumer took {max(peaks):.0f} MiB at its peak, over all cases of the result."]
    if after is not None:
        largest = (
            f"The largest trace counted {after.largest:,} records, "
            f"at {after.serve.peak_mib * 2**20 / after.largest:,.0f} bytes of the peak for each."
            if after.largest
            else "The largest one, of the most frequent word, did not end in its time."
        )
        lines += [
            f"- `lineage serve` took {after.serve.peak_mib:.0f} MiB at its peak for traces of one "
            f"application with {after.flows:,} flows. {largest}",
            f"- `lineage maintain` took {1e9 * after.maintain_s / after.flows:.0f} ns a flow and "
            f"{after.maintain.peak_mib:.0f} MiB, and left {after.files_after:,} of "
            f"{after.files_before:,} files.",
        ]
    if result.commits:
        first, last = result.commits[0], result.commits[-1]
        rates = f"{1000 / last.ms:.0f} to {1000 / first.ms:.0f}"
        lines.append(
            f"- A batch of one small block takes two commits: {first.ms:.0f} ms in a store of "
            f"{first.batches:,} such batches, and {last.ms:.0f} ms in one of {last.batches:,}. "
            f"That is {rates} batches a second on a local disk, from all consumers together."
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
