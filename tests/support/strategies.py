"""Hypothesis strategies for messages of the contract."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from spark_agent import contract
from spark_agent.contract import Block

POSITION = st.integers(0, 2**63 - 1) | st.integers(0, 300)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


TYPED = st.tuples(st.sampled_from(["str", "int", "float", "bool", "none", "bytes", "json", "repr"]), TEXT)


#: Types that no agent sends: a column of these is a JSON array.
STRANGE = st.tuples(st.sampled_from(["", "ü", "x" * 81, *map(str, range(20))]), TEXT)


@st.composite
def columns_of(draw: st.DrawFn, relation: str) -> dict[str, list[Any]]:
    if relation in (contract.KEYS, contract.VALUES):
        texts = draw(st.lists(TYPED, max_size=20) | st.lists(TYPED | STRANGE, max_size=30))
        outputs = st.lists(POSITION, min_size=len(texts), max_size=len(texts))
        return {"text": texts} | draw(st.just({}) | outputs.map(lambda out: {"out": out}))
    length = draw(st.integers(0, 30))
    if relation == contract.GATHER:
        counts = draw(st.lists(st.integers(0, 6), min_size=length, max_size=length))
        total = sum(counts)
        return {"count": counts, "in": draw(st.lists(POSITION, min_size=total, max_size=total))}
    names = list(contract.BLOCK_COLUMNS[relation])
    names += draw(st.sampled_from([(), contract.OPTIONAL_COLUMNS.get(relation, ())]))
    column = st.lists(POSITION, min_size=length, max_size=length)
    return {name: draw(column | column.map(sorted)) for name in names}


@st.composite
def blocks(draw: st.DrawFn, relations: tuple[str, ...] = tuple(contract.BLOCK_COLUMNS)) -> Block:
    relation = draw(st.sampled_from(relations))
    small = st.integers(0, 2**31 - 1)
    columns = draw(columns_of(relation))
    of_source = relation in contract.BY_ID and "run" not in columns
    return Block(
        application_id=draw(st.text(max_size=30)),
        node=draw(small),
        run=draw(st.integers(0, contract.MAX_RUN - 1)),
        split=draw(small),
        seq=draw(small),
        relation=relation,
        base_in=draw(POSITION),
        base_out=draw(POSITION),
        columns=columns,
        source=draw(small if relation == contract.IDS else st.none() | small) if of_source else None,
    )
