// How operations look in the drawing of an application: boxes, in frames for stages.

import type { ElementDefinition } from "cytoscape";
import { groupBy } from "../groups";
import { colour } from "../theme";
import { segments } from "./bends";
import type { Look, StyleRule } from "./drawing";
import { sides } from "./extent";
import { flowsOf, labelOf, sizeOf } from "./labels";
import type { DrawnBox, Picture } from "./model";
import type { Placement, Point } from "./placement";

/** What a box takes beyond its size. */
const BORDER = 1.5;
/** Room for the name of a frame, beyond its padding. */
const TITLE = 8;

/** What is marked in the drawing, by the ids of operations. They may change before it is drawn again. */
export interface MarkedOperations {
  /** Tasks have failed there. */
  readonly culprits: ReadonlySet<string>;
  /** Tasks behave oddly there: how many. */
  readonly unusual: ReadonlyMap<string, number>;
}

export const operationLook = (marked: MarkedOperations): Look<DrawnBox, Picture> => ({
  elements: (picture, placed) => elements(picture, placed, marked),
  sizeOf,
  styles,
});

/** Between columns: such a line leads from side to side, and not below other boxes of its stage. */
const ACROSS = 100;

const isAcross = (from: Point, to: Point, isBetweenStages: boolean): boolean =>
  to.x - from.x > ACROSS && (isBetweenStages || Math.abs(to.y - from.y) < to.x - from.x);

/** Place and size of a frame; its padding comes to that. */
function frameOf(boxes: readonly DrawnBox[], places: Placement["boxes"]) {
  const { left, top, right, bottom } = sides(boxes, places, sizeOf);
  return {
    at: { x: (left + right) / 2, y: (top - TITLE + bottom) / 2 },
    width: right - left + 2 * BORDER,
    height: bottom - top + TITLE + 2 * BORDER,
  };
}

/**
 * Frames are boxes below others, as large as what they hold. Cytoscape has nodes within nodes, too, but then looks
 * through what holds an element and what it holds for each property that is set: ten times the work.
 */
function elements(picture: Picture, placed: Placement, marked: MarkedOperations): ElementDefinition[] {
  const members = groupBy(
    picture.boxes.filter((box) => box.type === "operation"),
    (box) => box.group ?? "",
  );
  const holders = new Map(
    picture.boxes.map((box) => [box.id, box.type === "operation" ? (box.group ?? box.id) : box.id]),
  );
  const boxes = picture.boxes.map((box): ElementDefinition => {
    const isFrame = box.type === "group" && box.isOpen;
    const { at, ...size } = isFrame
      ? frameOf(members.get(box.id) ?? [], placed.boxes)
      : { at: placed.boxes[box.id] ?? { x: 0, y: 0 }, ...sizeOf(box) };
    return {
      group: "nodes",
      data: { id: box.id, label: isUnusual(box, isFrame, marked) ? `● ${labelOf(box)}` : labelOf(box), ...size },
      position: at,
      classes: `${classesOf(box, isFrame, marked.culprits)}${isUnusual(box, isFrame, marked) ? " unusual" : ""}`,
    };
  });
  const lines = picture.lines.map((line): ElementDefinition => {
    const [source, target] = [placed.boxes[line.source], placed.boxes[line.target]];
    const bends = placed.bends[line.id] ?? [];
    const bent = source && target ? segments(source, target, bends) : { weights: [], distances: [] };
    return {
      group: "edges",
      data: { id: line.id, source: line.source, target: line.target, label: flowsOf(line), ...bent },
      classes: [
        bent.weights.length > 0 && "bent",
        line.isShuffle && "shuffle",
        source && target && isAcross(source, target, holders.get(line.source) !== holders.get(line.target)) && "across",
      ]
        .filter(Boolean)
        .join(" "),
    };
  });
  return [...boxes, ...lines];
}

/** An operation, or one of a closed stage. */
function isUnusual(box: DrawnBox, isFrame: boolean, { unusual }: MarkedOperations): boolean {
  if (box.type === "operation") return unusual.has(box.operation.node_id);
  return !isFrame && box.group.members.some(({ node_id }) => unusual.has(node_id));
}

function classesOf(box: DrawnBox, isFrame: boolean, culprits: ReadonlySet<string>): string {
  if (isFrame) return "frame";
  if (box.type === "group") {
    const hasCulprit = box.group.members.some(({ node_id }) => culprits.has(node_id));
    return hasCulprit ? "closed culprit" : "closed";
  }
  const { kind, exact, state, node_id } = box.operation;
  return [
    kind,
    box.alike > 1 && "alike",
    state === "failed" ? "broken" : !exact && "inexact",
    culprits.has(node_id) && "culprit",
  ]
    .filter(Boolean)
    .join(" ");
}

function styles(): StyleRule[] {
  const colourOf = (name: string) => colour(`--${name}`);
  return [
    {
      selector: ".source",
      style: { "background-color": colourOf("source-fill"), "border-color": colourOf("source"), "border-width": 1.5 },
    },
    {
      selector: ".sink",
      style: { "background-color": colourOf("sink-fill"), "border-color": colourOf("sink"), "border-width": 1.5 },
    },
    {
      selector: ".broken",
      style: { "background-color": colourOf("failure-fill"), "border-color": colourOf("failure"), "border-width": 2 },
    },
    { selector: ".alike", style: { "border-style": "double", "border-width": 4 } },
    { selector: ".inexact", style: { "border-style": "dashed", "border-color": colourOf("caution") } },
    {
      selector: ".closed",
      style: { "background-color": colourOf("stage-fill"), "border-style": "double", "border-width": 4 },
    },
    {
      selector: ".culprit",
      style: { "border-style": "solid", "border-color": colourOf("failure"), "border-width": 4 },
    },
    {
      selector: ".unusual",
      style: {
        "outline-color": colourOf("failure"),
        "outline-style": "dotted",
        "outline-width": 3,
        "outline-offset": 3,
      },
    },
    {
      selector: ".frame",
      style: {
        "background-color": colourOf("stage-fill"),
        "border-color": colourOf("rule"),
        color: colourOf("soft"),
        padding: "14px",
        "z-compound-depth": "bottom", // below the lines, too
        "text-valign": "top",
        "text-halign": "center",
        "text-margin-y": 16,
        "text-background-opacity": 0,
      },
    },
    { selector: ".across", style: { "source-endpoint": "50% 0", "target-endpoint": "-50% 0" } },
    { selector: ".shuffle", style: { width: 2, "line-style": "dashed" } },
  ];
}
