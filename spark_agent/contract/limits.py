"""How large a message, a number or a text may be, so that a reader can bound what it takes."""

from __future__ import annotations

MAX_RUN = 1 << 53
MAX_POSITION = (1 << 63) - 1
#: The largest node, split, `seq`, and number of blocks.
MAX_NUMBER = (1 << 31) - 1
#: The last millisecond of the year 9999: people are shown times as dates.
MAX_TIME = 253_402_300_799_999
#: What a manifest has of slow records at most.
MAX_SLOW_RECORDS = 20
#: No block is larger than this before the producer compresses it; brokers refuse 1 MiB by default.
MAX_BLOCK_BYTES = 900_000
#: No column is longer than this, so a decoder can bound its memory before it allocates.
MAX_COLUMN_VALUES = 1 << 17
MAX_HEADER_BYTES = 64_000
#: No reader takes a larger message: brokers refuse 1 MiB, but before it is unpacked.
MAX_MESSAGE_BYTES = 1 << 20
#: What the texts of one block have at most when they are written out, one for each output, as stores do.
MAX_BLOCK_CHARACTERS = 1 << 26
#: Events are stored, and who reads them later may have less room on its stack.
MAX_EVENT_DEPTH = 32
