"""The start-up hook: waits for PySpark's context module, and hands it to `watchers`.

Every Python start of the environment imports this module (through `lineage_master.pth`), so it is short,
imports nothing but `sys`, adds one finder and is done. Only in a replay it begins the guard before.
Once PySpark's context module is loaded, the finder waits for Spark Connect's sessions only, and takes itself
away behind these.
"""

import sys

# mypy: disallow-untyped-defs=false, disallow-untyped-calls=false
# Annotations would need typing, and this runs in every Python start.

_MODULES = ("pyspark.core.context", "pyspark.context")  # PySpark 4, PySpark 3.5
_CONNECT = "pyspark.sql.connect.session"


class _ContextFinder:
    """Finds nothing itself: asks the other finders and wraps the loader of the context module."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _MODULES and name != _CONNECT:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is _ContextFinder or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    _wrap(spec.loader)
                return spec
        return None


def _wrap(loader):
    execute = loader.exec_module

    def exec_module(module):
        execute(module)
        _watch(module)

    loader.exec_module = exec_module


def _watch(module):
    if module.__name__ == _CONNECT and _ContextFinder in sys.meta_path:
        sys.meta_path.remove(_ContextFinder)
    try:
        from spark_agent import watchers

        watchers.watch(module, is_replay=_IS_REPLAY)
    except Exception as error:  # noqa: BLE001 - a broken agent must not end the job, but must end a replay
        if _IS_REPLAY:
            _end_replay(error)
        import logging

        logging.getLogger("spark_agent").error("lineage is off: %r", error)


def _begin_replay():
    """Begin the guard of a replay, or end the process: nothing of the user's runs without it."""
    try:
        from spark_agent.worker.guard import begin

        begin.begin()
    except BaseException as error:  # noqa: BLE001 - nothing runs unguarded
        _end_replay(error)


def _end_replay(error):
    import os

    os.write(2, f"lineage: replay refused: the guard cannot begin: {error!r}; nothing was run\n".encode())
    os._exit(3)


#: As Python started: a program may put another mapping in place of `os.environ`, which `site` has imported.
_IS_REPLAY = "LINEAGE_REPLAY" in getattr(sys.modules.get("os"), "environ", ())

if _IS_REPLAY:
    _begin_replay()

if _ContextFinder not in sys.meta_path and not any(name in sys.modules for name in _MODULES):
    sys.meta_path.insert(0, _ContextFinder)
else:
    for _name in _MODULES:
        if _name in sys.modules:
            _watch(sys.modules[_name])
