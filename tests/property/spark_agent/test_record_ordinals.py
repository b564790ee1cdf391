"""Records of a chain are those at the same ordinals of a replay of their rows, whatever functions give."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from spark_agent.client.chosen_records import _ordinals
from spark_agent.contract.row_sets import ranges_of
from spark_agent.worker.operators.kept_positions import Keep


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=3),  # outputs of each row
    st.data(),
)
def test_records_are_at_the_ordinals_of_their_rows(partitions: list[list[int]], data: st.DataObject) -> None:
    outputs = {
        split: [(split, row, copy) for row, count in enumerate(counts) for copy in range(count)]
        for split, counts in enumerate(partitions)
    }
    places = [(split, offset) for split, made in outputs.items() for offset in range(len(made))]
    chosen = data.draw(st.sets(st.sampled_from(places))) if places else set()
    asked = [{"partition": split, "offset": offset} for split, offset in chosen]
    rows = {outputs[split][offset][:2] for split, offset in chosen}
    reached = [
        {"partition": split, "offset": offset}
        for split, made in outputs.items()
        for offset, record in enumerate(made)
        if record[:2] in rows
    ]
    ordinals = _ordinals(asked, data.draw(st.permutations(reached)))
    replayed: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for split, made in outputs.items():
        replayed[split] = [record for record in made if record[:2] in rows]
    keep = Keep({split: ranges_of(numbers) for split, numbers in ordinals.items()})
    kept = {record for split, records in replayed.items() for record in keep(split, records)}
    assert kept == {outputs[split][offset] for split, offset in chosen}
