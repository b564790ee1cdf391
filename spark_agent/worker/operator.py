"""The function of a chain that the agent knows. Its class says what others need to know of it."""

from __future__ import annotations

from typing import Any

from spark_agent import contract


class Operator:
    """A function of a chain that the agent knows. `relation` is how its outputs relate to its inputs."""

    relation = contract.FLOWS
    #: The number of its node, which the plan of its chain says.
    node = -1
    #: What `derived_values` knows it as: `map` calls a user's function for each record, `combine` is the map
    #: side of combineByKey. Subclasses that do otherwise say so.
    role = ""
    #: May an output come from another input than the one that was read last?
    looks_back = True

    def __call__(self, split: int, records: Any) -> Any:
        raise NotImplementedError


def looks_back(function: Any) -> bool:
    """May an output of `function`, an operator or a user's own, come from an input before the last one?"""
    return function.looks_back if isinstance(function, Operator) else function is not None


def is_partition_bound(function: Any) -> bool:
    """Is it not known what of a partition went into an output? Its streams, if it has any, know better."""
    return not isinstance(function, Operator) or function.relation == contract.PARTITION
