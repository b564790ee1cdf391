"""What a worker must know of one pipelined chain of operators: the driver pickles it with the command."""

from __future__ import annotations

from dataclasses import dataclass, field

from spark_agent.delivery.settings import AgentSettings

#: Local property that names the action that a job serves.
ACTION = "spark.lineage.action"
#: Local property that says that something is persisted: what a task leaves there outlives its attempt.
PERSISTING = "spark.lineage.keeping"


@dataclass(frozen=True)
class Plan:
    """What a worker must know of its chain."""

    application_id: str
    settings: AgentSettings
    flow_partitions: int
    input_node: int
    reads_shuffle: bool
    nodes: tuple[int, ...]
    value_nodes: tuple[int, ...] = ()
    user_nodes: tuple[int, ...] = ()  # mapPartitions with a function of the user's
    read_by_action: int | None = None  # the last node of the user's, where the action goes on by itself
    sides: tuple[int, ...] = ()  # the nodes of the two sides of the cartesian product that it reads
    names: tuple[str, ...] = ()  # of `nodes`, for a redaction function
    problem: str = ""  # why blocks will not arrive, as far as the driver knows
    reads_sides: bool = False  # the side of each record that it reads says whether it is on a sampled path
    writes_headers: bool = False  # the batches that leave have headers
    is_read_in_task: bool = False  # the task that computes it may read it on, and fail then
    digest_nodes: tuple[int, ...] = ()  # whose records get digests; `input_node` may be one
    digest_salt: bytes = field(default=b"", repr=False)
