"""Fuzzes the decoders of the wire contract, guided by what their code does. Needs atheris.

    python -m scripts.fuzz_contract block -max_total_time=600
    python -m scripts.fuzz_contract event -max_total_time=600

What follows the first word goes to libFuzzer. It begins with the golden samples, and keeps in .cache/fuzz
what it found worth keeping. A message that raises anything but ContractError, or does not say the same after
it was encoded again, ends the run and is written to .cache/fuzz/block-crash-...: make it a test, then mend.
"""

from __future__ import annotations

import sys
from pathlib import Path

FUZZ = Path(".cache/fuzz")


def main(argv: list[str]) -> None:
    if not argv or argv[0] not in ("block", "event"):
        sys.exit("usage: python -m scripts.fuzz_contract block|event [libFuzzer flags]")
    try:
        import atheris
    except ModuleNotFoundError:
        sys.exit("this needs atheris: pip install atheris, into an environment of its own")
    with atheris.instrument_imports(
        include=["spark_agent", "lineage_service.decode.rows", "lineage_service.graph.event_rows"]
    ):
        from tests.support.mutations import BLOCKS, EVENTS, swallow_block, swallow_event
    kind, *flags = argv
    corpus = FUZZ / kind
    corpus.mkdir(parents=True, exist_ok=True)
    for number, sample in enumerate(BLOCKS if kind == "block" else EVENTS):
        (corpus / f"sample-{number}").write_bytes(sample)
    swallow = swallow_block if kind == "block" else swallow_event
    arguments = [sys.argv[0], str(corpus), f"-artifact_prefix={FUZZ}/{kind}-", "-rss_limit_mb=1000", *flags]
    atheris.Setup(arguments, lambda message: swallow(bytes(message)) and None)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
