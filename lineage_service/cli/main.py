"""The command line: `lineage COMMAND`. One table of commands, each resolved only when it is used.

So `lineage --help` imports nothing but the standard library. Each field of `Settings` that a command reads
is a flag of it, and flags win over LINEAGE_* variables. Errors that a user can do something about are one
line on standard error: exit code 1, 2 for arguments and settings that cannot be understood, 130 for Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from lineage_service.cli.arguments import Parser

if TYPE_CHECKING:
    from pydantic import ValidationError

    from lineage_service.settings import Settings

    Command = Callable[[Settings, argparse.Namespace], int]

_STORE = ("store", "trace_seconds")
_KAFKA = ("kafka_bootstrap_servers", "kafka_config")
_TOPICS = ("node_topic", "flow_topic", "dead_letter_topic")
_LAG = (*_KAFKA, *_TOPICS, "consumer_group", "store")
_NEO4J = (
    "neo4j_uri",
    "neo4j_user",
    "neo4j_password",
    "neo4j_password_file",
    "neo4j_ca",
    "neo4j_database",
)


class Entry(NamedTuple):
    """A command: `target` is MODULE:FUNCTION, `help` one line, `settings` those that it reads beside `home`.

    The function is `command(settings, options) -> int`; a `configure(parser)` beside it adds the command's
    own flags. A string, because `lineage_api` is above this package and must not be imported by it.
    """

    target: str
    help: str
    settings: tuple[str, ...] = ()
    #: What stands behind `--` is a command that it runs: `options.words`.
    runs_command: bool = False


COMMANDS: dict[str, Entry] = {
    "up": Entry(
        "lineage_service.cli.stack.up:command",
        "start the local stack: Kafka and Neo4j on this machine",
        ("maven_repository", *_TOPICS),
    ),
    "down": Entry("lineage_service.cli.stack.down:command", "stop the local stack; its data stays"),
    "status": Entry(
        "lineage_service.cli.stack.status:command", "what of the local stack runs, where, and its lag", _LAG
    ),
    "consume": Entry(
        "lineage_service.cli.consume:command",
        "write lineage from Kafka into the stores, until stopped",
        (
            *_LAG,
            *_NEO4J,
            "batch_max_bytes",
            "batch_max_seconds",
            "held_max_bytes",
            "graph_max_flows",
            "graph_row_characters",
            "metrics",
            "metrics_host",
            "metrics_port",
        ),
    ),
    "dead-letters": Entry(
        "lineage_service.cli.dead_letters:command",
        "list the messages that could not be used, or replay them: list | replay",
        (*_KAFKA, *_TOPICS, "consumer_group"),
    ),
    "spool": Entry(
        "lineage_service.cli.spool:command",
        "list what jobs could not deliver and put on a disk, or send it: list | deliver",
        ("kafka_config",),
    ),
    "maintain": Entry(
        "lineage_service.cli.maintain:command",
        "compact the flow store, and delete what is old or unwanted",
        ("store", *_NEO4J),
    ),
    "apps": Entry("lineage_service.cli.query.apps:command", "list the applications, newest first", _STORE),
    "datasets": Entry(
        "lineage_service.cli.query.datasets:command",
        "list what applications wrote and read: files, folders, tables, topics",
        _STORE,
    ),
    "dataset": Entry(
        "lineage_service.cli.query.dataset:command",
        "the history of a dataset, and what is before and behind it",
        _STORE,
    ),
    "compare": Entry(
        "lineage_service.cli.query.compare:command",
        "what changed between two runs of a job, and which input rows changed behind it",
        _STORE,
    ),
    "graph": Entry(
        "lineage_service.cli.query.graph:command", "show the operations of an application", _STORE
    ),
    "show": Entry(
        "lineage_service.cli.query.show:command", "show or search the records of an operation", _STORE
    ),
    "trace": Entry(
        "lineage_service.cli.query.trace:command", "what a record was made of, or what became of it", _STORE
    ),
    "history": Entry(
        "lineage_service.cli.query.history:command",
        "the versions of a row of a table: what inserted, changed and deleted it",
        _STORE,
    ),
    "explain": Entry(
        "lineage_service.cli.query.explain:command",
        "the few input rows that decided what a record is, also in loops",
        (*_STORE, "kafka_bootstrap_servers", "kafka_config", "node_topic"),
        runs_command=True,
    ),
    "rows": Entry(
        "lineage_service.cli.query.rows:command",
        "which input rows records were made of, as a row set, or as files of just these rows",
        _STORE,
    ),
    "missing": Entry(
        "lineage_service.cli.query.missing:command",
        "why a row of an input is not in the output: at which operation it ended",
        _STORE,
    ),
    "failures": Entry(
        "lineage_service.cli.query.failures:command",
        "which records made tasks fail, and the input rows that these were made of",
        _STORE,
    ),
    "slow": Entry(
        "lineage_service.cli.query.slow:command",
        "which records took long, and the input rows, operations and partitions behind them",
        _STORE,
    ),
    "suspects": Entry(
        "lineage_service.cli.query.suspects:command",
        "which tasks and operations behave oddly, and the records that show it",
        _STORE,
    ),
    "contrast": Entry(
        "lineage_service.cli.query.contrast:command",
        "what the input rows of bad outputs share, and those of good ones do not",
        _STORE,
    ),
    "replay": Entry(
        "lineage_service.cli.replay:command",
        "run an application's command again on some of its input rows, and touch no file of it",
        _STORE,
        runs_command=True,
    ),
    "influence": Entry(
        "lineage_service.cli.influence:command",
        "how much an output row moves without each of its input rows",
        _STORE,
        runs_command=True,
    ),
    "sift": Entry(
        "lineage_service.cli.sift:command",
        "the fewest input rows on which a job still gives a wrong output, or crashes",
        _STORE,
        runs_command=True,
    ),
    "trigger": Entry(
        "lineage_service.cli.trigger:command",
        "whether a job is worth running now: exit code 0 run, 99 skip; or run its command, or not",
        (*_STORE, "trigger_redact"),
        runs_command=True,
    ),
    "values": Entry(
        "lineage_service.cli.query.values:command", "what a record looked like on its way", _STORE
    ),
    "browser": Entry(
        "lineage_service.cli.browser_files:command",
        "write a style and saved queries for Neo4j Browser into a folder",
    ),
    "serve": Entry(
        "lineage_service.cli.serve:command",
        "answer queries about lineage: the HTTP API and the web page",
        (
            *_LAG,
            *_NEO4J,
            "graph_max_records",
            "api_host",
            "api_port",
            "api_auth",
            "api_token",
            "api_token_file",
            "api_hosts",
            "api_cors_origins",
            "api_questions",
            "api_wait_seconds",
            "metrics",
            "trace_seconds",
            "trigger_redact",
            "cache_bytes",
        ),
    ),
}

#: Asked for, and not there.
_NOT_REACHED = 3
_INTERRUPTED = 130
_BROKEN_PIPE = 141
#: The packages that this one installs.
_OWN = ("lineage_api", "lineage_cypher", "lineage_page", "lineage_service", "spark_agent")


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit code. `argv` excludes the program's name; None: the process's."""
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except SystemExit as exit_:  # argparse's, after it has printed
        return exit_.code if isinstance(exit_.code, int) else 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone (`lineage status | head`). Nothing more can be said, not even at
        # exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE


def _run(argv: Sequence[str]) -> int:
    top = _top_parser()
    name = top.parse_args(argv[:1]).command
    entry = COMMANDS[name]
    try:
        command, configure = _load(entry.target)
        from lineage_service.settings import Settings
    except ModuleNotFoundError as error:
        return _fail(f"`lineage {name}` {_missing(error.name or str(error))}")
    parser = Parser(prog=f"lineage {name}", description=entry.help, allow_abbrev=False)
    if configure:
        configure(parser)
    _add_settings(parser, Settings, {"home", *entry.settings})
    arguments, words = list(argv[1:]), list[str]()
    if entry.runs_command and "--" in arguments:
        words = arguments[arguments.index("--") + 1 :]
        arguments = arguments[: arguments.index("--")]
    options = parser.parse_args(arguments)
    if entry.runs_command:
        options.words = words
    return _call(command, Settings, options, entry.settings)


def _missing(module: str) -> str:
    """What the absence of a module means, and the command that mends it."""
    from lineage_service.cli.installation import install_command

    if module.partition(".")[0] in _OWN:
        return f"does not find {module}, which is its own: install lineage-master again"
    return f"needs the module {module}: {install_command()}"


def _top_parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    parser = Parser(
        prog="lineage",
        description="Record-level lineage for PySpark: which input rows made this output row?",
        epilog="commands:\n"
        + "".join(f"  {name:{width}}  {entry.help}\n" for name, entry in COMMANDS.items())
        + "\n`lineage COMMAND --help` lists its flags. Each is also an environment variable, LINEAGE_NAME.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version)
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of the commands below")
    return parser


class _Version(argparse.Action):
    """`--version`; the package's metadata is looked up only now."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version, and what is installed of it")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from lineage_service.cli.installation import contents, version

        print(f"lineage-master {version() or '(a source folder that is not installed)'}")
        for part, state in contents().items():
            print(f"  {part}: {state}")
        parser.exit()


def _load(target: str) -> tuple[Command, Callable[[argparse.ArgumentParser], None] | None]:
    """The function that `module:function` names, and the `configure` beside it if there is one."""
    module_name, _, function = target.partition(":")
    module = import_module(module_name)
    return getattr(module, function), getattr(module, "configure", None)


def _add_settings(parser: argparse.ArgumentParser, settings: type[Settings], names: Collection[str]) -> None:
    """One flag for each field that the command reads.

    Absent flags stay absent, so that the environment and the defaults apply.
    """
    group = parser.add_argument_group(
        "settings", "each is also an environment variable: --home is LINEAGE_HOME"
    )
    for name, field in settings.model_fields.items():
        if name not in names:
            continue
        default = "" if field.default_factory or field.default == "" else f" (default: {field.default})"
        group.add_argument(
            _flag(name),
            dest=name,
            metavar="VALUE",
            default=argparse.SUPPRESS,
            help=f"{field.description}{default}".replace("%", "%%"),
        )


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _call(
    command: Command, settings_class: type[Settings], options: argparse.Namespace, reads: Collection[str]
) -> int:
    from pydantic import ValidationError

    from lineage_service.devstack.state import resolve
    from lineage_service.errors import LineageError, NothingMatchesError
    from lineage_service.kafka.client import with_ports

    flags = {name: vars(options).pop(name) for name in settings_class.model_fields if name in options}
    try:
        settings = settings_class(**flags)
    except ValidationError as error:
        _fail(_invalid(error))
        return 2
    if hint := _earlier_home(settings):
        print(f"lineage: {hint}", file=sys.stderr)
    try:
        settings = resolve(settings)
        if "kafka_bootstrap_servers" in reads:
            servers = with_ports(settings.kafka_bootstrap_servers)
            settings = settings.model_copy(update={"kafka_bootstrap_servers": servers})
        return command(settings, options)
    except NothingMatchesError as error:
        _fail(str(error))
        return _NOT_REACHED
    except LineageError as error:
        return _fail(str(error))


def _earlier_home(settings: Settings) -> str:
    """A word to those whose data an earlier version put below the current folder; mostly empty."""
    from pathlib import Path

    from spark_agent.contract.home import FORMER_HOME, lineage_home

    former = Path(FORMER_HOME).absolute()
    usual = Path(lineage_home({**os.environ, "LINEAGE_HOME": ""}))
    is_elsewhere = settings.home == usual and not settings.store and former != usual
    if not is_elsewhere or (usual / "flows").exists() or not (former / "flows").exists():
        return ""
    return (
        f"{former} holds a store of an earlier version; the home is {usual} now. To go on with that store: "
        f"LINEAGE_HOME={former}"
    )


def _invalid(error: ValidationError) -> str:
    """All wrong settings in one line, each by the names that a user can have given it by."""
    return "; ".join(
        f"{_flag(name)} or LINEAGE_{name.upper()} is {wrong['input']!r}: {wrong['msg']}"
        for wrong in error.errors()
        for name in [".".join(map(str, wrong["loc"]))]
    )


def _fail(message: str) -> int:
    print(f"lineage: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
