"""Texts that are said by code: each different text once, and a code for each output."""

from __future__ import annotations

from typing import Any

from spark_agent import contract

#: What a text counts besides its characters; its length and its type take five bytes at most.
TEXT_OVERHEAD = 16
#: A column that names each text once leaves at this many bytes: its codes come too, and some texts more.
DICTIONARY_BYTES = 420_000
#: Or when its texts, said once for each output, may have so many characters: half of what readers take.
WRITTEN_OUT_CHARACTERS = contract.MAX_BLOCK_CHARACTERS // 2
#: Texts are said by code unless nearly all of the first so many differ.
TRIED, DIFFERENT = 4_096, 0.9


class TextDictionary(dict[Any, int]):
    """Values -> codes of their typed texts, which are made once for each value.

    Only values may be looked up whose equality says that their texts are equal: see `TextStream._deferring`.
    A text that is there already is looked up as (type, text, None).
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

    def nearly_all_differ(self, outputs: int) -> bool:
        """Of the texts of so many outputs: then codes save nothing."""
        return len(self) > DIFFERENT * outputs
