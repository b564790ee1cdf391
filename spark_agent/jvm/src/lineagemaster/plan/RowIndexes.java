package lineagemaster.plan;

import java.util.List;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.ExposesMetadataColumns;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** The index of each row in its file, of scans of files whose format knows it. */
public final class RowIndexes {
  /** What Spark marks the column with that says where a row is. */
  static final String METADATA = "__file_source_metadata_col";
  private static final String ROW_INDEX = "row_index";
  /** Spark's reader of Parquet fills a column of this name, if that may be null: no file has it. */
  private static final String READ_COLUMN = "_tmp_metadata_row_index";

  /**
   * A scan with the column that says where each row is; null where Spark does not have it. Of all that the column may
   * hold, only the index of the row in its file is asked for, behind what the query itself asks for: Spark makes it for
   * each row.
   */
  public LogicalPlan scan(LogicalRelation scan) {
    boolean isInQuery = metadataIndex(PlanReader.output(scan)) >= 0;
    List<Attribute> columns = PlanReader.output(((ExposesMetadataColumns) scan).withMetadataColumns());
    int index = metadataIndex(columns);
    if (index < 0) {
      return null;
    }
    StructType type = isInQuery ? (StructType) columns.get(index).dataType() : new StructType();
    if (!has(type)) {
      FileFormat format = PlanReader.relation(scan).fileFormat();
      StructType complete = (StructType) format.createFileMetadataCol().dataType();
      if (!has(complete)) { // as of a table of Delta Lake without deletion vectors
        return format instanceof ParquetFileFormat ? withReadColumn(scan) : null;
      }
      columns.set(index, columns.get(index).withDataType(type.add(complete.apply(ROW_INDEX))));
    }
    Object[] fields = PlanBuilder.fields(scan);
    fields[1] = ScalaLists.of(columns);
    return ScalaLists.construct(LogicalRelation.class, fields);
  }

  /** The index of a row in its file, of such a scan; null where the query asks for other parts of the column. */
  public Expression of(LogicalPlan scan) {
    List<Attribute> columns = PlanReader.output(scan);
    Attribute last = columns.get(columns.size() - 1);
    if (last.name().equals(READ_COLUMN)) {
      return last;
    }
    Attribute metadata = columns.get(metadataIndex(columns));
    int field = List.of(((StructType) metadata.dataType()).fieldNames()).indexOf(ROW_INDEX);
    return field < 0 ? null : new GetStructField(metadata, field, Option.empty());
  }

  /** Of a format that hides the index, though it reads its files as any Parquet. */
  private static LogicalPlan withReadColumn(LogicalRelation scan) {
    HadoopFsRelation files = PlanReader.relation(scan);
    StructType read = files.dataSchema().add(READ_COLUMN, DataTypes.LongType);
    HadoopFsRelation indexed = new HadoopFsRelation(files.location(), files.partitionSchema(), read,
        files.bucketSpec(), files.fileFormat(), files.options(), files.sparkSession());
    List<Attribute> columns = PlanReader.output(scan);
    columns.add(ScalaLists.construct(AttributeReference.class, READ_COLUMN, DataTypes.LongType, true,
        Metadata.empty(), NamedExpression.newExprId(), ScalaLists.of(List.of())));
    Object[] fields = PlanBuilder.fields(scan);
    fields[0] = files instanceof FeedFiles ? new FeedFiles(indexed, files.sizeInBytes()) : indexed;
    fields[1] = ScalaLists.of(columns);
    return ScalaLists.construct(LogicalRelation.class, fields);
  }

  private static boolean has(StructType metadata) {
    return List.of(metadata.fieldNames()).contains(ROW_INDEX);
  }

  private static int metadataIndex(List<Attribute> columns) {
    for (int i = 0; i < columns.size(); i++) {
      if (columns.get(i).metadata().contains(METADATA)) { // not by the name, which a column of a file may have
        return i;
      }
    }
    return -1;
  }
}
