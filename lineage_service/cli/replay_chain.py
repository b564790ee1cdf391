"""`lineage replay START.. --job APP -- COMMAND --job APP -- COMMAND`: several applications in one replay."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import chain

from rich.console import Console

from lineage_service.cli.query.output import Output
from lineage_service.cli.replay_text import show_replay
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Replay, ReplayChain

__all__ = ["add_chain_flag", "give_chain", "jobs_of"]

_FLAG, _COMMAND = "--job", "--"
#: What is asked of one application alone.
_OF_ONE = ("failure", "only", "without", "replace", "skip_failing", "affected")


def add_chain_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        _FLAG,
        metavar="APP",
        help="replay several applications one after the other, each with its command, in the order in which "
        "they ran: what one wrote stands in for what the next ones read. START is an output of the last one",
    )


def jobs_of(options: argparse.Namespace) -> list[argparse.Namespace]:
    """The options of each application of a chain; none where it is none. Raises InvalidQueryError."""
    if options.job is None:
        return []
    applications, commands = _apart([_FLAG, options.job, _COMMAND, *options.words])
    if len(applications) < 2 or not all(commands):
        raise InvalidQueryError(
            "say at least two applications, each with its command: "
            "--job APP1 -- COMMAND1 --job APP2 -- COMMAND2"
        )
    of_one = next((name for name in _OF_ONE if getattr(options, name)), None)
    if of_one is not None:
        raise InvalidQueryError(
            f"--{of_one.replace('_', '-')} is for one application: with --job, name rows of an output"
        )
    start = [text for text in (options.application, *options.start) if text is not None]
    return [
        argparse.Namespace(
            **{**vars(options), "application": application, "words": words, "start": start, "job": None}
        )
        for application, words in zip(applications, commands, strict=True)
    ]


def _apart(words: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """The applications and their commands, of words such as `--job APP -- COMMAND --job APP -- COMMAND`."""
    applications: list[str] = []
    commands: list[list[str]] = []
    at = 0
    while at < len(words):
        if words[at] == _FLAG and list(words[at + 2 : at + 3]) == [_COMMAND]:
            applications.append(words[at + 1])
            commands.append([])
            at += 3
        elif words[at].startswith(f"{_FLAG}=") and list(words[at + 1 : at + 2]) == [_COMMAND]:
            applications.append(words[at].partition("=")[2])
            commands.append([])
            at += 2
        else:
            commands[-1].append(words[at])
            at += 1
    return applications, commands


def give_chain(output: Output, replays: Sequence[Replay]) -> None:
    """Show them in their order. The verdict is that of the last one."""

    def show(console: Console) -> None:
        for replay in replays:
            console.print(f"{replay.of}:", style="bold", soft_wrap=True)
            show_replay(console, replay)

    notes = list(dict.fromkeys(chain.from_iterable(replay.notes for replay in replays)))
    output.give(ReplayChain(verdict=replays[-1].verdict, replays=tuple(replays)), (), (), show, notes)
