// Outputs that a reader calls bad or good, as an address and a command line name them. Pure.
//   bad=8%23write%230%233       a record of operation 8
//   bad=/data/out/part-0:4      a line of a file, counted from 1
//   bad-where=total < 0         all rows of the one output that fulfil a condition

import type { Start } from "./route";

export type Kind = "bad" | "good";
export const KINDS: readonly Kind[] = ["bad", "good"];

export interface Mark {
  readonly kind: Kind;
  readonly name: string;
  readonly isCondition: boolean;
}

export function marksIn(query: URLSearchParams): Mark[] {
  const all = KINDS.flatMap((kind) =>
    [false, true].flatMap((isCondition) =>
      query.getAll(isCondition ? `${kind}-where` : kind).map((name): Mark => ({ kind, name, isCondition })),
    ),
  );
  return all.filter(({ name }) => name !== "");
}

export const marksQuery = (marks: readonly Mark[]): URLSearchParams =>
  new URLSearchParams(marks.map(({ kind, name, isCondition }) => [isCondition ? `${kind}-where` : kind, name]));

const LINE = /^(.+):([1-9]\d{0,15})$/s;

/** Those of one kind as the API takes them, a list in JSON; null: there are none. */
export function startsOf(marks: readonly Mark[], kind: Kind): string | null {
  const starts = marks.filter((mark) => mark.kind === kind).map(startOf);
  return starts.length === 0 ? null : JSON.stringify(starts);
}

const startOf = ({ name, isCondition }: Mark): Start | { where: string } =>
  isCondition ? { where: name } : startNamed(name);

/** A record that is named as a mark names it. */
export function startNamed(name: string): Start {
  const [, path = "", line = ""] = LINE.exec(name) ?? [];
  return path === "" ? { record: name } : { path, row: Number(line) - 1 };
}

/** The mark of a record that an address names; null where only a condition, a key or a failure does. */
export function markOf(kind: Kind, start: Start): Mark | null {
  if ("path" in start) return { kind, name: `${start.path}:${start.row + 1}`, isCondition: false };
  if ("partition" in start) {
    return { kind, name: `${start.node}#${start.partition}#${start.offset}`, isCondition: false };
  }
  if (!("record" in start)) return null;
  const isAlone = start.node === undefined || /^.+#(read|write)#/.test(start.record);
  return { kind, name: isAlone ? start.record : `${start.node}#${start.record}`, isCondition: false };
}
