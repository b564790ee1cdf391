"""The first and the last line that the agent says of an application.

Promises no more than the agent knows: what was delivered to Kafka, never what the stores have of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Reasons of gaps that the last line repeats.
MAX_REASONS = 2


def started(application_id: str, name: str, servers: str) -> str:
    """Where the lineage goes, and how to ask for it."""
    return f'on for {application_id} "{name}", to Kafka at {servers}; to ask: lineage graph {application_id}'


def ended(
    application_id: str,
    *,
    operations: int,
    events: int,
    counters: Mapping[str, int],
    problem: str,
    gaps: Sequence[str],
    spooled_events: int = 0,
    hosts: Sequence[str] = (),
) -> str:
    """Complete, or what is missing. `problem` says why blocks or events were not delivered.

    `hosts`: where the blocks that `counters` call spooled, and `spooled_events`, wait to be sent.
    """
    blocks, dropped, lost = counters["blocks"], counters["dropped"], counters["events_lost"]
    missing: list[str] = []
    if dropped or lost:
        parts = [f"{dropped} of {_count(blocks, 'block')} of flows"] if dropped else []
        parts += [f"{lost} of {_count(events, 'event')}"] if lost else []
        missing.append(f"{' and '.join(parts)} not delivered to Kafka" + (f" ({problem})" if problem else ""))
    waiting = _waiting(counters["spooled"], spooled_events, hosts, "" if missing else problem)
    if gaps:
        more = f" (and {len(gaps) - MAX_REASONS} more)" if len(gaps) > MAX_REASONS else ""
        missing.append(f"not followed: {'; '.join(gaps[:MAX_REASONS])}{more}")
    elif counters["queries_failed"]:
        missing.append(f"{_count(counters['queries_failed'], 'query', 'queries')} not followed")
    if missing:
        return f"incomplete for {application_id}: {'; '.join([*missing, *waiting])}"
    if waiting:
        return f"not delivered yet for {application_id}: {waiting[0]}"
    if not operations:
        return f"nothing to capture in {application_id}: no operation ran"
    delivered = [_count(operations, "operation"), _count(counters["runs"], "task run")]
    delivered += [f"{_count(blocks, 'block')} of flows"] if blocks else []
    return (
        f"complete for {application_id}: {', '.join(delivered[:-1])} and {delivered[-1]} delivered to Kafka; "
        "`lineage consume` takes them into the stores"
    )


def _waiting(blocks: int, events: int, hosts: Sequence[str], problem: str) -> list[str]:
    if not blocks + events:
        return []
    parts = [_count(blocks, "block of flows", "blocks of flows")] if blocks else []
    parts += [_count(events, "event")] if events else []
    reason = f" ({problem})" if problem else ""
    return [
        f"{' and '.join(parts)} wait on {', '.join(hosts)} to be delivered{reason}: the next job with "
        "lineage there sends them, and so does `lineage spool deliver`"
    ]


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
