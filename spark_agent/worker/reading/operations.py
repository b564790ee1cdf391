"""What single instructions do with the values of a `Machine`: variables, new objects, parts of objects."""

from __future__ import annotations

import sys
from types import CodeType

from spark_agent.worker.reading.instructions import Step, Undecided
from spark_agent.worker.reading.loops import item_of
from spark_agent.worker.reading.machine import Machine, operation
from spark_agent.worker.reading.methods import BUILTIN_TYPES
from spark_agent.worker.reading.values import (
    CLEAN,
    NULL,
    Atoms,
    Need,
    Place,
    Value,
    is_outside,
    is_reached,
    part_of,
    value_at,
)

_SUBSCRIPT = 26  # the operation of BINARY_OP that is a subscript, from Python 3.14 on
_VARIABLES = ("local", "global", "cell")
_IN_PLACE = range(13, 26)  # operations of BINARY_OP that change their left side


@operation("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF")
def _load(machine: Machine, step: Step) -> None:
    if step.name == "LOAD_DEREF" and step.value not in machine.cell_names:
        _load_outside(machine, ("cell", step.value))
    elif step.name != "LOAD_DEREF" and step.value in machine.cell_names:
        _load_cell(machine, step)  # from Python 3.13 on
    else:
        machine.stack.append(machine.load(step.value))


@operation("LOAD_CLOSURE")
def _load_cell(machine: Machine, step: Step) -> None:
    if step.value in machine.cell_names:
        machine.stack.append(Value(cells=frozenset((step.value,))))
    else:
        _load_outside(machine, ("cell", step.value))


@operation("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
def _load_two(machine: Machine, step: Step) -> None:
    for name in step.value:
        _load(machine, step._replace(name="LOAD_FAST", value=name))


@operation("LOAD_FAST_AND_CLEAR")
def _load_and_clear(machine: Machine, step: Step) -> None:
    machine.stack.append(machine.locals.pop(step.value, CLEAN))


@operation("LOAD_GLOBAL", "LOAD_NAME")
def _load_global(machine: Machine, step: Step) -> None:
    path = ("global", step.value)
    if step.value in BUILTIN_TYPES:
        machine.required.add(Need("is", path, step.value))
        machine.stack.append(Value(path=path))
    else:
        _load_outside(machine, path)
    if step.name == "LOAD_GLOBAL" and step.arg & 1:
        machine.stack.insert(-1 if sys.version_info < (3, 13) else len(machine.stack), NULL)


def _load_outside(machine: Machine, path: tuple[str, str]) -> None:
    machine.stack.append(Value(value_at(path), frozenset((Place(path),)), path))


@operation("STORE_FAST", "STORE_DEREF", "STORE_GLOBAL")
def _store(machine: Machine, step: Step) -> None:
    (value,) = machine.pop(1)
    if step.name == "STORE_GLOBAL" or (step.name == "STORE_DEREF" and step.value not in machine.cell_names):
        kind = "global" if step.name == "STORE_GLOBAL" else "cell"
        atoms = machine.heap.atoms(value) | machine.control
        machine.heap.store((Place((kind, step.value)),), atoms, value.places)
    else:
        machine.store(step.value, value, step)


@operation("STORE_FAST_STORE_FAST")
def _store_two(machine: Machine, step: Step) -> None:
    for name in step.value:
        machine.store(name, machine.pop(1)[0], step)


@operation("STORE_FAST_LOAD_FAST")
def _store_and_load(machine: Machine, step: Step) -> None:
    stored, loaded = step.value
    machine.store(stored, machine.pop(1)[0], step)
    machine.stack.append(machine.load(loaded))


@operation("DELETE_FAST", "DELETE_DEREF")
def _delete(machine: Machine, step: Step) -> None:
    machine.locals.pop(step.value, None)


@operation("SWAP")
def _swap(machine: Machine, step: Step) -> None:
    stack = machine.stack
    stack[-1], stack[-step.arg] = stack[-step.arg], stack[-1]


@operation("COPY")
def _copy(machine: Machine, step: Step) -> None:
    machine.stack.append(machine.stack[-step.arg])


@operation("PUSH_EXC_INFO")
def _push_exception(machine: Machine, _step: Step) -> None:
    machine.stack.insert(-1, CLEAN)


@operation("PUSH_NULL")
def _push_null(machine: Machine, _step: Step) -> None:
    machine.stack.append(NULL)


@operation("GET_LEN", "MATCH_SEQUENCE", "MATCH_MAPPING")
def _look_at_top(machine: Machine, _step: Step) -> None:
    machine.stack.append(Value(machine.heap.atoms(machine.stack[-1])))


@operation("MATCH_KEYS", "MATCH_CLASS")
def _match(machine: Machine, step: Step) -> None:
    names = machine.pop(3 if step.name == "MATCH_CLASS" else 0)
    values = names or machine.stack[-2:]
    places = frozenset(place for value in values for place in value.places)
    machine.stack.append(Value(machine.merged(values), machine.heap.parts(places)))


@operation("LOAD_CONST", "LOAD_SMALL_INT")
def _load_constant(machine: Machine, step: Step) -> None:
    is_code = isinstance(step.value, CodeType)
    machine.stack.append(Value(code=step.value) if is_code else Value(constant=(step.value,)))


@operation("BUILD_LIST", "BUILD_SET", "BUILD_TUPLE", "BUILD_SLICE", "LIST_TO_TUPLE")
def _build(machine: Machine, step: Step) -> None:
    values = machine.pop(1 if step.name == "LIST_TO_TUPLE" else step.arg)
    if step.name == "BUILD_TUPLE" and values and all(value.cells and not value.code for value in values):
        machine.stack.append(Value(cells=frozenset().union(*(value.cells for value in values))))
        return
    if step.name == "BUILD_LIST" and not values:
        machine.empty.add(step.offset)
    machine.stack.append(machine.new(step, values))


@operation("BUILD_MAP", "BUILD_CONST_KEY_MAP")
def _build_map(machine: Machine, step: Step) -> None:
    many = 2 * step.arg if step.name == "BUILD_MAP" else step.arg + 1
    machine.stack.append(machine.new(step, machine.pop(many)))


@operation(
    "LIST_APPEND",
    "SET_ADD",
    "MAP_ADD",
    "LIST_EXTEND",
    "SET_UPDATE",
    "DICT_UPDATE",
    "DICT_MERGE",
)
def _add(machine: Machine, step: Step) -> None:
    values = machine.pop(2 if step.name == "MAP_ADD" else 1)
    target = machine.stack[-step.arg]
    inner = frozenset(place for value in values for place in value.places)
    machine.heap.store(target.places, machine.merged(values) | machine.control, inner)


@operation("BINARY_OP", "BINARY_SUBSCR", "BINARY_SLICE", "CONTAINS_OP")
def _binary(machine: Machine, step: Step) -> None:
    left, *others = machine.pop(3 if step.name == "BINARY_SLICE" else 2)
    if step.name == "CONTAINS_OP":  # the container is on top
        left, others = others[0], [left]
        machine.stack.append(
            Value(machine.merged((left, *others)) | machine.use(left, "__contains__", *others))
        )
        return
    atoms = machine.merged((left, *others))
    if step.name != "BINARY_OP" or step.arg == _SUBSCRIPT:
        atoms |= machine.use(left, "__getitem__", *others)
        machine.stack.append(Value(atoms, machine.heap.parts(left.places), part_of(left.path)))
        return
    for operand in (left, *others):
        atoms |= machine.use(operand, "")
    if step.arg in _IN_PLACE and left.places:
        inner = frozenset(place for operand in others for place in operand.places)
        _put(machine, left, machine.merged(others), inner)
        machine.stack.append(Value(atoms, left.places))
        return
    operands = frozenset(place for operand in (left, *others) for place in operand.places)
    items = Value(places=machine.heap.reachable(operands) - operands)  # a sum of lists has their items
    machine.stack.append(machine.new(step, (items,), atoms) if items.places else Value(atoms))


@operation(
    "UNARY_NEGATIVE",
    "UNARY_INVERT",
    "UNARY_POSITIVE",
    "FORMAT_VALUE",
    "CALL_INTRINSIC_1",
)
def _unary(machine: Machine, step: Step) -> None:
    values = machine.pop(2 if step.name == "FORMAT_VALUE" and step.arg & 4 else 1)
    machine.stack.append(Value(machine.merged(values)))


@operation("STORE_SUBSCR", "STORE_SLICE", "STORE_ATTR")
def _store_part(machine: Machine, step: Step) -> None:
    value, target, *keys = machine.pop({"STORE_SUBSCR": 3, "STORE_SLICE": 4, "STORE_ATTR": 2}[step.name])
    is_direct = step.name == "STORE_ATTR" and target.path is not None and target.path[0] in _VARIABLES
    _put(machine, target, machine.merged((value, *keys)), value.places, is_noted=not is_direct)
    name = step.value if step.name == "STORE_ATTR" else None
    if is_reached(target.path):
        machine.heap.stored.add(("set", target.path, name))
    outside = (place.root for place in target.places if is_outside(place.root))
    machine.heap.stored |= {("set", root, name) for root in outside if not is_reached(target.path)}


def _put(
    machine: Machine, target: Value, atoms: Atoms, inner: frozenset[Place], *, is_noted: bool = True
) -> None:
    places = machine.heap.delegates(target.places)
    machine.heap.store(places, atoms | machine.control, inner, is_noted=is_noted)
    machine.spoiled |= machine.buffers_of(target)


@operation("DELETE_SUBSCR", "DELETE_ATTR")
def _delete_part(machine: Machine, step: Step) -> None:
    target, *keys = machine.pop(2 if step.name == "DELETE_SUBSCR" else 1)
    _put(machine, target, machine.merged(keys), frozenset())


@operation("LOAD_ATTR", "LOAD_METHOD")
def _load_attribute(machine: Machine, step: Step) -> None:
    (value,) = machine.pop(1)
    is_method = step.name == "LOAD_METHOD" or (sys.version_info >= (3, 12) and step.arg & 1)
    path = ("attribute", value.path, step.value)
    if is_method:
        machine.stack += [Value(path=path), value]
        return
    atoms = machine.heap.atoms(value) | (value_at(path) if is_reached(path) else frozenset())
    machine.stack.append(Value(atoms, machine.heap.parts(value.places), path))


@operation("IMPORT_NAME")
def _import(machine: Machine, step: Step) -> None:
    level, names = machine.pop(2)
    if level.constant != (0,):
        machine.stack.append(CLEAN)  # beside this module
        return
    has_names = names.constant is not None and bool(names.constant[0])
    _load_outside(machine, ("import", step.value if has_names else step.value.partition(".")[0]))


@operation("IMPORT_FROM")
def _import_from(machine: Machine, step: Step) -> None:
    path = ("attribute", machine.stack[-1].path, step.value)
    machine.stack.append(Value(places=machine.stack[-1].places, path=path))


@operation("UNPACK_SEQUENCE", "UNPACK_EX")
def _unpack(machine: Machine, step: Step) -> None:
    (value,) = machine.pop(1)
    many = step.arg if step.name == "UNPACK_SEQUENCE" else 1 + (step.arg & 255) + (step.arg >> 8)
    part = item_of(machine, value)
    machine.stack += [part] * many


@operation("MAKE_FUNCTION")
def _make_function(machine: Machine, step: Step) -> None:
    code = machine.pop(1)[0].code
    extras = machine.pop(step.arg.bit_count()) if sys.version_info < (3, 13) else []
    if code is None:
        raise Undecided
    machine.stack.append(_function(Value(code=code), extras, machine))


@operation("SET_FUNCTION_ATTRIBUTE")
def _set_function_attribute(machine: Machine, _step: Step) -> None:
    extra, function = machine.pop(2)
    machine.stack.append(_function(function, [extra], machine))


def _function(function: Value, extras: list[Value], machine: Machine) -> Value:
    cells = function.cells.union(*(extra.cells for extra in extras))
    places = function.places.union(*(extra.places for extra in extras))
    atoms = function.atoms | machine.merged(extras)
    for name in cells:
        machine.heap.atoms(machine.locals.get(name, CLEAN))  # the partition itself must not be among them
    return function._replace(atoms=atoms, places=places, cells=cells)
