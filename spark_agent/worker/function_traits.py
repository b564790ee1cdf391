"""What a task run needs to know of the functions of its chain, without calling them.

The class attributes of an operator say it. Of a user's own function nothing is known.
"""

from __future__ import annotations

from typing import Any

from spark_agent import contract


class FunctionTraits:
    """What is known of a function that the agent has put into a chain."""

    #: How its outputs relate to its inputs.
    relation = contract.FLOWS
    #: What `derived_values` knows it as: `map` calls a user's function for each record, `combine` is the map
    #: side of combineByKey. Subclasses that do otherwise say so.
    role = ""
    #: May an output come from another input than the one that was read last?
    looks_back = True
    #: Does it note which input its function raised on, in a `CulpritNote`?
    notes_culprits = False


def role_of(function: Any) -> str:
    return function.role if isinstance(function, FunctionTraits) else ""


def looks_back(function: Any) -> bool:
    """May an output of `function`, an operator or a user's own, come from an input before the last one?"""
    return function.looks_back if isinstance(function, FunctionTraits) else function is not None


def is_partition_bound(function: Any) -> bool:
    """Is it not known what of a partition went into an output? Its streams, if it has any, know better."""
    return not isinstance(function, FunctionTraits) or function.relation == contract.PARTITION
