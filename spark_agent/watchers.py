"""Waits, once PySpark is loaded, for SparkContexts and Spark Connect sessions that ask for lineage.

Apart from `hook`, which every Python start reads: this is loaded with PySpark's context module only. A
SparkContext whose conf does not mention lineage costs one look at that conf, and no import; so does a Connect
session, and a builder of SparkSessions without settings of lineage.
"""

import os
import sys

# mypy: disallow-untyped-defs=false, disallow-untyped-calls=false
# Annotations would need typing, which every program that uses PySpark would pay for.


def watch(module, *, is_replay=False):
    """Watch what a module of PySpark defines: SparkContext, or Spark Connect's SparkSession.

    `is_replay` says that Python started for a replay, whatever its environment says now.
    """
    context_class = getattr(module, "SparkContext", None)
    if module.__name__.startswith("pyspark.sql.connect."):
        _watch_connect(module.SparkSession, is_replay)
    elif context_class is not None and not hasattr(context_class, "_lineage_hooked"):
        _watch_context(context_class, is_replay)


def _watch_context(context_class, is_replay):
    """Make `context_class` (SparkContext) start the agent when a new context's conf asks for it."""
    initialise = context_class._do_init

    def _do_init(self, *args, **kwargs):
        if is_replay or "LINEAGE_REPLAY" in os.environ:
            _start_replay(self, initialise, args, kwargs)
            return
        initialise(self, *args, **kwargs)
        try:
            _watch_builder(context_class)
            # All keys in one round trip to the JVM: a misspelled one is to be noticed, too.
            conf_text = self._conf.toDebugString()
            if "spark.lin" in conf_text.lower() or "spark.rdd.lin" in conf_text.lower():
                from spark_agent import switch

                switch.start_if_wanted(self, conf_text)
        except Exception as error:  # noqa: BLE001 - a broken agent must not end the job
            _say_off(self, error)

    context_class._do_init = _do_init
    context_class._lineage_hooked = True


def _start_replay(context, initialise, args, kwargs):
    """In a replay an error ends the program: no job runs unguarded instead."""
    from spark_agent import switch

    switch.start_replay(context, initialise, args, kwargs)


def _watch_builder(context_class):
    """Notice settings that the builder of SparkSessions is given while a SparkContext is running."""
    session_class = getattr(sys.modules.get("pyspark.sql.session"), "SparkSession", None)
    builder_class = getattr(session_class, "Builder", None)
    if builder_class is None or hasattr(builder_class, "_lineage_hooked"):
        return
    original = builder_class.getOrCreate

    def getOrCreate(self):
        running = context_class._active_spark_context
        session = original(self)
        if running is not None and any("lineage" in name.lower() for name in self._options):
            try:
                from spark_agent import switch

                switch.say_what_is_too_late(running, self._options)
            except Exception as error:  # noqa: BLE001 - as above
                _say_off(running, error)
        return session

    getOrCreate.__doc__ = original.__doc__
    builder_class.getOrCreate = getOrCreate
    builder_class._lineage_hooked = True


def _watch_connect(session_class, is_replay):
    """Make the builder of `session_class` (Spark Connect's SparkSession) hand sessions to the agent."""
    original = session_class.Builder.create

    def create(self):
        if is_replay or "LINEAGE_REPLAY" in os.environ:
            from spark_agent import switch

            switch.refuse_connect()
        session = original(self)
        try:
            options = dict(self._options)
            if "spark_agent.agent" in sys.modules or any("lineage" in name.lower() for name in options):
                from spark_agent import agent

                agent.follow_connect(session, options)
        except Exception as error:  # noqa: BLE001 - as above
            _say_off(None, error)
        return session

    session_class.Builder.create = create


def _say_off(context, error):
    """Once, on standard error, unless not even that can be imported. None stands for a Connect session."""
    try:
        from spark_agent.delivery import notices

        is_quiet = (
            context is not None and context._conf.get("spark.lineage.quiet", "").strip().lower() == "true"
        )
        name = context.applicationId if context is not None else "this Spark Connect session"
        notices.Notices(context, is_quiet=is_quiet).say(f"off for {name}: {error!r}")
    except Exception:  # noqa: BLE001 - as above
        import logging

        logging.getLogger("spark_agent").error("lineage is off for this application: %r", error)
