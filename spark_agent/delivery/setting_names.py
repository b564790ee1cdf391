"""Keys of a Spark conf that are meant for the agent, and what was meant by those that it does not know.

A misspelled setting must not be silent: the misspelled switch would mean no lineage at all. Knows nothing of
what settings mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

PREFIX, OLD_PREFIX = "spark.lineage.", "spark.rdd.lineage."
#: Cloudera's own lineage writes its files there.
FOREIGN = frozenset(("spark.lineage.log.dir",))
#: Unknown keys of one conf that are named one by one.
MAX_NAMED = 5
_SIMILAR, _VERY_SIMILAR = 0.6, 0.85


def names_in(conf_text: str) -> list[str]:
    """The keys that may be meant for the agent, of a conf as `SparkConf.toDebugString` gives it."""
    keys = (line.partition("=")[0] for line in conf_text.splitlines())
    return [key for key in keys if key.lower().startswith(("spark.lin", "spark.rdd.lin"))]


def unknown(names: Iterable[str], settings: Collection[str]) -> list[str]:
    """A sentence for each of `names` that is none of `settings`, with the nearest of them."""
    sentences: list[str] = []
    for name in names:
        if name in settings or name in FOREIGN:
            continue
        is_ours = name.lower().startswith((PREFIX, OLD_PREFIX))
        near = _nearest(name, settings, _SIMILAR if is_ours else _VERY_SIMILAR)
        if near:
            sentences.append(f"{name} is not a setting, and means nothing; did you mean {near}?")
        elif is_ours:  # else it is somebody else's
            sentences.append(f"{name} is not a setting, and means nothing; docs/settings.md has all settings")
    if len(sentences) > MAX_NAMED:
        left_out = len(sentences) - MAX_NAMED
        sentences[MAX_NAMED:] = [f"{left_out} more keys of the conf are not settings, and mean nothing"]
    return sentences


def _nearest(name: str, settings: Collection[str], cutoff: float) -> str:
    from difflib import get_close_matches  # needed for a mistake only

    if cutoff == _SIMILAR:  # what all names have in common would make all of them similar
        by_rest = {
            setting.removeprefix(PREFIX).lower(): setting
            for setting in settings
            if setting.startswith(PREFIX)
        }
        rest = name.lower().removeprefix(PREFIX).removeprefix(OLD_PREFIX)
    else:
        by_rest, rest = {setting.lower(): setting for setting in settings}, name.lower()
    near = get_close_matches(rest, by_rest, 1, cutoff)
    return by_rest[near[0]] if near else ""
