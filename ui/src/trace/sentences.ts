// Sentences about a record's lineage: what is drawn of it, its endpoints, and the limits of what it promises.

import { count, errorText, fileName, nodeNumber, number, share } from "../format";
import type { Adjacency } from "./adjacency";
import type { Endpoint, Endpoints } from "./endpoints";
import type { DirectedTrace, Direction, RecordLineage, TracedRecord } from "./model";
import type { Picture } from "./picture";
import type { Graph, Remark } from "./results";
import { doneText, placeOf, readable, shortened, textOf } from "./texts";

const TITLE_CHARACTERS = 160;
const SPOKEN_CHARACTERS = 200;
/** Formats of files whose records are rows. */
const ROWS = /^(text|csv|json|parquet|orc|avro)/;

/** The operations of these graphs, by node id. */
export type Operations = ReadonlyMap<string, Graph["nodes"][number]>;

export const operationsOf = (graphs: readonly Graph[]): Operations =>
  new Map(graphs.flatMap((graph) => graph.nodes).map((node) => [node.node_id, node]));

/** "filter (4)". */
export const operationLabel = (node: { name: string; number: string }): string =>
  `${node.name || "operation"} (${node.number})`;

/** The name of its application, for people; the id where it has none. */
export const applicationLabel = (node: { application: string; applicationName: string }): string =>
  node.applicationName || node.application;

export function title(lineage: RecordLineage): string {
  const [record] = lineage.centre.records;
  if (record !== undefined && lineage.centre.total <= 1) return shortened(readable(textOf(record)), TITLE_CHARACTERS);
  const key = record?.key;
  return key === undefined || key === null
    ? count(lineage.centre.total, "record")
    : `${count(lineage.centre.total, "record")} with the key ${shortened(key, TITLE_CHARACTERS)}`;
}

/** The record's location, id and operation. */
export function subtitle(lineage: RecordLineage): string {
  const [record] = lineage.centre.records;
  const owner = `of ${operationLabel(lineage.centre)}`;
  if (record === undefined || lineage.centre.total > 1) return owner;
  const location = placeOf(record);
  return location === record.record_id
    ? `Record ${location} ${owner}`
    : `${location}, record ${record.record_id} ${owner}`;
}

/** The operations at which a trace starts, if there are several; else empty. */
export function startsText(traces: readonly DirectedTrace[]): string {
  const labels = traces
    .map(({ starts }) => starts.map((start) => operationLabel({ ...start, number: nodeNumber(start.node_id) })))
    .find((starts) => starts.length > 1);
  if (labels === undefined) return "";
  return `${labels.length} operations have this row, and the forward trace starts at each: ${labels.join(", ")}.`;
}

/** How much of the lineage is drawn. */
export function drawn(picture: Picture): string {
  const folded = [...picture.folded.values()].reduce((sum, { nodes }) => sum + nodes.length, 0);
  const isSample = picture.groups.some(({ more }) => more > 0);
  const parts = [
    `${isSample ? "A sample is drawn: " : "Drawn: "}${share(picture.drawn, picture.total, "record")}`,
    `of ${count(picture.groups.length + folded, "operation")}`,
  ];
  if (folded > 0)
    parts.push(`(${number(folded)} in the middle as ${picture.folded.size === 1 ? "one" : picture.folded.size})`);
  const flows = picture.bundles.reduce((sum, bundle) => sum + bundle.flows, 0);
  const lines =
    flows > 0
      ? ` ${count(flows, "flow")} between them are drawn as ${count(picture.bundles.filter((bundle) => bundle.flows > 0).length, "line")} between operations.`
      : "";
  const boxes = picture.groups.flatMap((group) => group.boxes);
  const outliers = boxes.some(({ isOutlier }) => isOutlier) ? "the rows that stand out (◆), and " : "";
  const others = boxes.some(({ isSampled }) => isSampled) ? "some from among all rows" : "some of the first of each";
  const which = isSample ? `: ${outliers}${others}` : "";
  return `${parts.join(" ")}${which}.${lines}`;
}

/** Why the lineage may be incomplete or inexact. */
export function cautions(traces: readonly DirectedTrace[], operations: Operations): string[] {
  const texts: string[] = [];
  if (traces.some((trace) => !trace.complete)) {
    texts.push(
      "Incomplete: an application is still running, some of its lineage has not arrived or was dropped, or a query that was not followed read these records. Records may be missing here.",
    );
  }
  if (traces.some((trace) => !trace.exact)) {
    const nodes = new Map(traces.flatMap((trace) => trace.nodes).map((node) => [node.node_id, node]));
    const inexact = [...nodes.values()].filter((node) => !node.exact);
    const hasFailed = ({ node_id: id }: { node_id: string }) => operations.get(id)?.state === "failed";
    for (const node of inexact.filter(hasFailed)) {
      const error = operations.get(node.node_id)?.error ?? null;
      texts.push(
        `${node.name} failed${error === null ? "" : `: ${errorText(error)}`}. These records come from tasks that had ended before.`,
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
      `Not exact: the trace${through} is an upper bound. The listed records may have taken part; no others have.`,
    );
  }
  return texts;
}

export const stopped = (direction: Direction): string =>
  `Partial: the time budget of the ${direction} trace is spent. This is what was found so far; the service continues where it stopped.`;

/** "669 rows of weather.csv". */
export function endpointText(endpoint: Endpoint, operations: Operations): string {
  const dataset = operations.get(endpoint.id)?.dataset;
  return dataset
    ? `${count(endpoint.total, ROWS.test(dataset.format) ? "row" : "record")} of ${fileName(dataset.name) || dataset.name}`
    : `${count(endpoint.total, "record")} of ${operationLabel(endpoint)}`;
}

/** The sentence before the list of a trace's endpoints. */
export function endpointsText({ direction, endpoints: all, intermediate, applications, isPartial }: Endpoints): string {
  const isBackward = direction === "backward";
  if (all.length === 0 && intermediate === 0) {
    if (isPartial) return "Not known yet.";
    return isBackward ? "Nothing came before it." : "Nothing was made of it.";
  }
  const through = intermediate > 0 ? `through ${count(intermediate, "operation")}` : "directly";
  const across = applications.length > 0 ? ` and ${count(applications.length, "other application")}` : "";
  if (all.length === 0)
    return `The trace goes ${through}${across}; no ${isBackward ? "input" : "output"} file was reached.`;
  return `${isPartial ? "So far, " : ""}${isBackward ? "from" : "into"} these, ${through}${across}:`.replace(
    /^./,
    (first) => first.toUpperCase(),
  );
}

/** The sentence about a row that stands out. */
export const remarkText = (remark: Remark): string => `Stands out: ${remark.text}`;

/** The announcement of a record to screen readers. */
export function spoken(tracedRecord: TracedRecord, adjacency: Adjacency): string {
  const text = shortened(textOf(tracedRecord.record), SPOKEN_CHARACTERS);
  const where = placeOf(tracedRecord.record);
  const hash = `${tracedRecord.node.id}#${tracedRecord.record.record_id}`;
  const [into, outOf] = [adjacency.inputs(hash).length, adjacency.outputs(hash).length];
  const { operation } = tracedRecord.record;
  const done = operation == null ? "" : `, ${doneText(operation)}`;
  return `${text}${where === text ? "" : `, ${where}`}, ${operationLabel(tracedRecord.node)}${done}; ${count(into, "input")}, ${count(outOf, "output")} among the listed records`;
}
