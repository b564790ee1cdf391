// The labels of boxes and lines in the drawing, and their size. Pure.

import { callSite, count, expressionText, fileName, number, short } from "../format";
import { type DrawnBox, type DrawnLine, type Picture, summaryOf } from "./model";
import type { LayoutRequest } from "./placement";

const WIDTH = 196;
const LINE = 15;
const PADDING = 16;
/** Number of characters of the drawing's font that always fit. */
const CHARACTERS = 29;
/** Of expressions, which have more capitals and wide signs than names. */
const EXPRESSION = 26;

export const cut = (text: string, max = CHARACTERS): string =>
  text.length <= max ? text : `${text.slice(0, max - 1)}…`;

/** The end of a text, where its beginning tells less: paths, call sites. */
export const cutFront = (text: string, max = CHARACTERS): string =>
  text.length <= max ? text : `…${text.slice(text.length - max + 1)}`;

export function labelOf(box: DrawnBox): string {
  if (box.type === "operation") {
    const { name, call_site, dataset, records } = box.operation;
    return [
      box.alike > 1 ? `${cut(name, CHARACTERS - 6)} ×${number(box.alike)}` : cut(name),
      expressionText(box.operation) !== "" && cut(expressionText(box.operation), EXPRESSION),
      call_site !== "" && cutFront(callSite(call_site)),
      dataset !== null && cutFront(fileName(dataset.name)),
      records !== null && `${short(records)} ${records === 1 ? "record" : "records"}`,
      box.passedRows !== null && `${short(box.passedRows)} ${box.passedRows === 1 ? "row" : "rows"}`,
    ]
      .filter((part) => part !== false)
      .join("\n");
  }
  if (box.isOpen) return cut(box.group.name, 40);
  const { operations, sources, sinks, names } = summaryOf(box.group);
  return [
    cut(box.group.name),
    [count(operations, "operation"), sources > 0 && count(sources, "source"), sinks > 0 && count(sinks, "sink")]
      .filter((part) => part !== false)
      .join(", "),
    cut(names, EXPRESSION),
  ].join("\n");
}

export const flowsOf = ({ flows }: DrawnLine): string => (flows === null ? "" : short(flows));

export interface Size {
  width: number;
  height: number;
}

export function sizeOf(box: DrawnBox): Size {
  return { width: WIDTH, height: PADDING + LINE * labelOf(box).split("\n").length };
}

/** The request for the layout: closed groups and operations are boxes; open groups contain theirs. */
export function layoutRequestOf(picture: Picture, frame?: Size): LayoutRequest {
  return {
    ...(frame === undefined ? {} : { frame }),
    boxes: picture.boxes.map((box) => ({
      id: box.id,
      ...sizeOf(box),
      ...(box.type === "operation" && box.group !== null ? { parent: box.group } : {}),
    })),
    lines: picture.lines.map((line) => ({
      id: line.id,
      source: line.source,
      target: line.target,
      width: 8 + 7 * flowsOf(line).length,
      height: 14,
    })),
  };
}
