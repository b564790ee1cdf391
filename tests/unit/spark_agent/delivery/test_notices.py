from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from spark_agent.delivery.notices import MAX_LINES, Notices


class Refusing(io.StringIO):
    def write(self, _text: str) -> int:
        raise OSError("no space left")


def test_each_text_is_said_once_with_what_it_is_of() -> None:
    stream = io.StringIO()
    notices = Notices(stream=stream)
    for text in ("on", "off", "on"):
        notices.say(text)
    assert stream.getvalue() == "lineage: on\nlineage: off\n"


def test_quiet_says_nothing() -> None:
    stream = io.StringIO()
    Notices(is_quiet=True, stream=stream).say("on", is_last=True)
    assert stream.getvalue() == ""


def test_a_text_of_several_lines_is_one_line_that_moves_no_cursor() -> None:
    stream = io.StringIO()
    Notices(stream=stream).say('on for "Tak\x1b[2Jings"\nlineage: off\r')
    assert stream.getvalue() == 'lineage: on for "Tak?[2Jings" lineage: off\n'


def test_lines_are_bounded_and_the_last_one_is_said_all_the_same() -> None:
    stream = io.StringIO()
    notices = Notices(stream=stream)
    for number in range(3 * MAX_LINES):
        notices.say(f"problem {number}")
    notices.say("the end", is_last=True)
    lines = stream.getvalue().splitlines()
    assert (len(lines), lines[-1]) == (MAX_LINES + 1, "lineage: the end")


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [closed(), Refusing(), object()], ids=["closed", "full", "none at all"])
def test_a_stream_that_takes_nothing_harms_nobody(stream: Any) -> None:
    Notices(stream=stream).say("on")


def test_no_standard_error_at_all_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    Notices().say("on")


def test_lines_go_where_standard_error_is_replaced_by(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = io.StringIO()
    monkeypatch.setattr(sys, "stderr", cell)
    Notices().say("on")
    assert cell.getvalue() == "lineage: on\n"


def run(program: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    begin = "import os, sys, threading\nfrom spark_agent.delivery.notices import Notices\n"
    return subprocess.run([sys.executable, "-c", begin + program], timeout=240, check=False, **streams)


def test_lines_of_threads_do_not_mix_nor_with_what_the_program_has_begun() -> None:
    program = (
        "sys.stderr.write('mine')\n"
        "notices = Notices()\n"
        "say = lambda k: [notices.say(f'{k}{i} ' + 'x' * 900, is_last=True) for i in range(50)]\n"
        "threads = [threading.Thread(target=say, args=(k,)) for k in 'abcd']\n"
        "[each.start() for each in threads]; [each.join() for each in threads]\n"
    )
    done = run(program, capture_output=True)
    lines = done.stderr.decode().removeprefix("mine").splitlines()
    assert (done.returncode, done.stdout, len(lines)) == (0, b"", 200)
    assert all(line.startswith("lineage: ") and len(line) > 900 for line in lines)


def test_a_broken_pipe_leaves_the_exit_code_as_it_is() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run("Notices().say('on')", stdout=subprocess.PIPE, stderr=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stdout) == (0, b"")


def test_a_fork_of_the_driver_says_nothing() -> None:
    done = run(
        "notices = Notices()\nif not os.fork(): notices.say('on')\nelse: os.wait()", capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


class Java:
    """The JVM of a SparkContext, as far as it prints."""

    def __init__(self, *, has_bar: bool) -> None:
        self.printed: list[str] = []
        bar = SimpleNamespace(isDefined=lambda: has_bar)
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(progressBar=lambda: bar))
        out = SimpleNamespace(err=SimpleNamespace(print=self.printed.append))
        self._jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=out)))


def test_under_spark_submit_the_jvm_writes_since_both_streams_go_to_its_standard_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    written: list[str] = []
    stream: Any = SimpleNamespace(fileno=lambda: 2, write=written.append)
    context = Java(has_bar=False)
    Notices(context, stream=stream).say("on")
    assert (context.printed, written) == (["lineage: on\n"], [])


def test_a_line_behind_a_progress_bar_begins_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    stream: Any = SimpleNamespace(fileno=lambda: 2)
    context = Java(has_bar=True)
    notices = Notices(context, stream=stream)
    notices.say("on")
    notices.expect_progress_bar()
    notices.say("complete")
    assert context.printed == ["lineage: on\n", "\nlineage: complete\n"]


def test_many_threads_say_one_text_once() -> None:
    stream = io.StringIO()
    notices = Notices(stream=stream)
    threads = [threading.Thread(target=notices.say, args=("on",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stream.getvalue() == "lineage: on\n"
