"""Which functions are pickled so that their workers say on which row they fail."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import udf

from spark_agent.driver.monkeypatch import Patches
from spark_agent.sql.runtime import function_calls
from spark_agent.worker.function_failures import Attended


def pickled(sc: Any, func: Any, returnType: Any = None) -> Any:
    """As PySpark's own, without a JVM."""
    return func


def test_only_functions_for_rows_are_attended_while_lineage_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udf, "_wrap_function", pickled)
    patches = Patches()
    function_calls.install(patches)
    assert isinstance(udf._wrap_function(None, len, "int"), Attended)
    assert isinstance(udf._wrap_function(None, len, returnType="int"), Attended)
    assert udf._wrap_function(None, dict) is dict  # as a source of data
    patches.undo()
    assert udf._wrap_function is pickled
