"""docs/triggering.md names every reason and every flag, and no other."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from lineage_service.cli import trigger
from lineage_service.triggering import decisions
from lineage_service.triggering.certain import answers
from lineage_service.triggering.probing import prober
from lineage_service.triggering.weighing import weigher

PAGE = (Path(__file__).parents[4] / "docs" / "triggering.md").read_text(encoding="utf-8")


def test_every_reason_is_documented() -> None:
    code = Path(answers.__file__).read_text() + Path(decisions.__file__).read_text()
    reasons = set(re.findall(r'_run\(\s*"(\w+)"', code)) | {answers.CHANGED, answers.UNCHANGED}
    reasons |= set(re.findall(r'_run\(\s*"(\w+)" if [\w.]+ else "(\w+)"', code)[0])
    reasons |= {"unavailable", "error", prober.PROBED, *weigher.REASONS}
    table = PAGE.partition("## Reasons")[2].partition("\n\n**")[0]
    rows = re.findall(r"^\| (.*?) \| (?:run|\*\*skip\*\*) \|", table, re.M)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == reasons


def test_every_flag_is_documented() -> None:
    parser = argparse.ArgumentParser()
    trigger.configure(parser)
    flags = {text for action in parser._actions for text in action.option_strings if text.startswith("--")}
    assert all(flag in PAGE for flag in flags - {"--help"})
