"""A replay at a terminal: what was run again, what came out, and how that differs."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from lineage_service.cli.query.output import plain, print_line
from lineage_service.cli.replay_steps import show_steps
from lineage_service.lineage import OutputDifferences, Replay, ReplayedOutput

__all__ = ["show_replay"]

_STYLES = {"reproduced": "green", "close": "green", "changed": "yellow", "no": "red", "refused": "red"}
_MOST_LISTED = 20


def show_replay(console: Console, replay: Replay) -> None:
    console.print(plain(_heading(replay), "bold"), soft_wrap=True)
    for refusal in replay.refused or ():
        where = f" at {refusal.where}" if refusal.where else ""
        path = f": {refusal.path}" if refusal.path else ""
        console.print(plain(f"refused     {refusal.what}{path}{where}", "red"), soft_wrap=True)
    if replay.refused:
        console.print(plain("            no file of yours was changed"), soft_wrap=True)
    for output in replay.outputs:
        for line in _output_lines(output):
            print_line(console, line)
    if replay.steps is not None:
        show_steps(console, replay.steps)
    for failure in replay.skipped or ():
        print_line(console, plain(f"skipped     {failure}", "yellow"))
    for differences in replay.diff or ():
        _show_differences(console, differences)


def _heading(replay: Replay) -> str:
    rounds = f"{replay.rounds} round{'' if replay.rounds == 1 else 's'}"
    of = "" if replay.total is None else f" of {replay.total:,}"
    paths = dict.fromkeys(used.path.rpartition("/")[2] for used in replay.used if used.path and used.rows)
    files = f" of {', '.join(list(paths)[:3])}{', ..' if len(paths) > 3 else ''}" if paths else ""
    what = {
        "only": f"replayed {replay.rows:,}{of} rows{files}",
        "without": f"replayed without {replay.rows:,}{of} rows{files}",
        "replace": f"replayed with {replay.rows:,}{of} rows{files} replaced",
        "all": "replayed all rows",
    }[replay.mode]
    end = (
        "yours were not touched"
        if replay.verdict != "refused"
        else f"`lineage replay --clean {replay.replay}`"
    )
    return f"{what} in {rounds}, {replay.seconds:.1f} s; outputs in {replay.sandbox}, {end}"


def _output_lines(output: ReplayedOutput) -> Iterator[Text]:
    verdict = plain(f"{output.verdict:12}", _STYLES[output.verdict])
    place = f"{output.path}:{output.line}" if output.path is not None else output.record or "the failure"
    if output.verdict in ("changed", "close"):
        yield verdict + plain(place, "cyan")
        yield plain(f"            was {output.was}")
        yield plain(f"            is  {output.is_}")
    else:
        yield verdict + plain(place, "cyan") + plain(f"  {output.was}" if output.was is not None else "")
    if output.why:
        yield plain(f"            {output.why}", "dim")


def _show_differences(console: Console, differences: OutputDifferences) -> None:
    if differences.same is None:
        console.print(
            plain(f"{differences.path}: not compared: {differences.note}", "yellow"), soft_wrap=True
        )
        return
    print_line(
        console,
        plain(
            f"{differences.path}: {differences.changed_total:,} changed, {differences.gone_total:,} gone, "
            f"{differences.new_total:,} new, {differences.same:,} the same",
            "bold",
        ),
    )
    for changed in differences.changed[:_MOST_LISTED]:
        print_line(console, plain("~ ", "yellow") + plain(f"{changed.was} -> {changed.is_}", "yellow"))
    for sign, style, texts in (("-", "red", differences.gone), ("+", "green", differences.new)):
        for text in texts[:_MOST_LISTED]:
            print_line(console, plain(f"{sign} {text}", style))
    lists = (differences.changed, differences.gone, differences.new)
    if any(len(rows) > _MOST_LISTED for rows in lists):
        print_line(console, plain(f"  (the first {_MOST_LISTED} of each: --json has more)", "dim"))
    if differences.note:
        console.print(plain(differences.note, "yellow"), soft_wrap=True)
