"""Catalyst over py4j: the few constructors and queries that rewriting a plan needs, each in one place.

A round trip to the JVM takes about 0.2 ms, so classes are looked up once, and what the JVM can do in one call
is done there, by PlanReader.java and PlanBuilder.java. Knows nothing of lineage. Constructors differ between
versions of Spark only here and there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_agent.sql.iceberg_plans import IcebergPlans
from spark_agent.sql.python_functions import PythonFunctions
from spark_agent.sql.types import Expression, Plan, Seq

if TYPE_CHECKING:
    from spark_agent.sql.jvm_gateway import Jvm

#: An option of the relations that are of a query that runs again.
_MARK = ("lineage", "again")


@dataclass(frozen=True, slots=True)
class Operator:
    """What an operator of a plan is. `files` is what it reads if it is a scan of files, see PlanReader.java.

    The names of their options are in lower case.
    """

    kind: str  # the name of its class
    name: str
    text: str  # all that Spark shows of it
    call_sites: list[str]  # where the user's program made it, see CallSites.java
    has_subqueries: bool
    is_deterministic: bool
    files: dict[str, Any] | None
    table: str | None = None  # in Spark's catalog, with its database
    expressions: dict[str, Any] | None = None  # what it computes of a row, see OperatorExpressions.java


class Catalyst:
    """One JVM. Names of methods are those of Catalyst's classes."""

    def __init__(self, jvm: Any, java: Jvm) -> None:
        self.jvm = self._jvm = jvm
        self._java = java
        self._reader, self._builder = java.plan_reader, java.plan_builder
        self._row_indexes, self._answered_queries = java.row_indexes, java.answered_queries
        self.functions = PythonFunctions(java)
        self.iceberg = IcebergPlans(jvm, java)
        self.row_operations = java.row_operations  # what statements of tables do with rows
        self.merge_instructions = java.merge_instructions
        self.change_feeds = java.change_feeds  # of tables, as scans of their files
        catalyst = jvm.org.apache.spark.sql.catalyst
        expressions, plans = catalyst.expressions, catalyst.plans.logical
        self.none = singleton(jvm.scala, "None")
        self._nil = self.seq([])
        self._alias = expressions.Alias
        self._filter = plans.Filter
        self._repartition = plans.RepartitionByExpression
        self._join = plans.Join
        self._inner = singleton(catalyst.plans, "Inner")
        self._existence = catalyst.plans.ExistenceJoin
        self._not = expressions.Not
        self._at_least = expressions.GreaterThanOrEqual
        self._if = expressions.If
        self._both, self._either = expressions.And, expressions.Or
        self._is_null = expressions.IsNull
        self._field = expressions.GetStructField
        self._partition_id = expressions.SparkPartitionID
        self._position = expressions.MonotonicallyIncreasingID
        self._cast = expressions.Cast
        self._hex = expressions.Hex
        self._literal = expressions.Literal
        self._long = jvm.org.apache.spark.sql.types.DataTypes.LongType
        self._int = jvm.org.apache.spark.sql.types.DataTypes.IntegerType
        self._string = jvm.org.apache.spark.sql.types.DataTypes.StringType
        self._prune = catalyst.optimizer.ColumnPruning
        self._equi_join = catalyst.planning.ExtractEquiJoinKeys
        self._pruning = expressions.DynamicPruningSubquery
        self._relation = jvm.org.apache.spark.sql.execution.datasources.LogicalRelation
        self._equal = expressions.EqualNullSafe
        self._files = jvm.org.apache.spark.sql.execution.datasources.HadoopFsRelation
        self.no_options = singleton(jvm.scala.collection.immutable, "Map").empty()
        self.true = self._literal.TrueLiteral()
        self.no_id = self._literal.create(None, self._long)

    # -- queries -------------------------------------------------------------------------------------

    def kind(self, part: Any) -> str:
        """The name of the class of a plan, an expression, or what they hold; without its package."""
        return str(self._reader.kind(part))

    def is_statement(self, plan: Plan) -> bool:
        """Is it a command, not a query?"""
        return bool(self._reader.isStatement(plan))

    def leaf_kinds(self, plan: Plan) -> list[str]:
        return _texts(self._reader.leafKinds(plan))

    def look(self, plan: Plan) -> Operator:
        fields = json.loads(self._reader.describe(plan))
        if fields["files"] is not None:
            fields["files"]["options"] = _lowered(fields["files"]["options"])
        return Operator(**fields)

    def schema(self, of: Plan | Seq) -> str:
        """Spark's JSON of the struct that a scan reads, that a plan gives, or that some columns are."""
        text = self._reader.schema(of)
        # py4j's iterator would ask twice, and end with an error.
        return text if isinstance(text, str) else "".join(text.get(at) for at in range(text.size()))

    def types(self, expressions: list[Expression] | Seq) -> list[str]:
        """The names of their types, as in a catalog."""
        return _texts(self._reader.typeNames(self._seq_of(expressions)))

    def names(self, columns: list[Expression] | Seq) -> list[str]:
        return _texts(self._reader.columnNames(self._seq_of(columns)))

    def names_read(self, expression: Expression) -> list[str]:
        """The names of the columns that it reads."""
        return _texts(self._reader.referenceNames(expression))

    def data_columns(self, command: Plan) -> Seq:
        """The columns that a command writes into files, not into names of folders."""
        return self._reader.dataColumns(command)

    def remembered(self, query: Plan) -> Any:
        """What asking a query again will need: see RememberedQuery.java."""
        return self._reader.remembered(query)

    def conf(self, plan: Plan, name: str, default: str) -> str:
        """A setting of the session in which a plan is planned."""
        setting = plan.conf().getConfString(name, None)
        return default if setting is None else str(setting)

    def text_columns(self, columns: Seq) -> Any:
        """A java.util.List of those that are texts; None where others may hold the end of a line, too."""
        return self._reader.textColumns(columns)

    def column_ids(self, plan: Plan) -> tuple[int, ...]:
        """What tells the columns of a plan from those of all others."""
        return tuple(json.loads(self._reader.columnIds(plan)))

    @staticmethod
    def column_ids_read(reader: Expression | Plan) -> set[int]:
        """Those of the columns that an expression, or an operator's own ones, reads."""
        columns, ids = reader.references().iterator(), set()
        while columns.hasNext():
            ids.add(int(columns.next().exprId().id()))
        return ids

    def are_of_same_files(self, plan: Plan, other: Plan) -> bool:
        """Do two plans with the same leaves read the same files? Spark itself looks at their folders only."""
        return bool(self._reader.readSameFiles(plan, other))

    def may_differ(self, plan: Plan) -> bool:
        """May a plan that stands in a query twice give other rows the second time?"""
        return bool(self._reader.mayDiffer(plan))

    def window_functions(self, window: Plan) -> list[dict[str, Any]]:
        """What the functions of a Window are, in order: see WindowFunctions.java."""
        return list(json.loads(self._java.windows.describe(window)))

    def decision(self, aggregate: Plan) -> str:
        """Which rows give the results of a group: see PickingFunctions.java."""
        return str(self._java.picking_functions.decision(aggregate))

    def picked_ids(self, aggregate: Plan, ids: list[Expression]) -> list[Expression]:
        """Functions that give the ids of the rows whose values the functions of an Aggregate give.

        For each row all of `ids` in their order.
        """
        return list(self._java.picking_functions.picked(aggregate, self._java.java_list(ids)))

    def without_sessions(self, grouping: Seq) -> Seq:
        """The expressions that are no session windows, which grow by the rows that meet in them."""
        return self._reader.withoutSessions(grouping)

    def is_beside_copy(self, outer: Plan, plan: Plan) -> bool:
        """Does a side of a join hold a copy of the other side, of which Spark computes a subquery?"""
        return bool(self._java.correlated.isBesideCopy(outer, plan))

    def is_copy(self, aggregate: Plan, outer: Plan) -> bool:
        """Is it no more than the different values of such a copy?"""
        return bool(self._java.correlated.isCopy(aggregate, outer))

    def is_denied(self, join: Plan, root: Plan) -> bool:
        """Does a plan ask of an ExistenceJoin within it only that a row has no matches?"""
        return bool(self._java.correlated.isNegated(join, root))

    def options(self, pairs: Any) -> dict[str, str]:
        """A Scala Map of texts, whose names are in lower case."""
        return _lowered(json.loads(self._reader.options(pairs)))

    # -- lists ---------------------------------------------------------------------------------------

    def seq(self, items: Iterable[Any]) -> Seq:
        return self._java.seq(items)

    @staticmethod
    def items(seq: Seq) -> list[Any]:
        return [seq.apply(index) for index in range(seq.size())]

    @staticmethod
    def last(seq: Seq, count: int) -> list[Any]:
        size = seq.size()
        return [seq.apply(index) for index in range(size - count, size)]

    def _seq_of(self, items: list[Any] | Seq) -> Seq:
        return self.seq(items) if isinstance(items, list) else items

    # -- expressions ---------------------------------------------------------------------------------

    def long(self, value: int) -> Expression:
        """A literal of that type, which py4j does not give: small numbers become Integer."""
        return self._builder.literal(value)

    def number(self, value: int) -> Expression:
        """A literal of the type int."""
        return self._literal.create(value, self._int)

    def alias(self, expression: Expression, name: str) -> Expression:
        return self._builder.alias(expression, name)

    def alias_as(self, expression: Expression, attribute: Expression) -> Expression:
        """`expression` in the place of `attribute`."""
        return self._alias(expression, attribute.name(), attribute.exprId(), self._nil, self.none, self._nil)

    def literal(self, value: Any, data_type: Any) -> Expression:
        """`value` is as Catalyst holds it, and never leaves the JVM."""
        return self._literal(value, data_type)

    def text_literal(self, text: str) -> Expression:
        return self._literal.create(text, self._string)

    def null(self, data_type: Any) -> Expression:
        return self._literal.create(None, data_type)

    def one_row(self) -> Plan:
        """A plan of one row without columns."""
        return self._jvm.org.apache.spark.sql.catalyst.plans.logical.OneRowRelation()

    def same(self, one: Expression, other: Expression) -> Expression:
        """Are they equal, null and null too?"""
        return self._equal(one, other)

    def either(self, one: Expression, other: Expression) -> Expression:
        """Is at least one of two conditions true? The second is only evaluated where the first is not."""
        return self._either(one, other)

    def is_positive(self, number: Expression) -> Expression:
        """Is a long 0 or more?"""
        return self._at_least(number, self.long(0))

    def is_other(self, number: Expression, value: int) -> Expression:
        """Is a long another than this?"""
        return self._not(self._equal(number, self.long(value)))

    def not_(self, condition: Expression) -> Expression:
        return self._not(condition)

    def field(self, struct: Expression, ordinal: int) -> Expression:
        return self._field(struct, ordinal, self.none)

    def if_(self, condition: Expression, then: Expression, otherwise: Expression) -> Expression:
        return self._if(condition, then, otherwise)

    def position(self) -> Expression:
        """The index of the partition and the position of a row in it: `split << 33 | position`."""
        return self._position()

    def partition_id(self) -> Expression:
        """The index of the partition, as a long."""
        return self._cast(self._partition_id(), self._long, self.none, self._mode())

    def is_null(self, expression: Expression) -> Expression:
        return self._is_null(expression)

    def text(self, expression: Expression, time_zone: str | None = None) -> Expression:
        """A value as Spark shows it, cast to a string; times in a time zone."""
        return self._cast(expression, self._string, self._jvm.scala.Option.apply(time_zone), self._mode())

    def hexadecimal(self, expression: Expression) -> Expression:
        """Bytes as a string of hexadecimal digits."""
        return self._hex(expression)

    def _mode(self) -> Any:
        return getattr(self._cast, "$lessinit$greater$default$4")()

    def key(self, expressions: list[Expression] | Seq) -> Expression:
        """A number from 0 to 2**63 - 1 that is the same for the same values: a hash of 63 bits."""
        return self._builder.key(self._seq_of(expressions))

    def digest(self, plan: Plan, salt: bytes) -> Expression | None:
        """A number from 0 to 2**63 - 1 that is the same for rows with the same columns and values.

        Rows of columns with other names or types have other ones. None where rows cannot be hashed.
        """
        columns = plan.output()
        names, types = self.names(columns), self.types(columns)
        if not all(map(is_hashable, types)):
            return None
        of_columns = hashlib.blake2b(repr((names, types)).encode(), digest_size=7, key=salt).digest()
        return self.key([self.long(int.from_bytes(of_columns, "big")), *self.items(columns)])

    def is_pushed_into_lines(self, condition: Expression) -> bool:
        """Does Spark look at a condition while it reads lines of CSV or JSON, so before all others?"""
        pushing = singleton(self._jvm.org.apache.spark.sql.execution.datasources, "DataSourceStrategy")
        return bool(pushing.translateFilter(condition, False).isDefined())

    def may_fail(self, condition: Expression) -> bool:
        """May a condition on a row end in an error? Comparisons with literals do not."""
        return not self.is_pushed_into_lines(condition)

    def conjuncts(self, condition: Expression) -> list[Expression]:
        """The conditions that `condition` joins by AND."""
        if self.kind(condition) != "And":
            return [condition]
        return [*self.conjuncts(condition.left()), *self.conjuncts(condition.right())]

    def references(self, reader: Expression | Plan, plan: Plan) -> list[Expression]:
        """The columns of `plan` that an expression, or an operator's own ones, reads."""
        read = reader.references()
        return [column for column in self.items(plan.output()) if read.contains(column)]

    def all_of(self, conditions: Sequence[Expression]) -> Expression | None:
        """Their conjunction; None for none."""
        conjunction = None
        for condition in conditions:
            conjunction = condition if conjunction is None else self._both(conjunction, condition)
        return conjunction

    def transformed(self, plan: Plan, function: Callable[[Expression], Expression | None]) -> Plan:
        """The plan's own expressions with what `function` gives for any part of them that is not None."""
        return plan.transformExpressions(_PartialFunction(function))

    def pruning_by_itself(self, pruning: Expression) -> Expression:
        """A DynamicPruningSubquery that runs its query where it cannot use the other side's broadcast again.

        That broadcast has columns of ids, and is another one than the query's.
        """
        arguments = _arguments(pruning)
        arguments[4] = False  # onlyInBroadcast
        # Since Spark 4.3 there is a second list of parameters.
        return self._pruning(*arguments, *self.items(pruning.otherCopyArgs()))

    # -- plans ---------------------------------------------------------------------------------------

    def project(self, columns: list[Expression] | Seq, plan: Plan, more: Iterable[Expression] = ()) -> Plan:
        """`columns`, and behind them `more`."""
        return self._builder.project(self._seq_of(columns), self._java.java_list(more), plan)

    def project_as(self, like: Plan, plan: Plan, more: Iterable[Expression] = ()) -> Plan:
        """The columns that `like` gives, and behind them `more`."""
        return self._builder.projectAs(like, self._java.java_list(more), plan)

    def with_columns(self, plan: Plan, named: list[Expression]) -> tuple[Plan, list[Expression]]:
        """The plan with more columns, and their attributes."""
        return self.project_as(plan, plan, named), [column.toAttribute() for column in named]

    def filter(self, condition: Expression, plan: Plan) -> Plan:
        return self._filter(condition, plan)

    def repartition(self, expressions: Any, plan: Plan) -> Plan:
        """Rows with the same values in one partition, as Spark does it where an operator needs that."""
        return self._repartition(expressions, plan, self.none, self.none)

    def repartition_over(self, plan: Plan, more: list[Expression], child: Plan) -> Plan:
        """A repartition over a child with columns more, which takes each row where it went without them."""
        return self._builder.repartition(plan, self._java.java_list(more), child)

    def sorted_by(self, columns: list[Expression], plan: Plan) -> Plan:
        """The rows of each partition in the order of these columns."""
        return self._builder.sortedBy(self._java.java_list(columns), plan)

    def with_children(self, plan: Plan, children: list[Plan]) -> Plan:
        return self._builder.withChildren(plan, self._java.java_list(children))

    def with_row_index(self, relation: Plan) -> tuple[Plan, Expression | None] | None:
        """A LogicalRelation with the index of each row in its file, which is None where it cannot be had too.

        None where the format does not know it.
        """
        indexed = self._row_indexes.scan(relation)
        return None if indexed is None else (indexed, self._row_indexes.of(indexed))

    def table_behind(self, rows: Plan) -> Plan | None:
        """The scan of the table of which Spark computed a LocalRelation while it optimised a query.

        The LocalRelation itself where its rows are of no table, and None where that is not known.
        """
        table: Plan | None = self._answered_queries.tableOf(rows)
        return table

    @staticmethod
    def behind_cache(relation: Plan) -> Plan | None:
        """The plan that an InMemoryRelation holds the rows of. None before Spark 4.0, which forgets it."""
        builder = relation.cacheBuilder()
        return builder.logicalPlan() if builder.productArity() > 4 else None

    @staticmethod
    def renewed(relation: Plan) -> Plan:
        """A leaf of the same rows, whose columns are others."""
        return relation.newInstance()

    def unlike_cached(self, relation: Plan) -> Plan:
        """A LogicalRelation of the same files that Spark takes for none that the user has cached."""
        files = relation.relation()
        if self.kind(files) != "HadoopFsRelation":
            return relation
        file_arguments = _arguments(files)
        file_arguments[5] = file_arguments[5].updated(*_MARK)
        arguments = _arguments(relation)
        arguments[0] = self._files(*file_arguments, files.sparkSession())
        return self._relation(*arguments)

    def aggregate(self, plan: Plan, more: list[Expression], child: Plan) -> Plan:
        """`plan`, an Aggregate, with more results over another child."""
        return self._builder.aggregate(plan, self._java.java_list(more), child)

    def generate(self, plan: Plan, child: Plan) -> Plan:
        """`plan`, a Generate, over another child."""
        return self._builder.generate(plan, child)

    def expand(self, plan: Plan, columns: list[Expression], output: list[Expression], child: Plan) -> Plan:
        """`plan`, an Expand, over another child, whose `columns` each of its rows has, as its `output`."""
        return self._builder.expand(plan, self._java.java_list(columns), self._java.java_list(output), child)

    def merge_rows(
        self,
        plan: Plan,
        columns: list[Expression],
        of_copies: list[Expression],
        output: list[Expression],
        child: Plan,
        *,
        has_operations: bool = False,
    ) -> Plan:
        """`plan`, a MergeRows, over another child, whose `columns` each of its rows has, as its `output`.

        A row that is only copied has `of_copies` in their place. With `has_operations` each row says behind
        them what is done with it, and rows that are deleted come, too: see MergeInstructions.java.
        """
        lists = map(self._java.java_list, (columns, of_copies, output))
        instructions = self._java.merge_instructions
        return (instructions.withOperations if has_operations else instructions.withIds)(plan, *lists, child)

    def window(self, plan: Plan, more: list[Expression], child: Plan) -> Plan:
        """`plan`, a Window, with more functions over another child."""
        return self._java.windows.window(plan, self._java.java_list(more), child)

    def id_at(self, window: Plan, distance: int, id_column: Expression) -> Expression:
        """The id of the row that stands so far behind each row of a window, or before it."""
        return self._java.windows.shifted(window, distance, id_column)

    def picked(self, window: Plan, index: int, ids: Expression) -> Expression:
        """The id, or the struct of ids, of the row that a function of a window gives the value of."""
        return self._java.windows.picked(window, index, ids)

    def ids_unless_null(self, window: Plan, index: int, ids: list[Expression]) -> Expression:
        """A struct of ids that is null where the input of a function of a window is null."""
        return self._java.windows.unlessNull(window, index, self._java.java_list(ids))

    def frame_columns(
        self, window: Plan, spec: Any, ids: list[Expression], functions: list[int]
    ) -> list[Expression]:
        """What says of each row of a window where its frames are: see WindowFunctions.java."""
        columns = self._java.windows.frameColumns(
            window, spec, self._java.java_list(ids), self._java.java_list(functions)
        )
        return list(columns)

    def frame_tap(self, spec: Any, columns: list[Expression]) -> Expression:
        """A condition that is always true, and notes where the frames of a row are."""
        return self._java.windows.frameTap(spec, self._java.java_list(columns))

    def inner_join(self, left: Plan, right: Plan, join: Plan) -> Plan:
        """By the condition and the hints of another join."""
        return self._join(left, right, self._inner, join.condition(), join.hint())

    def existence_filter(self, join: Plan, *, is_kept: bool) -> Plan:
        """What a semi-join or an anti-join does, as a filter that keeps rows with a match, or without one."""
        exists = self.alias(self.true, "exists").toAttribute()
        joined = self._join(join.left(), join.right(), self._existence(exists), join.condition(), join.hint())
        return self.filter(exists if is_kept else self._not(exists), joined)

    def without_rows(self, tapped: Plan) -> Plan:
        """What a Filter of a tap does, and none of its rows."""
        none = self.filter(self._not(tapped.condition()), tapped.child())
        return self.project([self.alias(self.long(0), "lineage_none")], none)

    def after(self, without_rows: Plan) -> Expression:
        """A condition that is always true, and only evaluated when a plan that gives no rows has run."""
        # Its constructor differs between versions; Spark's parser takes a fifth of a second to be loaded.
        parser = singleton(self._jvm.org.apache.spark.sql.catalyst.parser, "CatalystSqlParser")
        return self._is_null(parser.parseExpression("(select 0)").withNewPlan(without_rows))

    def deterministic(self, plan: Plan) -> Plan:
        """The plan of a subquery that Spark takes for deterministic, with the taps in it."""
        return self._builder.deterministic(plan)

    def pruned(self, plan: Plan) -> Plan:
        """Without the columns that nothing above reads."""
        return self._prune.apply(plan)

    def equi_join_keys(self, join: Plan) -> tuple[list[Expression], list[Expression], bool] | None:
        """(keys of the left side, of the right side, is there nothing else to the condition)."""
        extracted = self._equi_join.unapply(join)
        if not extracted.isDefined():
            return None
        parts = extracted.get()
        return self.items(parts._2()), self.items(parts._3()), not parts._4().isDefined()


_UNHASHABLE = re.compile(r"\b(map|variant|geometry|geography)\b|collate", re.IGNORECASE)


def is_hashable(type_name: str) -> bool:
    """Can values of a type be grouped by a hash? `type_name` is as in a catalog."""
    return _UNHASHABLE.search(type_name) is None


def singleton(package: Any, name: str) -> Any:
    """Scala's `object` of a package."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def _arguments(product: Any) -> list[Any]:
    """What an object of a case class was made of."""
    return [product.productElement(index) for index in range(product.productArity())]


def _texts(array: Any) -> list[str]:
    return list(json.loads(array))


def _lowered(options: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}


class _PartialFunction:
    """scala.PartialFunction over py4j; Java's proxy sends the default methods here, too."""

    def __init__(self, function: Callable[[Expression], Expression | None]) -> None:
        self._function = function

    def applyOrElse(self, part: Expression, default: Any) -> Expression:
        replacement = self._function(part)
        return default.apply(part) if replacement is None else replacement

    def isDefinedAt(self, part: Expression) -> bool:
        return True

    def apply(self, part: Expression) -> Expression:
        replacement = self._function(part)
        return part if replacement is None else replacement

    def toString(self) -> str:
        return "lineage"

    class Java:
        implements = ("scala.PartialFunction",)
