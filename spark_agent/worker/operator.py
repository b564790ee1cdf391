"""The operators that replace PySpark's own functions in a chain: their base class.

An operator is a picklable callable that does what the function in whose place it stands does, and can capture
how its outputs relate to its inputs. `operators` has the operators themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_agent.worker.function_traits import FunctionTraits

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun


class Operator(FunctionTraits):
    """A function of a chain that gives the records that PySpark's own would give, in the same order."""

    #: The number of its node, which the plan of its chain says.
    node = -1
    #: The name of its node where that is an internal node. Published: it stays where a class gets another
    #: name.
    node_name = ""
    #: Does it drop what its function raises on? Only in replays that ask for it.
    skips_failing = False

    def skip_failing(self) -> None:
        """Drop what its function raises on. Values are then derived from nothing: some may be missing."""
        self.skips_failing, self.role = True, ""

    def __call__(self, partition: int, records: Any) -> Any:
        """The records, where nothing is captured."""
        raise NotImplementedError

    def capture(self, run: TaskRun, records: Any) -> Any:
        """The records, and to `run` how they relate to the inputs. Here `relation` says all of that."""
        return self(run.partition, records)
