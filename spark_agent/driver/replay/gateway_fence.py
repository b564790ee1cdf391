"""A fence in py4j, through which a script reaches any class of the JVM: it calls those only that cannot harm.

PySpark and the agent themselves call what they need. The user's program may make objects of some classes, and
call their static methods. What a method of such an object does in the JVM is not seen here; the guarded file
systems and the kernel's fence are for that.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from spark_agent.contract.replay_notes import note, read_notes
from spark_agent.worker.guard.begin import Guard
from spark_agent.worker.guard.places import frames, is_of, is_of_agent, place_of_user

__all__ = ["install", "refused_call"]

#: Packages and classes that the user's program may use.
_ALLOWED = (
    *("java.lang.", "java.math.", "java.net.URI", "java.sql.Date", "java.sql.Timestamp", "java.sql.Types"),
    *("java.text.", "java.time.", "java.util.", "scala.", "org.slf4j.", "org.apache.log4j.Level"),
    *("org.apache.log4j.LogManager", "org.apache.log4j.Logger", "org.apache.logging.log4j.Level"),
    *("org.apache.logging.log4j.LogManager", "org.apache.logging.log4j.core.config.Configurator"),
    *(
        "org.apache.hadoop.conf.",
        "org.apache.hadoop.fs.",
        "org.apache.hadoop.io.",
        "org.apache.hadoop.mapred",
    ),
    *("org.apache.hadoop.util.VersionInfo", "org.apache.hadoop.security.UserGroupInformation"),
    *("org.apache.spark.", "lineagemaster.", "py4j."),
)
#: What in them is not.
_REFUSED = (
    *(
        "java.lang.ClassLoader",
        "java.lang.Class",
        "java.lang.Process",
        "java.lang.Runtime",
        "java.lang.foreign",
    ),
    *("java.lang.invoke", "java.lang.reflect", "java.lang.Shutdown", "java.util.jar.", "java.util.zip."),
    *("java.util.logging.", "java.util.prefs.", "java.util.ServiceLoader", "scala.io.", "scala.reflect."),
    *("scala.sys.", "scala.tools.", "org.apache.hadoop.fs.FileUtil", "org.apache.hadoop.fs.Raw"),
    *("org.apache.hadoop.fs.local.", "org.apache.hadoop.fs.shell.", "org.apache.hadoop.fs.FsShell"),
    *("org.apache.hadoop.fs.ChecksumF", "org.apache.hadoop.fs.LocalF", "org.apache.hadoop.fs.Trash"),
    *("org.apache.hadoop.fs.ftp", "org.apache.spark.deploy.", "org.apache.spark.launcher."),
    *("org.apache.spark.network.", "org.apache.spark.util.", "org.apache.spark.streaming."),
    *("org.apache.spark.api.java.JavaSparkContext", "org.apache.spark.SparkContext"),
)
#: Methods of whatever object, by which one reaches other classes or ends the guard.
_METHODS = frozenset(
    (
        *("defineClass", "exec", "exit", "forName", "getConstructor", "getConstructors", "getDeclaredField"),
        *("getDeclaredConstructor", "getDeclaredConstructors", "getDeclaredMethod", "getDeclaredMethods"),
        *("getField", "getMethod", "getMethods", "halt", "invoke", "load", "loadClass", "loadLibrary"),
        *("newInstance", "setAccessible", "setSecurityManager"),
    )
)
#: Of them those that only a class has in which they can harm.
_OF_CLASSES = frozenset(("exec", "exit", "forName", "halt", "load", "loadLibrary"))
#: Those that other objects have, too, and read data with.
_OF_OBJECTS = frozenset(("exec", "exit", "invoke", "load"))
#: PySpark's own StreamingContext makes this.
_STREAMS = "i\norg.apache.spark.streaming."
_CONSTRUCTOR, _CALL, _STATIC, _STRING = "i", "c", "z:", "s"
_ADVICE = "files of the JVM are guarded by Hadoop's file systems only: use those, or leave this step out"


def install(guard: Guard) -> None:
    """Put the fence before each command that goes to the JVM."""
    from py4j.java_gateway import GatewayClient

    original = GatewayClient.send_command
    if hasattr(original, "_lineage_fence"):
        return

    @functools.wraps(original)
    def send_command(self: Any, command: str, *args: Any, **kwargs: Any) -> Any:
        if command.startswith(_STREAMS):
            guard.refusals.refuse("start streams", advice="streams cannot be replayed")
        if command[:2] in ("i\n", "c\n") and _is_of_user():
            what, of = refused_call(command)
            if what:
                guard.refusals.refuse(what, of, _ADVICE)
        answer = original(self, command, *args, **kwargs)
        if isinstance(answer, str) and answer.startswith(("x", "!x")):  # the JVM has thrown something
            _place_refusals(guard)
        return answer

    send_command._lineage_fence = True  # type: ignore[attr-defined]
    GatewayClient.send_command = send_command


def refused_call(command: str) -> tuple[str, str]:
    """What a command of py4j would do, and of what; ("", "") if it may. Takes py4j's text as it is sent."""
    kind, target, *rest = command.split("\n")
    strings = [part[1:] for part in rest if part[:1] == _STRING]
    if kind == _CONSTRUCTOR:
        return ("", "") if _is_allowed(target) else ("make an object of the JVM,", _told(target, strings))
    if kind != _CALL or not rest:
        return "", ""
    method, strings = rest[0], [part[1:] for part in rest[1:] if part[:1] == _STRING]
    if target.startswith(_STATIC):
        owner = target.removeprefix(_STATIC)
        is_refused = not _is_allowed(owner) or method in _OF_CLASSES
        return ("call a method of the JVM,", _told(f"{owner}.{method}", strings)) if is_refused else ("", "")
    if (
        method in ("set", "unset", "setIfUnset", "setStrings", "setBoolean")
        and strings
        and _is_fence(strings[0])
    ):
        return "change the setting", strings[0]
    if method in _METHODS - _OF_OBJECTS:
        return "call a method of the JVM,", _told(method, strings)
    return "", ""


def _is_allowed(name: str) -> bool:
    return name.startswith(_ALLOWED) and not name.startswith(_REFUSED)


def _is_fence(setting: str) -> bool:
    """Does a setting of Hadoop say which class is a file system?"""
    plain = setting.removeprefix("spark.hadoop.")
    return plain.startswith(("fs.", "lineage.replay.")) and (".impl" in plain)


def _told(name: str, strings: list[str]) -> str:
    return f"{name}({', '.join(strings)})"


def _is_of_user() -> bool:
    """Is it neither PySpark nor the agent that asks the JVM?"""
    for frame in frames(sys._getframe(1), with_agent=True):
        file = frame.f_code.co_filename
        if file != __file__ and not is_of(file, "py4j"):
            return not is_of(file, "pyspark") and not is_of_agent(file)
    return False


def _place_refusals(guard: Guard) -> None:
    """Say where in the program the JVM was asked for what it has just refused."""
    place = place_of_user()
    if not place:
        return
    for refused in read_notes(guard.sandbox)["refused"]:
        if not refused.get("where"):
            note(guard.sandbox, "refused", {**refused, "where": place})
