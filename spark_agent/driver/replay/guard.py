"""The driver's fences of a replay: put up before a SparkContext starts, and looked at before the job goes on.

`guarded_arguments` gives the new context a conf with guarded file systems, guarded Python workers and folders
of the sandbox; `check` refuses the context if one of them is not in place. The fences of a Python process
(`worker.guard`) are there already. Knows nothing of what is replayed.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

from spark_agent.contract.replay_spec import SPEC_VARIABLE
from spark_agent.driver import jar
from spark_agent.driver.replay import gateway_fence, replay, side_effects
from spark_agent.worker.guard import begin
from spark_agent.worker.guard.begin import Guard
from spark_agent.worker.guard.places import place_of_user
from spark_agent.worker.guard.refusals import ReplayRefused

__all__ = ["check", "guarded_arguments"]

_EXTENSIONS = "spark.sql.extensions"
_OURS = "lineagemaster.guard.ReplayExtensions"
_DAEMON = "spark_agent.worker.guard.daemon"
_SITE = "lineage-replay-site.xml"
_METASTORES = ("hive.metastore.uris", "spark.hadoop.hive.metastore.uris", "spark.hive.metastore.uris")


def guarded_arguments(
    context: Any, initialise: Callable[..., None], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> inspect.BoundArguments:
    """The arguments of a new SparkContext's `_do_init`, with a guarded conf. Raises ReplayRefused."""
    guard = begin.begin()
    bound = inspect.signature(initialise).bind(context, *args, **kwargs)
    if bound.arguments.get("jsc") is not None:
        raise ReplayRefused("use the SparkContext of another program", advice="start it in the script")
    jvm = type(context)._jvm
    conf = _copy_of(bound.arguments.get("conf"), jvm)
    if bound.arguments.get("master"):
        conf.setMaster(bound.arguments["master"])
    _refuse_what_is_not_guarded(conf)
    for key, value in _settings(guard, conf, _install(guard, jvm, conf)).items():
        conf.set(key, value)
    bound.arguments["conf"] = conf
    guard.files.on_read = _told_of_old_outputs
    gateway_fence.install(guard)
    side_effects.install(guard)
    return bound


def check(context: Any) -> None:
    """Raises ReplayRefused if the fences of a new SparkContext are not in place."""
    jvm = context._jvm
    problem = jvm.lineagemaster.guard.FileSystems.problem(context._jsc.hadoopConfiguration())
    if problem:
        raise ReplayRefused("start Spark", advice=f"its file systems are not guarded: {problem}")
    jvm.lineagemaster.guard.ReplayExtensions()  # Spark would go on without it
    conf = context._conf
    if (
        _OURS not in (conf.get(_EXTENSIONS, "") or "")
        or conf.get("spark.python.daemon.module", "") != _DAEMON
    ):
        raise ReplayRefused("start Spark", advice="its conf lost what guards sessions and Python workers")


def _told_of_old_outputs(path: str) -> None:
    """Python reads a file itself: say so if this replay has written that file elsewhere."""
    running = replay.current()
    if running is not None and running.outputs.copy_of(path) is not None:
        running.report.differs(
            f"{place_of_user() or 'the program'} reads {path} past Spark: that is what the original wrote, "
            "not what the replay wrote"
        )


def _copy_of(conf: Any, jvm: Any) -> Any:
    from pyspark import SparkConf

    copy = SparkConf(_jvm=jvm)
    if conf is not None:
        for key, value in conf.getAll():
            copy.set(key, value)
    return copy


def _refuse_what_is_not_guarded(conf: Any) -> None:
    is_of_hive = (conf.get("spark.sql.catalogImplementation", "") or "").lower() == "hive"
    if is_of_hive and not any(conf.get(name, None) for name in _METASTORES):
        raise ReplayRefused(
            "open the embedded metastore of Hive",
            advice="Derby writes into it even to read: replay without enableHiveSupport()",
        )
    if (conf.get("spark.submit.deployMode", "") or "").lower() == "cluster":
        raise ReplayRefused("start a driver in the cluster", advice="replay with --deploy-mode client")
    master = conf.get("spark.master", "") or ""
    if master and (not master.startswith("local") or master.startswith("local-cluster")):
        raise ReplayRefused(
            f"use the master {master}",
            advice="executors of their own are not replayed yet: replay with --master local[*]",
        )
    if conf.get("spark.remote", None) or os.environ.get("SPARK_REMOTE"):
        raise ReplayRefused("use Spark Connect", advice="its server is guarded by nothing")


def _install(guard: Guard, jvm: Any, conf: Any) -> Mapping[str, str]:
    """Guard the driver's JVM; the settings of Hadoop that do so."""
    if not os.path.isfile(jar.JAR):
        raise ReplayRefused(
            "start Spark", advice="this installation is without the agent's jar: run `make jar`"
        )
    loader = jar.loader_of(jvm)
    if loader is None:
        raise ReplayRefused("start Spark", advice="the driver's class loader takes no more jars")
    jar.add_to_loader(jvm, loader, jar.JAR)
    fences = jvm.lineagemaster.guard.FileSystems
    present = [
        part
        for key, value in conf.getAll()
        if key.startswith("spark.hadoop.fs.")
        for part in (key.removeprefix("spark.hadoop."), value)
    ]
    settings = {str(key): str(value) for key, value in fences.settings(present).items()}
    folder = os.path.join(guard.sandbox, "conf")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, _SITE), "w", encoding="utf-8") as file:
        file.write(_site_of(settings))
    jar.add_to_loader(jvm, loader, folder)
    jvm.org.apache.hadoop.conf.Configuration.addDefaultResource(_SITE)
    fences.begin(guard.sandbox, guard.outputs)
    return settings


def _site_of(settings: Mapping[str, str]) -> str:
    """A file of Hadoop's configuration: those that a program makes itself read it, too."""
    from xml.sax.saxutils import escape

    lines = [
        f"<property><name>{escape(key)}</name><value>{escape(value)}</value></property>"
        for key, value in settings.items()
    ]
    return "\n".join(["<configuration>", *lines, "</configuration>", ""])


def _settings(guard: Guard, conf: Any, hadoop: Mapping[str, str]) -> dict[str, str]:
    sandbox = guard.sandbox
    temporary = os.path.join(sandbox, "tmp")
    extensions = conf.get(_EXTENSIONS, "") or ""
    settings = {f"spark.hadoop.{key}": value for key, value in hadoop.items()}
    settings |= {
        _EXTENSIONS: ",".join(name for name in (_OURS, extensions) if name),
        "spark.python.daemon.module": _DAEMON,
        "spark.python.use.daemon": "true",
        f"spark.executorEnv.{SPEC_VARIABLE}": guard.spec_path,
        "spark.local.dir": os.path.join(temporary, "spark"),
        "spark.sql.warehouse.dir": os.path.join(sandbox, "warehouse"),
        "spark.checkpoint.dir": os.path.join(sandbox, "checkpoint"),
        "spark.eventLog.enabled": "false",
        "spark.driver.log.persistToDfs.enabled": "false",
    }
    return settings
