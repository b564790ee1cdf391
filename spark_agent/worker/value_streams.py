"""Keys and values of records as texts: which are captured, what leaves the executor, how they are sent.

Promises that no text leaves before the user's redaction function gave it, that a text is never longer than
asked for, and that what was cut or withheld is counted. Never raises into the job. Nothing is pickled: the
service unpickles nothing, so what has no form as text, number or JSON goes as its repr.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar

from spark_agent import contract

if TYPE_CHECKING:
    from spark_agent.worker.block_sink import BlockSink, Tally

#: A column leaves before it holds more: below the block limit even if UTF-8 has four bytes of each character.
MAX_COLUMN_CHARACTERS = 200_000
#: What a text counts besides its characters; its length and its type take five bytes at most.
TEXT_OVERHEAD = 16
#: A column that names each text once leaves at this many bytes: its codes come too, and 128 texts more.
DICTIONARY_BYTES = 420_000
#: Or when its texts, said once for each output, may have so many characters: half of what readers take.
WRITTEN_OUT_CHARACTERS = contract.MAX_BLOCK_CHARACTERS // 2
#: Strings of at most so many characters, or half of a pair, are encoded together, so many at a time.
SHORT, SHORT_IN_PAIR, TOGETHER = 256, 64, 128
#: What the JSON of a pair of short ones has at most.
PAIR_CHARACTERS = 2 * 6 * SHORT_IN_PAIR + 8
#: Texts are said by code unless nearly all of the first so many differ.
TRIED, DIFFERENT = 4_096, 0.9


Redact = Callable[[str, str, Any], Any]
"""(name of the operation, `key` or `value`, the key or value) -> what may leave in its place."""


class Dictionary(dict[Any, int]):
    """Values -> codes of their typed texts, which are made once for each value.

    Only values may be looked up whose equality says that their texts are equal: see `TextStream._keeping`. A
    text that is there already is looked up as (type, text, None).
    """

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[contract.Text] = []
        self.bytes = 0  # at most so many, in UTF-8
        self.longest = 0

    def __missing__(self, value: Any) -> int:
        is_text = type(value) is tuple and len(value) == 3
        text = value[:2] if is_text else contract.whole_text(value, contract.MAX_TEXT_CHARACTERS)
        code = self[value] = len(self.texts)
        self.texts.append(text)
        length = len(text[1]) + TEXT_OVERHEAD
        self.longest = max(self.longest, length)
        self.bytes += length if text[1].isascii() else 4 * length
        return code


class TextStream:
    """Typed texts of the outputs of one node, in output order: its keys or its values.

    A block has the text of each output, or each different text once and a code for each output.
    """

    #: (application, node) whose texts nearly all differ, as far as this process has seen.
    different: ClassVar[set[tuple[str, int]]] = set()

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
        self._documents = contract.Documents()  # texts behind these that are told by a document
        self._outputs: list[int] = []  # their positions, where not every output has a text
        self._characters = 0
        self._values: list[Any] = []  # short ones that passed since the last flush
        self._dictionary: Dictionary | None = None  # not where `add` is called
        self._codes: list[int] = []
        self._shipped = 0
        #: add(value): the text of the next output.
        self.add: Callable[[Any], None] = self._add
        if settings.redact:
            name = dict(zip(sink.plan.nodes, sink.plan.names, strict=False)).get(node, "")
            self.add = self._redacting(settings.redact, name, "value" if is_value else "key")

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

    def _redacting(self, redaction: str, name: str, kind: str) -> Callable[[Any], None]:
        """`add` with the user's function before it. What the function cannot be asked about is withheld."""
        redact = _imported(redaction, self._tally)

        def add(value: Any) -> None:
            if redact is not None:
                try:
                    allowed = redact(name, kind, value)
                except (Exception, SystemExit) as error:  # noqa: BLE001 - its message may hold the value
                    self._tally.problem = (
                        f"spark.lineage.redact={redaction} raised {type(error).__name__}; what it was "
                        "asked about is withheld"
                    )
                else:
                    self.append(contract.whole_text(allowed, self.limit))
                    return
            self._tally.withheld += 1
            self.append(contract.WITHHELD)

        return add

    def through(self, records: Iterable[Any]) -> Iterator[Any]:
        """The records, with the text of each one added as it passes."""
        if self._sink.plan.settings.redact:
            return map(self.note, records)
        is_different = (self._sink.plan.application_id, self.node) in self.different
        if not is_different:
            self._dictionary = Dictionary()
        return self._passing(self._keeping(), records)

    def keys_through(self, pairs: Iterable[Any], *, differ: bool = True) -> Iterator[Any]:
        """As `through`, with the text of the key of each pair. The keys that leave a merge all differ."""
        if self._sink.plan.settings.redact:
            return map(self.note_key, pairs)
        if not differ:
            self._dictionary = Dictionary()
        keep = self._keeping()

        def keep_key(pair: Any) -> Any:
            keep(pair[0])
            return pair

        return self._passing(keep_key, pairs)

    def _passing(self, keep: Callable[[Any], Any], records: Iterable[Any]) -> Iterator[Any]:
        """`keep` under `map`: it goes on after a record that raised. In between, what it kept is taken in."""
        is_ended = False

        def end() -> Iterator[Any]:
            nonlocal is_ended
            is_ended = True
            yield from ()

        def pieces() -> Iterator[Iterator[Any]]:
            source = chain(records, end())
            while not is_ended:
                yield map(keep, islice(source, TOGETHER))
                self._flush()

        return chain.from_iterable(pieces())

    def _keeping(self) -> Callable[[Any], Any]:
        """A function that keeps a value to be encoded later, or makes its text now, and gives it back.

        Short strings, and pairs of these and of integers, cannot change and are equal only where their texts
        are: they are kept and encoded together. Floats are not such (0.0 == -0.0), and neither they nor bools
        may meet an integer (1 == 1.0 == True).
        """
        values, late, largest = self._values, self._late, 1 << 63
        short, half = min(SHORT, self.limit), SHORT_IN_PAIR
        pair = 2 if self.limit >= PAIR_CHARACTERS else -1

        def keep(value: Any) -> Any:
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
            late(value)
            return value

        return keep

    def note(self, record: Any) -> Any:
        """Add the record's text and give the record on, for use under `map`."""
        self.add(record)
        return record

    def note_key(self, pair: Any) -> Any:
        self.add(pair[0])
        return pair

    def _late(self, value: Any) -> None:
        """A value that is long or may change: its text is made now."""
        self._flush()
        if self._dictionary is None:
            self._add(value)
            return
        text = contract.whole_text(value, self.limit)
        if len(text[1]) > self.limit:
            self._tally.cut += 1
            text = contract.cut_text(text, self.limit)
        if self._dictionary.bytes + 4 * len(text[1]) > DICTIONARY_BYTES:
            self._full()
        self._values.append((*text, None))
        self._flush()

    def _flush(self) -> None:
        """Take in what was kept."""
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
            is_tried = TRIED <= count < TRIED + TOGETHER and len(dictionary) > DIFFERENT * count
            is_full = dictionary.bytes >= DICTIONARY_BYTES or count > contract.MAX_COLUMN_VALUES - TOGETHER
            if is_tried or is_full or count * dictionary.longest > WRITTEN_OUT_CHARACTERS:
                self._full()
        values.clear()

    def _full(self) -> None:
        """Ship. Where nearly all texts differ: no dictionary from here on, nor in later runs here."""
        is_different = self._dictionary is not None and len(self._dictionary) > DIFFERENT * len(self._codes)
        self._ship()
        if is_different:
            self.different.add((self._sink.plan.application_id, self.node))
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
            self._dictionary, self._codes = Dictionary(), []
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
        self._flush()
        self._ship()


def _imported(name: str, tally: Tally) -> Redact | None:
    """The function MODULE:FUNCTION, or None: `tally` says why."""
    module, _, function = name.partition(":")
    try:
        imported = getattr(importlib.import_module(module), function)
        if not callable(imported):
            raise TypeError("it is not a function")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's module may raise anything
        tally.problem = (
            f"spark.lineage.redact={name} cannot be had on executors ({type(error).__name__}: {error}); "
            "every key and value is withheld. Send its module with --py-files"
        )
        return None
    redact: Redact = imported
    return redact
