"""Is lineage wanted for an application? Its conf says so; what is wrong with the conf is said to people.

Called for each SparkContext whose conf mentions lineage. Only `true` switches the agent on. Where Cloudera's
own lineage listens, `spark.lineage.enabled` is meant for that one: then a further key of ours is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spark_agent.delivery import setting_names, settings
from spark_agent.delivery.notices import Notices

_LISTENERS = ("spark.extraListeners", "spark.sql.queryExecutionListeners")
_CLOUDERA = "com.cloudera.spark.lineage."
#: (application, key) of what was said to be too late.
_too_late: set[tuple[str, str]] = set()


def start_if_wanted(context: Any, conf_text: str) -> None:
    """`conf_text` is the conf of `context`, as `SparkConf.toDebugString` gives it."""
    names = setting_names.names_in(conf_text)
    if not names:
        return
    conf = context._conf
    enabled = conf.get(settings.ENABLED, None)
    is_wanted = settings.flag(enabled or "") is True
    if is_wanted and not (_listens_cloudera(conf) and not _names_of_ours(names)):
        from spark_agent import agent

        agent.start(context, names)
        return
    notices = Notices(context, is_quiet=settings.flag(conf.get(settings.QUIET, "")) is True)
    if is_wanted:
        notices.say(
            f"off for {context.applicationId}: Cloudera's lineage listeners are configured, and "
            f"{settings.ENABLED} is theirs, too; to have this lineage as well, set a further key, such as "
            "spark.lineage.kafka.bootstrap.servers"
        )
    elif enabled is not None and settings.flag(enabled) is None:
        notices.say(
            f"off for {context.applicationId}: {settings.ENABLED}={enabled} is neither true nor false; "
            f"set {settings.ENABLED}=true"
        )
    for sentence in setting_names.unknown(names, settings.KNOWN):
        notices.say(f"off for {context.applicationId}: {sentence}")


def start_replay(
    context: Any, initialise: Callable[..., None], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Start `context`, a new SparkContext, in a replay: guarded, and with lineage, whatever the conf says.

    `initialise` is the method that starts it, with the arguments of the program. Exits if that cannot be: no
    job runs unguarded instead.
    """
    from spark_agent import agent
    from spark_agent.driver.replay import guard, replay

    try:
        replay.current()
        guarded = guard.guarded_arguments(context, initialise, args, kwargs)
    except PermissionError as error:
        replay.refuse(error)
    except Exception as error:  # noqa: BLE001 - what cannot be guarded does not start
        replay.refuse(f"replay refused: the guard could not be put up ({error!r})")
    initialise(*guarded.args, **guarded.kwargs)
    try:
        guard.check(context)
        agent.start(context, setting_names.names_in(context._conf.toDebugString()))
    except PermissionError as error:
        replay.refuse(error)
    except Exception as error:  # noqa: BLE001 - an agent bug, or another PySpark than those that are known
        replay.refuse(f"replay refused: the agent could not start ({error!r})")


def refuse_connect() -> None:
    """Exit, since this is a replay, and Spark Connect runs where no replay can guard it."""
    from spark_agent.driver.replay import replay

    replay.refuse("replay refused: the job uses Spark Connect, whose server would write to the originals")


def say_what_is_too_late(context: Any, options: Mapping[str, Any]) -> None:
    """Settings that a builder hands to a running SparkContext mean nothing: they are read at its start."""
    application_id, conf = context.applicationId, context._conf
    names = [
        name
        for name in setting_names.names_in("\n".join(options))
        if str(options[name]) != conf.get(name, None) and (application_id, name) not in _too_late
    ]
    if not names:
        return
    _too_late.update((application_id, name) for name in names)
    is_quiet = settings.flag(conf.get(settings.QUIET, "")) is True
    mean = "means" if len(names) == 1 else "mean"
    Notices(context, is_quiet=is_quiet).say(
        f"{', '.join(names)} {mean} nothing to {application_id}, which was running already: settings of "
        "lineage are read when a SparkContext starts; set them with `spark-submit --conf`, or stop the "
        "context before"
    )


def _listens_cloudera(conf: Any) -> bool:
    return any(_CLOUDERA in (conf.get(name, "") or "") for name in _LISTENERS)


def _names_of_ours(names: Sequence[str]) -> bool:
    """Does the conf have a setting that only this agent reads? To be quiet is no wish for lineage."""
    return any(name in settings.KNOWN and name not in (settings.ENABLED, settings.QUIET) for name in names)
