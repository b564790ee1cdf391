"""Makes the wheel, with the agent's jar and the page in it, and says how to install it.

    python3 -m scripts.wheel [FOLDER]

FOLDER is `dist` unless it is named. Needs Python 3.10 with venv, and what builds the parts
(scripts/parts.py). pip builds (hatch_build.py), from an environment of its own in .cache/wheel; all that it
said is in pip.log there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts import parts
from scripts.environment import (
    ROOT,
    EnvironmentFailed,
    advice,
    alone,
    new_environment,
    run_told,
    say,
)

ENVIRONMENT = ROOT / ".cache" / "wheel"
#: How hatch_build.py begins the one line that says why it ends.
_REFUSAL = re.compile(r"lineage-master cannot be built whole: (.*)")


def make(folder: Path) -> Path:
    """The wheel in `folder`, built again; raises EnvironmentFailed and PartsNotBuilt."""
    parts.stale()  # before minutes of downloads
    with alone(ENVIRONMENT):
        python = new_environment(ENVIRONMENT)
        command = [str(python), "-m", "pip", "--disable-pip-version-check", "wheel", "--progress-bar", "off"]
        code, output = run_told(
            "Building the wheel", [*command, "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
        )
        log = ENVIRONMENT / "pip.log"
        log.write_text(output)
    if code != 0:
        refusal = _REFUSAL.search(output)
        if refusal:
            raise parts.PartsNotBuilt(refusal[1])
        raise EnvironmentFailed(advice("what builds the wheel", output, log))
    return max(folder.glob("lineage_master-*.whl"), key=lambda path: path.stat().st_mtime_ns)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        say("usage: python3 -m scripts.wheel [FOLDER]", sys.stderr)
        return 2
    folder = Path(arguments[0]) if arguments else Path("dist")
    try:
        wheel = make(folder)
    except (EnvironmentFailed, parts.PartsNotBuilt) as error:
        say(f"wheel: {error}", sys.stderr)
        return 1
    except OSError as error:
        say(f"wheel: cannot write {error.filename}: {error.strerror}", sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    say(f"{wheel} is ready. Install it into an environment of yours:")
    say(f"    pip install '{wheel}[service]' pyspark")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
