from __future__ import annotations

from io import StringIO

from rich.console import Console

from lineage_service.devstack.progress import Bars, Lines, console_reporter


def test_where_nobody_watches_a_wait_is_a_line_every_three_seconds() -> None:
    now = [0.0]
    output = StringIO()
    reporter = Lines(Console(file=output), clock=lambda: now[0])
    with reporter.waiting("Fetching [3] jars", 10_000_000) as tick:
        for second in (1.0, 2.0, 3.0, 4.0, 5.0, 6.5):
            now[0] = second
            tick(1_000_000)
    reporter.say("Done")
    assert output.getvalue().splitlines() == [
        "Fetching [3] jars ...",
        "Fetching [3] jars: 3 of 10 MB, 3 s",
        "Fetching [3] jars: 6 of 10 MB, 6 s",
        "Done",
    ]


def test_a_terminal_has_bars() -> None:
    console = Console(file=StringIO(), force_terminal=True)
    reporter = console_reporter(console)
    assert isinstance(reporter, Bars)
    with reporter.waiting("Fetching", 10) as tick:
        tick(5)
    with reporter.waiting("Waiting") as tick:
        tick(0)
    assert isinstance(console_reporter(Console(file=StringIO(), force_terminal=False)), Lines)
