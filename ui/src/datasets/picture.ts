// The graph of datasets and jobs around a dataset, as it is drawn: labels, sizes, order. Pure.

import type { DatasetGraph, DatasetGraphNode } from "../api";
import { count, fileName } from "../format";
import { cut, cutFront, type Size } from "../graph/labels";
import type { LineEnds } from "../graph/navigation";
import type { LayoutRequest } from "../graph/placement";

const WIDTH = 176;
/** Characters of the drawing's font that fit. */
const CHARACTERS = 22;
const LINE = 15;
const PADDING = 16;
/** Between neighbours, and between layers. */
const GAP = { x: 16, y: 44 };

export interface NetLine extends LineEnds {
  id: string;
  exact: boolean;
}

export interface Net {
  boxes: DatasetGraphNode[];
  lines: NetLine[];
}

export const netOf = ({ nodes, edges }: DatasetGraph): Net => ({
  boxes: nodes,
  lines: edges.map(({ source, target, exact }, index) => ({ id: `line ${index}`, source, target, exact })),
});

/** What people call it: a job by its name, a dataset by the last part of its own. */
export const nodeName = ({ kind, name }: Pick<DatasetGraphNode, "kind" | "name">): string =>
  kind === "job" ? name : fileName(name.replace(/\/+$/, "")) || name;

/** "3 runs, 1 failed". Empty where there are none. */
export function runsText({ runs, failed_runs: failed }: Pick<DatasetGraphNode, "runs" | "failed_runs">): string {
  if (runs === 0) return "";
  return count(runs, "run") + (failed === 0 ? "" : `, ${failed} failed`);
}

export function labelOf(node: DatasetGraphNode): string {
  if (node.kind === "job") return [cut(node.name, CHARACTERS), runsText(node)].filter((part) => part !== "").join("\n");
  const name = node.name.replace(/\/+$/, "");
  const folder = name.slice(0, Math.max(0, name.lastIndexOf("/") + 1));
  const place = node.namespace === "file" ? folder : `${node.namespace}${folder === "" ? "" : `/${folder}`}`;
  return [cutFront(nodeName(node), CHARACTERS), place !== "" && cutFront(place, CHARACTERS)]
    .filter((part) => part !== false)
    .join("\n");
}

export const sizeOf = (node: DatasetGraphNode): Size => ({
  width: WIDTH,
  height: PADDING + LINE * labelOf(node).split("\n").length,
});

export const layoutRequestOf = ({ boxes, lines }: Net): LayoutRequest => ({
  boxes: boxes.map((box) => ({ id: box.id, ...sizeOf(box) })),
  lines: lines.map(({ id, source, target }) => ({ id, source, target })),
  gap: GAP,
});

/** Where it stands, seen from the dataset. */
export const sideOf = ({ layer }: Pick<DatasetGraphNode, "layer">): string =>
  layer === 0 ? "this dataset" : layer < 0 ? "before" : "after";

/** The dataset that the graph is about. */
export const centreOf = ({ nodes }: DatasetGraph): DatasetGraphNode | null =>
  nodes.find(({ kind, layer }) => kind === "dataset" && layer === 0) ?? null;
