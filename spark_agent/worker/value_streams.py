"""Keys and values of records as texts: which are captured, what leaves the executor, how they are sent.

Promises that no text leaves before the user's redaction function gave it, that a text is never longer than
asked for, and that what was cut is counted. Never raises into the job. Nothing is pickled: the service
unpickles nothing, so what has no form as text, number or JSON goes as its repr.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from spark_agent import contract
from spark_agent.worker.redaction import redacting
from spark_agent.worker.text_dictionary import (
    DICTIONARY_BYTES,
    TEXT_OVERHEAD,
    TRIED,
    WRITTEN_OUT_CHARACTERS,
    TextDictionary,
)

if TYPE_CHECKING:
    from spark_agent.worker.block_sink import BlockSink

#: A column leaves before it holds more: below the block limit even if UTF-8 has four bytes of each character.
MAX_COLUMN_CHARACTERS = 200_000
#: Strings of at most so many characters, or half of a pair, are encoded together, so many at a time.
SHORT, SHORT_IN_PAIR, TOGETHER = 256, 64, 128
#: What the JSON of a pair of short ones has at most.
PAIR_CHARACTERS = 2 * 6 * SHORT_IN_PAIR + 8


class TextStream:
    """Typed texts of the outputs of one node, in output order: its keys or its values.

    A block has the text of each output, or each different text once and a code for each output.
    """

    __slots__ = (
        "_characters",
        "_codes",
        "_dictionary",
        "_documents",
        "_outputs",
        "_relation",
        "_shipped",
        "_sink",
        "_tally",
        "_texts",
        "_values",
        "add",
        "limit",
        "node",
    )

    def __init__(self, sink: BlockSink, node: int, relation: str) -> None:
        settings = sink.plan.settings
        self._sink = sink
        self.node = node
        self._relation = relation
        is_value = relation == contract.VALUES
        self.limit = settings.values_max_characters if is_value else contract.MAX_TEXT_CHARACTERS
        self._tally = sink.tally
        self._texts: list[contract.Text] = []
        self._documents = contract.Documents()  # texts behind these that are given by a document
        self._outputs: list[int] = []  # their positions, where not every output has a text
        self._characters = 0
        self._values: list[Any] = []  # short ones, deferred
        self._dictionary: TextDictionary | None = None  # not where `add` is called
        self._codes: list[int] = []
        self._shipped = 0
        #: add(value): the text of the next output.
        self.add: Callable[[Any], None] = self._add
        if settings.redact:
            operation = dict(zip(sink.plan.nodes, sink.plan.names, strict=False)).get(node, "")
            kind = "value" if is_value else "key"
            self.add = redacting(settings.redact, operation, kind, self._tally, self.append, self.limit)

    def _add(self, value: Any) -> None:
        self.append(contract.whole_text(value, self.limit))

    def append(self, text: contract.Text) -> None:
        size = len(text[1])
        if size > self.limit:
            self._tally.cut += 1
            text, size = contract.cut_text(text, self.limit), self.limit
        size += TEXT_OVERHEAD
        if self._characters + size > MAX_COLUMN_CHARACTERS:
            self._ship()
        if self._documents:
            self._mix()
        self._texts.append(text)
        self._characters += size

    def add_document(self, document: str) -> None:
        """The text of the next output is that of what `document` parses to: see `contract.may_be_parsed`."""
        size = len(document) + TEXT_OVERHEAD
        if self._characters + size > MAX_COLUMN_CHARACTERS:
            self._ship()
        self._documents.append(document)
        self._characters += size

    def _mix(self) -> None:
        self._texts += [(contract.PARSED, document) for document in self._documents]
        self._documents.clear()

    def through(self, records: Iterable[Any]) -> Iterator[Any]:
        """The records, with the text of each one added as it passes."""
        if self._sink.plan.settings.redact:
            return map(self.note, records)
        if (self._sink.plan.application_id, self.node) not in self._sink.distinct_texts:
            self._dictionary = TextDictionary()
        return self._passing(self._deferring(), records)

    def keys_through(self, pairs: Iterable[Any], *, differ: bool = True) -> Iterator[Any]:
        """As `through`, with the text of the key of each pair. The keys that leave a merge all differ."""
        if self._sink.plan.settings.redact:
            return map(self.note_key, pairs)
        if not differ:
            self._dictionary = TextDictionary()
        defer = self._deferring()

        def defer_key(pair: Any) -> Any:
            defer(pair[0])
            return pair

        return self._passing(defer_key, pairs)

    def _passing(self, defer: Callable[[Any], Any], records: Iterable[Any]) -> Iterator[Any]:
        """`defer` under `map`: it goes on after a record that raised."""
        is_ended = False

        def end() -> Iterator[Any]:
            nonlocal is_ended
            is_ended = True
            yield from ()

        def pieces() -> Iterator[Iterator[Any]]:
            source = chain(records, end())
            while not is_ended:
                yield map(defer, islice(source, TOGETHER))
                self._encode_deferred()

        return chain.from_iterable(pieces())

    def _deferring(self) -> Callable[[Any], Any]:
        """A function that defers a value, or makes its text now, and gives it back.

        Short strings, and pairs of these and of integers, cannot change and are equal only where their texts
        are: they are deferred and encoded together. Floats are not such (0.0 == -0.0), and neither they nor
        bools may meet an integer (1 == 1.0 == True).
        """
        values, encode_now, largest = self._values, self._encode_now, 1 << 63
        short, half = min(SHORT, self.limit), SHORT_IN_PAIR
        pair = 2 if self.limit >= PAIR_CHARACTERS else -1

        def defer(value: Any) -> Any:
            if type(value) is str:
                if len(value) <= short:
                    values.append(value)
                    return value
            elif type(value) is tuple and len(value) == pair:
                one, two = value
                if (len(one) <= half if type(one) is str else type(one) is int and 0 <= one < largest) and (
                    len(two) <= half if type(two) is str else type(two) is int and 0 <= two < largest
                ):
                    values.append(value)
                    return value
            encode_now(value)
            return value

        return defer

    def note(self, record: Any) -> Any:
        """Add the record's text and give the record on, for use under `map`."""
        self.add(record)
        return record

    def note_key(self, pair: Any) -> Any:
        self.add(pair[0])
        return pair

    def _encode_now(self, value: Any) -> None:
        """A value that is long or may change: its text is made now."""
        self._encode_deferred()
        if self._dictionary is None:
            self._add(value)
            return
        text = contract.whole_text(value, self.limit)
        if len(text[1]) > self.limit:
            self._tally.cut += 1
            text = contract.cut_text(text, self.limit)
        if self._dictionary.bytes + 4 * len(text[1]) > DICTIONARY_BYTES:
            self._ship_dictionary()
        self._values.append((*text, None))
        self._encode_deferred()

    def _encode_deferred(self) -> None:
        """Make the texts of the values that were deferred."""
        values, dictionary, limit = self._values, self._dictionary, self.limit
        if not values:
            return
        if dictionary is None:
            texts = [
                ("str", value)
                if type(value) is str
                else value[:2]
                if len(value) == 3
                else contract.whole_text(value, limit)
                for value in values
            ]
            size = sum([len(text) for _, text in texts]) + TEXT_OVERHEAD * len(texts)
            if self._characters + size <= MAX_COLUMN_CHARACTERS:
                self._texts += texts
                self._characters += size
            else:
                for text in texts:
                    self.append(text)
        else:
            self._codes += map(dictionary.__getitem__, values)
            count = len(self._codes)
            is_tried = TRIED <= count < TRIED + TOGETHER and dictionary.nearly_all_differ(count)
            is_full = dictionary.bytes >= DICTIONARY_BYTES or count > contract.MAX_COLUMN_VALUES - TOGETHER
            if is_tried or is_full or count * dictionary.longest > WRITTEN_OUT_CHARACTERS:
                self._ship_dictionary()
        values.clear()

    def _ship_dictionary(self) -> None:
        """Ship. Where nearly all texts differ: no dictionary from here on, nor in later runs here."""
        are_different = self._dictionary is not None and self._dictionary.nearly_all_differ(len(self._codes))
        self._ship()
        if are_different:
            self._sink.distinct_texts.add((self._sink.plan.application_id, self.node))
            self._dictionary = None

    def note_at(self, position: int, record: Any) -> None:
        """Add the text of the output at `position`; others have none."""
        self.add(record)
        self._outputs.append(position)

    def _ship(self) -> None:
        columns: dict[str, Any] = {"out": self._outputs} if self._outputs else {}
        if self._dictionary is not None:
            count = len(self._codes)
            texts: list[contract.Text] | contract.Documents = self._dictionary.texts
            columns["code"] = self._codes
            self._dictionary, self._codes = TextDictionary(), []
        else:
            if self._texts and self._documents:
                self._mix()
            texts = self._documents or self._texts
            count = len(texts)
        if count:
            base = 0 if self._outputs else self._shipped
            self._sink.emit(self.node, self._relation, 0, base, {**columns, "text": texts})
            self._shipped += count
            self._texts, self._outputs, self._characters = [], [], 0
            self._documents = contract.Documents()

    def ship_coded(self, first: int, codes: Sequence[int], texts: list[contract.Text]) -> None:
        """The texts of the outputs from `first` on, the next ones, by code."""
        self._sink.emit(self.node, self._relation, 0, first, {"code": codes, "text": texts})
        self._shipped = first + len(codes)

    def close(self) -> None:
        self._encode_deferred()
        self._ship()
