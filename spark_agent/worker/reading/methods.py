"""What the name of a method or function says of a call, before its object is known."""

from __future__ import annotations

#: Methods that put something into an object although somebody uses their result.
MUTATORS = frozenset(
    (
        *(
            "add",
            "append",
            "appendleft",
            "extend",
            "extendleft",
            "insert",
            "update",
            "setdefault",
            "push",
            "put",
        ),
        *("discard", "remove", "pop", "popitem", "popleft", "subtract", "move_to_end"),
        *(
            "fit",
            "fit_transform",
            "fit_predict",
            "partial_fit",
            "learn_one",
            "learn_many",
        ),
        *(
            "reverse",
            "rotate",
            "sort",
            "send",
            "write",
            "writelines",
            "writerow",
            "writerows",
            "__setitem__",
        ),
        *("difference_update", "intersection_update", "symmetric_difference_update"),
    )
)
#: Those that make a list longer, and those that leave it as long as it is.
GROWING = frozenset(("append", "appendleft", "extend", "extendleft", "insert"))
ORDERING = frozenset(("sort", "reverse", "rotate"))
#: Methods that give parts of their object.
PARTS = frozenset(
    (
        *(
            "get",
            "setdefault",
            "pop",
            "popitem",
            "popleft",
            "items",
            "values",
            "keys",
            "copy",
        ),
        *("__getitem__", "__iter__"),
    )
)
#: Methods of the Python Database API (PEP 249).
CONNECTION_METHODS = frozenset(
    (
        *(
            "execute",
            "executemany",
            "executescript",
            "callproc",
            "fetchone",
            "fetchmany",
            "fetchall",
        ),
        *("commit", "rollback", "cursor", "close"),
    )
)
#: Methods that end the use of an object.
ENDINGS = frozenset(("close", "commit", "rollback", "flush"))
#: Functions that reach variables and attributes by their names.
REFLECTING = frozenset(("globals", "locals", "vars", "exec", "eval", "setattr", "delattr", "__import__"))
#: Types, and functions whose results do nothing to what they were given.
BUILTIN_TYPES = frozenset(
    (
        "bool",
        "bytes",
        "dict",
        "float",
        "frozenset",
        "int",
        "list",
        "set",
        "str",
        "tuple",
    )
)
BUILTINS = BUILTIN_TYPES | {
    "enumerate",
    "filter",
    "iter",
    "map",
    "range",
    "reversed",
    "sorted",
    "zip",
}
#: Functions that give an empty list.
EMPTY = frozenset(("list", "deque"))
#: Functions whose result is an iterator that takes one item after another of the one it is given.
WRAPPERS = frozenset(("iter", "enumerate", "islice", "map", "filter", "starmap", "filterfalse", "zip"))
#: Those that call their first argument, those that know how many items there were, and those that leave none
#: out.
APPLYING = frozenset(("map", "filter", "starmap", "filterfalse"))
NUMBERING = frozenset(("enumerate", "islice", "zip"))
ONE_FOR_ONE = frozenset(("iter", "enumerate", "map", "starmap", "zip"))
