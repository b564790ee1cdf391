"""The parser of the command line: what cannot be understood is one line, with the nearest word that can be.

Standard library only, and nothing of what the commands do.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

__all__ = ["Parser", "nearest"]

#: How alike two words must be, from 0 to 1 (difflib); `dead-leters` and `dead-letters` are 0.96.
_ALIKE = 0.5


def nearest(word: str, words: Iterable[str]) -> str:
    """` (did you mean WORD?)`, or nothing where none is near."""
    from difflib import get_close_matches  # only now: commands that are understood need it not

    nearest = get_close_matches(word, list(words), n=1, cutoff=_ALIKE)
    return f": did you mean {nearest[0]}?" if nearest else ""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one line on standard error, exit code 2."""

    #: Several words of one kind may stand before flags and behind them.
    is_intermixed = False

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see `{self.prog} --help`)\n")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parse = self.parse_known_intermixed_args if self.is_intermixed else self.parse_known_args
        options, rest = parse(args, namespace)
        if rest:
            self.error(self._unknown(rest))
        return options

    def _unknown(self, rest: Sequence[str]) -> str:
        flag = next((word for word in rest if word.startswith("-")), None)
        if flag is None:
            return f"{' '.join(map(repr, rest))} is one word too many"
        name = flag.partition("=")[0]
        return f"there is no {name}{nearest(name, self._option_string_actions)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = list(map(str, action.choices))
            listed = "" if len(choices) > _MOST_LISTED else f" ({', '.join(choices)})"
            what = action.metavar if isinstance(action.metavar, str) else action.dest
            name = "/".join(action.option_strings) or what.lower()
            self.error(f"{value!r} is no {name}{nearest(str(value), choices)}{listed}")


#: More choices than these are for `--help`.
_MOST_LISTED = 4
