from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from spark_agent.sql.rewrite.operators.merges import columns_of_table


@dataclass
class Plan:
    """A plan by the name of its operator, what is below it, and the ids of its columns."""

    kind: str
    below: list[Plan] = field(default_factory=list)
    columns: tuple[int, ...] = ()

    def children(self) -> list[Plan]:
        return self.below


class Catalyst:
    """Reads these plans."""

    def items(self, seq: Any) -> list[Any]:
        return list(seq)

    def kind(self, plan: Plan) -> str:
        return plan.kind

    def column_ids(self, plan: Plan) -> tuple[int, ...]:
        return plan.columns


def column(number: int) -> Any:
    return SimpleNamespace(exprId=lambda: SimpleNamespace(id=lambda: number))


def of_table(plan: Plan, *columns: int) -> set[int] | None:
    catalyst: Any = Catalyst()
    rows: Any = plan
    return columns_of_table(catalyst, rows, [column(number) for number in columns])


JOIN = Plan("Join", [Plan("Scan", columns=(1, 2)), Plan("Scan", columns=(3,))])


def test_the_table_is_at_the_left_of_the_join_whatever_stands_above_it() -> None:
    assert of_table(JOIN, 1, 3) == {1, 2}
    assert of_table(Plan("Filter", [Plan("RebalancePartitions", [Plan("Project", [JOIN])])]), 1, 3) == {1, 2}


def test_without_a_join_there_is_only_the_table() -> None:
    assert of_table(Plan("Project", [Plan("Scan", columns=(1, 2))]), 1) == {1}


def test_where_the_columns_are_of_neither_side_nothing_is_known() -> None:
    assert of_table(Plan("Window", [JOIN]), 1, 9) is None


def test_where_no_join_is_found_nothing_is_known() -> None:
    assert of_table(Plan("Filter", [Plan("Union", [JOIN, JOIN])]), 1, 3) is None
