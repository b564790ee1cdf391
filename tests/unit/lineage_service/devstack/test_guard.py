from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lineage_service.devstack.errors import BusyError, HomeError
from lineage_service.devstack.guard import alone

HOLDER = """
import sys
from pathlib import Path
from lineage_service.devstack.guard import alone
with alone(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_told_who_holds_the_stack(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BusyError, match=rf"stack in {home} \(process {holder.pid}\)"):
            with alone(home, wait_s=0.1):
                pass
        holder.kill()
    with alone(home, wait_s=0):  # the kernel let go of it
        pass


def test_the_stack_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        with alone(tmp_path):
            raise ZeroDivisionError
    with alone(tmp_path, wait_s=0):
        pass


@pytest.mark.parametrize("home", ["file/home", "file"])
def test_a_home_that_cannot_be_made_is_named(home: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeError, match=r"cannot use .*file.* --home or LINEAGE_HOME"):
        with alone(tmp_path / home):
            pass
