from __future__ import annotations

from itertools import pairwise

import pytest

from spark_agent.driver import code_loops
from spark_agent.driver.code_loops import CodeLoops


def loops_of(text: str) -> list[tuple[int, int]]:
    """(line, how many instructions) of each loop."""
    return [(loop.line, len(loop.offsets)) for loop in CodeLoops(compile(text, "job.py", "exec")).loops]


def test_code_without_a_loop_has_none() -> None:
    assert loops_of("a = 1\nif a:\n    b = 2") == []


def test_the_outermost_loop_is_the_first() -> None:
    loops = loops_of("for a in b:\n    for c in d:\n        e\n    f\nwhile g:\n    h")
    assert [line for line, _ in loops if line != 5] == [1, 2]
    assert [line for line, _ in loops].count(5) == 1
    assert [size for _, size in loops] == sorted((size for _, size in loops), reverse=True)


def test_a_cache_behind_an_instruction_belongs_to_it() -> None:
    loops = CodeLoops(compile("for a in b:\n    c(a)", "job.py", "exec"))
    offsets = sorted(loops.loops[0].offsets)
    for offset, following in pairwise(offsets):
        assert all(loops.instruction_at(at) == offset for at in range(offset, following))


def test_of_very_long_code_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_loops, "MAX_BYTES", 10)
    loops = CodeLoops(compile("for a in b:\n    c(a)", "job.py", "exec"))
    assert loops.loops == ()
    assert loops.instruction_at(24) == 24


def test_of_bytecode_that_no_compiler_made_nothing_is_known() -> None:
    code = compile("for a in b:\n    c(a)", "job.py", "exec")
    kinds = set()
    for place in range(0, len(code.co_code), 2):
        for opcode in (93, 110, 131, 140, 175):
            changed = bytearray(code.co_code)
            changed[place : place + 2] = bytes((opcode, 250))
            loops = CodeLoops(code.replace(co_code=bytes(changed)))
            kinds.add(loops.loops == () and loops.instruction_at(24) == 24)
            assert loops.line_of(0) in (0, 1)
    assert True in kinds
