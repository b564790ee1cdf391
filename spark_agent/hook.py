"""The start-up hook: waits for PySpark's context module and starts the agent when a job asks for it.

Every Python start of the environment imports this module (through `lineage_master.pth`), so it imports
nothing but `sys`, adds one finder and is done. Once PySpark's context module is loaded, the finder waits for
Spark Connect's sessions only, and takes itself away behind these. A SparkContext whose conf does not mention
lineage costs one look at that conf, and no import; so does a Connect session.
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
        if module.__name__ == _CONNECT:
            if _ContextFinder in sys.meta_path:
                sys.meta_path.remove(_ContextFinder)
            watch_connect(module.SparkSession)
            return
        context = getattr(module, "SparkContext", None)
        if context is not None and not hasattr(context, "_lineage_hooked"):
            watch(context)

    loader.exec_module = exec_module


def watch(context_class):
    """Make `context_class` (SparkContext) start the agent when a new context's conf asks for it."""
    initialise = context_class._do_init

    def _do_init(self, *args, **kwargs):
        initialise(self, *args, **kwargs)
        try:
            _watch_builder(context_class)
            # All keys in one round trip to the JVM: a misspelled one is to be noticed, too.
            conf_text = self._conf.toDebugString()
            if "spark.lin" in conf_text.lower() or "spark.rdd.lin" in conf_text.lower():
                from spark_agent import switch

                switch.start_if_wanted(self, conf_text)
        except Exception as error:  # noqa: BLE001 - a broken installation of ours is not the job's fault
            _say_off(self, error)

    context_class._do_init = _do_init
    context_class._lineage_hooked = True


def _watch_builder(context_class):
    """Notice settings that the builder of SparkSessions is given while a SparkContext is running."""
    session_class = getattr(sys.modules.get("pyspark.sql.session"), "SparkSession", None)
    builder_class = getattr(session_class, "Builder", None)
    if builder_class is None or hasattr(builder_class, "_lineage_hooked"):
        return
    stock = builder_class.getOrCreate

    def getOrCreate(self):
        running = context_class._active_spark_context
        session = stock(self)
        if running is not None and any("lineage" in name.lower() for name in self._options):
            try:
                from spark_agent import switch

                switch.say_what_is_too_late(running, self._options)
            except Exception as error:  # noqa: BLE001 - as above
                _say_off(running, error)
        return session

    getOrCreate.__doc__ = stock.__doc__
    builder_class.getOrCreate = getOrCreate
    builder_class._lineage_hooked = True


def watch_connect(session_class):
    """Make the builder of `session_class` (Spark Connect's SparkSession) tell the agent of sessions."""
    stock = session_class.Builder.create

    def create(self):
        session = stock(self)
        try:
            options = dict(self._options)
            if "spark_agent.session" in sys.modules or any("lineage" in name.lower() for name in options):
                from spark_agent import connect

                connect.start_if_wanted(session, options)
        except Exception as error:  # noqa: BLE001 - a broken installation of ours is not the job's fault
            _say_off(None, error)
        return session

    session_class.Builder.create = create


def _say_off(context, error):
    """Once, on standard error, unless not even that can be imported. None stands for a Connect session."""
    try:
        from spark_agent import notices

        is_quiet = (
            context is not None and context._conf.get("spark.lineage.quiet", "").strip().lower() == "true"
        )
        name = context.applicationId if context is not None else "this Spark Connect session"
        notices.Notices(context, is_quiet=is_quiet).say(f"off for {name}: {error!r}")
    except Exception:
        import logging

        logging.getLogger("spark_agent").exception("lineage is off for this application")


if _ContextFinder not in sys.meta_path and not any(name in sys.modules for name in _MODULES):
    sys.meta_path.insert(0, _ContextFinder)
else:
    for _name in _MODULES:
        _context = getattr(sys.modules.get(_name), "SparkContext", None)
        if _context is not None and not hasattr(_context, "_lineage_hooked"):
            watch(_context)
