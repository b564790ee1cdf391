"""Catalyst over py4j: the few constructors and questions that rewriting a plan needs, each in one place.

A round trip to the JVM takes about 0.2 ms, so classes are looked up once, and what the JVM can do in one call
is done there. Knows nothing of lineage. Constructors differ between versions of Spark only here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Plan = Any  # org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
Expression = Any  # org.apache.spark.sql.catalyst.expressions.Expression


class Catalyst:
    """One JVM. Names of methods are those of Catalyst's classes."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        catalyst = jvm.org.apache.spark.sql.catalyst
        expressions, plans = catalyst.expressions, catalyst.plans.logical
        self._to_seq = jvm.org.apache.spark.api.python.PythonUtils.toSeq
        self.none = singleton(jvm.scala, "None")
        self._nil = self._to_seq([])
        self._deep_equals = jvm.java.util.Objects.deepEquals
        self._new_id = expressions.NamedExpression.newExprId
        self._alias = expressions.Alias
        self._project = plans.Project
        self._filter = plans.Filter
        self._expand = plans.Expand
        self._repartition = plans.RepartitionByExpression
        self._generate = plans.Generate
        self._join = plans.Join
        self._inner = singleton(catalyst.plans, "Inner")
        self._not = expressions.Not
        self._hash = expressions.XxHash64
        self._and = expressions.BitwiseAnd
        self._if = expressions.If
        self._both = expressions.And
        self._is_null = expressions.IsNull
        self._field = expressions.GetStructField
        self._partition_id = expressions.SparkPartitionID
        self._position = expressions.MonotonicallyIncreasingID
        self._cast = expressions.Cast
        self._literal = expressions.Literal
        self._long = jvm.org.apache.spark.sql.types.DataTypes.LongType
        self._string = jvm.org.apache.spark.sql.types.DataTypes.StringType
        self._normalize = singleton(catalyst.optimizer, "NormalizeFloatingNumbers").normalize
        self._prune = catalyst.optimizer.ColumnPruning
        self._equi_join = catalyst.planning.ExtractEquiJoinKeys
        self._aggregate = plans.Aggregate
        self._attribute = expressions.AttributeReference
        self._struct = jvm.org.apache.spark.sql.types.StructType
        self._pruning = expressions.DynamicPruningSubquery
        self._relation = jvm.org.apache.spark.sql.execution.datasources.LogicalRelation
        self._reference = plans.CTERelationRef
        self._writes = jvm.org.apache.spark.sql.execution.datasources.V1WritesUtils
        self._parse = singleton(catalyst.parser, "CatalystSqlParser").parseExpression
        self._equal = expressions.EqualNullSafe
        self._files = jvm.org.apache.spark.sql.execution.datasources.HadoopFsRelation
        self.no_options = singleton(jvm.scala.collection.immutable, "Map").empty()
        self.true = self._parse("true")
        self.no_id = self._literal.create(None, self._long)
        self._largest = self.long((1 << 63) - 1)

    # -- lists ---------------------------------------------------------------------------------------

    def seq(self, items: Iterable[Any]) -> Any:
        """A Scala Seq."""
        return self._to_seq(list(items))

    @staticmethod
    def items(seq: Any) -> list[Any]:
        return [seq.apply(index) for index in range(seq.size())]

    @staticmethod
    def options(pairs: Any) -> dict[str, str]:
        """A Scala Map of texts, whose names are in lower case."""
        found, iterator = {}, pairs.iterator()
        while iterator.hasNext():
            pair = iterator.next()
            found[str(pair._1()).lower()] = str(pair._2())
        return found

    def are_equal(self, array: Any, other: Any) -> bool:
        """Do two arrays of Java hold the same?"""
        return bool(self._deep_equals(array, other))

    # -- expressions ---------------------------------------------------------------------------------

    def long(self, value: int) -> Expression:
        """A literal. The parser makes it: py4j gives small numbers as Integer, whatever they were."""
        return self._parse(f"{value}L")

    def alias(self, expression: Expression, name: str) -> Expression:
        return self._alias(expression, name, self._new_id(), self._nil, self.none, self._nil)

    def alias_as(self, expression: Expression, attribute: Expression) -> Expression:
        """`expression` in the place of `attribute`."""
        return self._alias(expression, attribute.name(), attribute.exprId(), self._nil, self.none, self._nil)

    def literal(self, value: Any, data_type: Any) -> Expression:
        """`value` is as Catalyst holds it, and never leaves the JVM."""
        return self._literal(value, data_type)

    def same(self, one: Expression, other: Expression) -> Expression:
        """Are they equal, null and null too?"""
        return self._equal(one, other)

    def field(self, struct: Expression, ordinal: int) -> Expression:
        return self._field(struct, ordinal, self.none)

    def with_fields(self, attribute: Expression, names: list[str]) -> Expression:
        """A column that is a struct, with some of its fields only."""
        whole, part = attribute.dataType(), self._struct()
        for name in names:
            part = part.add(whole.apply(name))
        arguments = (attribute.name(), part, attribute.nullable(), attribute.metadata())
        return self._attribute(*arguments, attribute.exprId(), attribute.qualifier())

    def if_(self, condition: Expression, then: Expression, otherwise: Expression) -> Expression:
        return self._if(condition, then, otherwise)

    def position(self) -> Expression:
        """The index of the partition and the position of a row in it: `split << 33 | position`."""
        return self._position()

    def partition_id(self) -> Expression:
        """The index of the partition, as a long."""
        return self._cast(self._partition_id(), self._long, self.none, self._mode())

    def text(self, expression: Expression, time_zone: str | None = None) -> Expression:
        """A value as Spark shows it, cast to a string; times in a time zone."""
        return self._cast(expression, self._string, self._jvm.scala.Option.apply(time_zone), self._mode())

    def bucket(self, command: Plan) -> Expression | None:
        """The number of the bucket into which a command that writes files puts a row."""
        columns = self.seq(self.data_columns(command))
        found = self._writes.getWriterBucketSpec(command.bucketSpec(), columns, command.options())
        return found.get().bucketIdExpression() if found.isDefined() else None

    def data_columns(self, command: Plan) -> list[Expression]:
        """The columns that a command writes into files, not into names of folders."""
        partitioned = {int(each.exprId().id()) for each in self.items(command.partitionColumns())}
        columns = self.items(command.outputColumns())
        return [each for each in columns if int(each.exprId().id()) not in partitioned]

    def folder(self, table: Plan, values: Any) -> str:
        """The folder of some partition columns' values, a Scala Map, below that of a table of the catalog."""
        escaped = self._jvm.org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
        names = [name for name in self.items(table.partitionColumnNames()) if values.contains(name)]
        return "/".join(str(escaped.getPartitionPathString(name, values.apply(name))) for name in names)

    def locations(self, table: Plan) -> Callable[[str], str | None]:
        """Tells where the catalog has a partition of a table, which is known by the folder of its values."""
        name, sql = table.identifier(), self._jvm.org.apache.spark.sql
        catalog = sql.SparkSession.active().sharedState().externalCatalog()

        def location(folder: str) -> str | None:
            values = sql.execution.datasources.PartitioningUtils.parsePathFragment(folder)
            found = catalog.getPartitionOption(name.database().get(), name.table(), values)
            if not found.isDefined():
                return None
            return str(self._jvm.org.apache.hadoop.fs.Path(found.get().location()).toString())

        return location

    def _mode(self) -> Any:
        return getattr(self._cast, "$lessinit$greater$default$4")()

    def key(self, expressions: list[Expression]) -> Expression:
        """A number from 0 to 2**63 - 1 that is the same for the same values: a hash of 63 bits.

        Spark's hash leaves nulls out, so that ('a', null) and (null, 'a') would be one: whether each is null
        is hashed, too. Numbers that compare as equal (0.0 and -0.0, NaNs) are made the same first.
        """
        if not expressions:
            return self.long(0)
        hashed = []
        for each in expressions:
            name = each.dataType().typeName()
            hashed.append(self._normalize(each) if name not in _WITHOUT_FLOATS else each)
            if each.nullable():
                hashed.append(self._is_null(each))
        return self._and(self._hash(self.seq(hashed)), self._largest)

    def conjuncts(self, condition: Expression) -> list[Expression]:
        """The conditions that `condition` joins by AND."""
        if str(condition.getClass().getSimpleName()) != "And":
            return [condition]
        return [*self.conjuncts(condition.left()), *self.conjuncts(condition.right())]

    def references(self, reader: Expression | Plan, plan: Plan) -> list[Expression]:
        """The columns of `plan` that an expression, or an operator's own ones, reads."""
        read = reader.references()
        return [each for each in self.items(plan.output()) if read.contains(each)]

    def all_of(self, conditions: list[Expression]) -> Expression | None:
        """They joined by AND; None for none."""
        found = None
        for each in conditions:
            found = each if found is None else self._both(found, each)
        return found

    def transformed(self, plan: Plan, function: Callable[[Expression], Expression | None]) -> Plan:
        """The plan's own expressions with what `function` gives for any part of them that is not None."""
        return plan.transformExpressions(_PartialFunction(function))

    def pruning_by_itself(self, pruning: Expression) -> Expression:
        """A DynamicPruningSubquery that runs its query where it cannot use the other side's broadcast again.

        That broadcast has columns of ids, and is another one than the query's.
        """
        parts = [pruning.productElement(index) for index in range(pruning.productArity())]
        parts[4] = False  # onlyInBroadcast
        # Since Spark 4.3 there is a second list of parameters.
        return self._pruning(*parts, *self.items(pruning.otherCopyArgs()))

    # -- plans ---------------------------------------------------------------------------------------

    def project(self, columns: Any, plan: Plan) -> Plan:
        """`columns` is a Seq or a list."""
        return self._project(self.seq(columns) if isinstance(columns, list) else columns, plan)

    def with_columns(self, plan: Plan, named: list[Expression]) -> tuple[Plan, list[Expression]]:
        """The plan with more columns, and their attributes."""
        made = self.project([*self.items(plan.output()), *named], plan)
        return made, [each.toAttribute() for each in named]

    def filter(self, condition: Expression, plan: Plan) -> Plan:
        return self._filter(condition, plan)

    def repartition(self, expressions: Any, plan: Plan) -> Plan:
        """Rows with the same values in one partition, as Spark does it where an operator needs that."""
        return self._repartition(expressions, plan, self.none, self.none)

    def with_children(self, plan: Plan, children: list[Plan]) -> Plan:
        return plan.withNewChildren(self.seq(children))

    def with_output(self, reference: Plan, more: list[Expression]) -> Plan:
        """A CTERelationRef that gives more columns, and is as Spark made it in all else."""
        parts = [reference.productElement(index) for index in range(reference.productArity())]
        parts[2] = self.seq([*self.items(reference.output()), *more])
        return self._reference(*parts)

    def relation(self, relation: Plan, columns: list[Expression]) -> Plan:
        """A LogicalRelation that gives these columns."""
        parts = [relation.productElement(index) for index in range(relation.productArity())]
        parts[1] = self.seq(columns)
        return self._relation(*parts)

    @staticmethod
    def behind_cache(relation: Plan) -> Plan | None:
        """The plan that an InMemoryRelation holds the rows of. None before Spark 4.0, which forgets it."""
        builder = relation.cacheBuilder()
        return builder.logicalPlan() if builder.productArity() > 4 else None

    def unlike_cached(self, relation: Plan) -> Plan:
        """A LogicalRelation of the same files that Spark takes for none that the user has cached."""
        files = relation.relation()
        if str(files.getClass().getSimpleName()) != "HadoopFsRelation":
            return relation
        parts = [files.productElement(index) for index in range(files.productArity())]
        parts[5] = parts[5].updated("lineage", "again")
        made = [relation.productElement(index) for index in range(relation.productArity())]
        made[0] = self._files(*parts, files.sparkSession())
        return self._relation(*made)

    def aggregate(self, plan: Plan, results: list[Expression], child: Plan) -> Plan:
        """`plan`, an Aggregate, with other results over another child."""
        arguments = [plan.groupingExpressions(), self.seq(results), child]
        if plan.productArity() > 3:  # a hint, since Spark 4.0
            arguments.append(plan.hint())
        return self._aggregate(*arguments)

    def generate(self, plan: Plan, child: Plan) -> Plan:
        """`plan`, a Generate, over another child. It names the columns that it drops by their places.

        A place may be one that its own child no longer has.
        """
        stock, output = self.items(plan.child().output()), self.items(child.output())
        given = set(self.items(plan.unrequiredChildIndex()))
        dropped = {each.exprId().id() for at, each in enumerate(stock) if at in given}
        places = [at for at, each in enumerate(output) if each.exprId().id() in dropped]
        parts = [plan.productElement(index) for index in range(plan.productArity())]
        return self._generate(parts[0], self.seq(places), *parts[2:-1], child)

    def expand(self, projections: list[Any], output: list[Expression], child: Plan) -> Plan:
        return self._expand(self.seq(projections), self.seq(output), child)

    def inner_join(self, left: Plan, right: Plan, join: Plan) -> Plan:
        """By the condition and the hints of another join."""
        return self._join(left, right, self._inner, join.condition(), join.hint())

    def without_rows(self, tapped: Plan) -> Plan:
        """What a Filter of a tap does, and none of its rows."""
        none = self.filter(self._not(tapped.condition()), tapped.child())
        return self.project([self.alias(self.long(0), "lineage_none")], none)

    def after(self, without_rows: Plan) -> Expression:
        """A condition that is always true, and only asked when a plan that gives no rows has run."""
        return self._is_null(self._parse("(select 0)").withNewPlan(without_rows))

    def pruned(self, plan: Plan) -> Plan:
        """Without the columns that nothing above reads."""
        return self._prune.apply(plan)

    def equi_join_keys(self, join: Plan) -> tuple[list[Expression], list[Expression], bool] | None:
        """(keys of the left side, of the right side, is there nothing else to the condition)."""
        found = self._equi_join.unapply(join)
        if not found.isDefined():
            return None
        parts = found.get()
        return self.items(parts._2()), self.items(parts._3()), not parts._4().isDefined()


def singleton(package: Any, name: str) -> Any:
    """Scala's `object` of a package."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


_WITHOUT_FLOATS = frozenset(
    ("string", "integer", "long", "short", "byte", "boolean", "date", "timestamp", "binary", "timestamp_ntz")
)


class _PartialFunction:
    """scala.PartialFunction over py4j; Java's proxy sends the default methods here, too."""

    def __init__(self, function: Callable[[Expression], Expression | None]) -> None:
        self._function = function

    def applyOrElse(self, part: Expression, default: Any) -> Expression:
        made = self._function(part)
        return default.apply(part) if made is None else made

    def isDefinedAt(self, part: Expression) -> bool:
        return True

    def apply(self, part: Expression) -> Expression:
        made = self._function(part)
        return part if made is None else made

    def toString(self) -> str:
        return "lineage"

    class Java:
        implements = ("scala.PartialFunction",)
