// What is said of a way in words: what is drawn of it, where it begins and ends, and what keeps one from relying on it.

import { count, errorText, fileName, number, share } from "../format";
import type { Adjacency } from "./adjacency";
import type { Endpoint, Endpoints } from "./endpoints";
import type { DirectedTrace, Direction, RecordLineage, TracedRecord } from "./model";
import type { Outlier } from "./outliers";
import type { Picture } from "./picture";
import type { Graph } from "./results";
import { placeOf, shortened, textOf } from "./texts";

const TITLE_CHARACTERS = 160;
const SPOKEN_CHARACTERS = 200;
/** Formats of files whose records are rows. */
const ROWS = /^(text|csv|json|parquet|orc|avro)/;

/** The operations of the graphs that are known, by node id. */
export type Operations = ReadonlyMap<string, Graph["nodes"][number]>;

export const operationsOf = (graphs: readonly Graph[]): Operations =>
  new Map(graphs.flatMap((graph) => graph.nodes).map((node) => [node.node_id, node]));

/** "filter (4)". */
export const operationLabel = (node: { name: string; number: string }): string =>
  `${node.name || "operation"} (${node.number})`;

export function title(lineage: RecordLineage): string {
  const [record] = lineage.centre.records;
  if (record !== undefined && lineage.centre.total <= 1) return shortened(textOf(record), TITLE_CHARACTERS);
  const key = record?.key;
  return key === undefined || key === null
    ? count(lineage.centre.total, "record")
    : `${count(lineage.centre.total, "record")} with the key ${shortened(key, TITLE_CHARACTERS)}`;
}

/** Whose record it is and where it stands. */
export function subtitle(lineage: RecordLineage): string {
  const [record] = lineage.centre.records;
  const whose = `of ${operationLabel(lineage.centre)}`;
  if (record === undefined || lineage.centre.total > 1) return whose;
  const tracedRecord = placeOf(record);
  return tracedRecord === record.record_id
    ? `Record ${tracedRecord} ${whose}`
    : `${tracedRecord}, record ${record.record_id} ${whose}`;
}

/** What of the way is drawn. */
export function drawn(picture: Picture): string {
  const folded = [...picture.folded.values()].reduce((sum, nodes) => sum + nodes.length, 0);
  const parts = [
    `${picture.drawn < picture.total ? "A sample is drawn: " : "Drawn: "}${share(picture.drawn, picture.total, "record")}`,
    `of ${count(picture.groups.length + folded, "operation")}`,
  ];
  if (folded > 0) parts.push(`(${number(folded)} in the middle as one)`);
  const flows = picture.bundles.reduce((sum, bundle) => sum + bundle.flows, 0);
  const lines =
    flows > 0
      ? ` ${count(flows, "flow")} between them stand as ${count(picture.bundles.filter((bundle) => bundle.flows > 0).length, "line")} between operations.`
      : "";
  const which = picture.drawn < picture.total ? ", from the first ones of each" : "";
  return `${parts.join(" ")}${which}.${lines}`;
}

/** What must be known before anyone relies on the way. */
export function cautions(traces: readonly DirectedTrace[], operations: Operations): string[] {
  const texts: string[] = [];
  if (traces.some((trace) => !trace.complete)) {
    texts.push(
      "Incomplete: an application still runs, some of its lineage has not arrived or was dropped, or a query that was not followed read these records. Records may be missing here.",
    );
  }
  if (traces.some((trace) => !trace.exact)) {
    const nodes = new Map(traces.flatMap((trace) => trace.nodes).map((node) => [node.node_id, node]));
    const inexact = [...nodes.values()].filter((node) => !node.exact);
    const hasFailed = ({ node_id: id }: { node_id: string }) => operations.get(id)?.state === "failed";
    for (const node of inexact.filter(hasFailed)) {
      const error = operations.get(node.node_id)?.error ?? null;
      texts.push(
        `${node.name} failed${error === null ? "" : `: ${errorText(error)}`}. These are records of tasks that had ended before.`,
      );
    }
    const bounds = inexact.filter((node) => !hasFailed(node));
    if (bounds.length === 0 && inexact.length > 0) return texts;
    const names = bounds.map((node) => {
      const why = operations.get(node.node_id)?.reason;
      return `${node.name} (${node.node_id.slice(node.node_id.lastIndexOf("#") + 1)}${why ? `: ${why}` : ""})`;
    });
    const through = names.length > 0 ? ` through ${names.join(", ")}` : "";
    texts.push(
      `Not exact: the way${through} is known only as a bound. What is listed may have taken part; nothing else has.`,
    );
  }
  return texts;
}

export const stopped = (direction: Direction): string =>
  `Not all: the time of the question was spent on the way ${direction === "backward" ? "back" : "forward"}. This is what was found so far; the service goes on where it stopped.`;

/** "669 rows of weather.csv". */
export function endpointText(endpoint: Endpoint, operations: Operations): string {
  const dataset = operations.get(endpoint.id)?.dataset;
  return dataset
    ? `${count(endpoint.total, ROWS.test(dataset.format) ? "row" : "record")} of ${fileName(dataset.name) || dataset.name}`
    : `${count(endpoint.total, "record")} of ${operationLabel(endpoint)}`;
}

/** Where the way begins or ends, in one sentence before the list of its ends. */
export function endpointsText({ direction, endpoints: all, intermediate, applications, isPartial }: Endpoints): string {
  const isBackward = direction === "backward";
  if (all.length === 0 && intermediate === 0) {
    if (isPartial) return "Not known yet.";
    return isBackward ? "Nothing came before it." : "Nothing was made of it.";
  }
  const through = intermediate > 0 ? `through ${count(intermediate, "operation")}` : "directly";
  const across = applications.length > 0 ? ` and ${count(applications.length, "other application")}` : "";
  if (all.length === 0) return `It goes ${through}${across}; no ${isBackward ? "input" : "output"} file was reached.`;
  return `${isPartial ? "At least, " : ""}${isBackward ? "from" : "into"} these, ${through}${across}:`.replace(
    /^./,
    (first) => first.toUpperCase(),
  );
}

/** A remark about a row that is far from the others. */
export function outlierText(outlier: Outlier, line: string): string {
  return `${line} is far from the others: ${outlier.value} in column ${outlier.column}, where they have ${outlier.least} to ${outlier.most}.`;
}

/** A record as it is said to those who hear the page. */
export function spoken(tracedRecord: TracedRecord, adjacency: Adjacency): string {
  const text = shortened(textOf(tracedRecord.record), SPOKEN_CHARACTERS);
  const where = placeOf(tracedRecord.record);
  const hash = `${tracedRecord.node.id}#${tracedRecord.record.record_id}`;
  const [into, outOf] = [adjacency.inputs(hash).length, adjacency.outputs(hash).length];
  return `${text}${where === text ? "" : `, ${where}`}, ${operationLabel(tracedRecord.node)}; ${number(into)} in, ${number(outOf)} out among those listed`;
}
