// Rows that are far from all others: the reading of 1048 among readings below 43. A hint for people, no proof.
//
// Rows are split at the delimiter that most of them share. In each column of numbers, at most MAX_OUTLIERS values are
// outliers if each is DISTANCE_RATIO times as far from the median as any other. Knows nothing of what the columns mean.

const DELIMITERS = ["\t", ";", "|", ",", " "];
const MIN_ROWS = 8;
const MAX_OUTLIERS = 3;
const DISTANCE_RATIO = 3;
/** Share of the rows that must have a column, and a number in it. */
const SHARE = 0.9;

export interface Outlier {
  /** Index among the given texts. */
  readonly row: number;
  /** Counted from 1. */
  readonly column: number;
  readonly value: number;
  /** Of the other rows. */
  readonly least: number;
  readonly most: number;
}

/** The farthest rows first, each once. */
export function outliersOf(texts: readonly string[]): readonly Outlier[] {
  if (texts.length < MIN_ROWS) return [];
  const rows = splitRows(texts);
  const width = Math.max(...rows.map((row) => row.length));
  const farthest = new Map<number, readonly [number, Outlier]>();
  for (let column = 0; column < width; column++) {
    for (const [times, outlier] of columnOutliers(rows, column)) {
      const previous = farthest.get(outlier.row);
      if (previous === undefined || previous[0] < times) farthest.set(outlier.row, [times, outlier]);
    }
  }
  return [...farthest.values()].sort((a, b) => b[0] - a[0] || a[1].row - b[1].row).map(([, outlier]) => outlier);
}

function splitRows(texts: readonly string[]): readonly (readonly string[])[] {
  for (const delimiter of DELIMITERS) {
    const rows = texts.map((text) => text.split(delimiter));
    const widths = new Map<number, number>();
    for (const row of rows) widths.set(row.length, (widths.get(row.length) ?? 0) + 1);
    const [width, count] = [...widths].sort((a, b) => b[1] - a[1])[0] ?? [1, 0];
    if (width > 1 && count >= SHARE * texts.length) return rows;
  }
  return texts.map((text) => [text]);
}

function columnOutliers(rows: readonly (readonly string[])[], column: number): (readonly [number, Outlier])[] {
  const numbers: { row: number; value: number }[] = [];
  rows.forEach((fields, row) => {
    const field = fields[column]?.trim();
    const value = field ? Number(field) : Number.NaN;
    if (Number.isFinite(value)) numbers.push({ row, value });
  });
  if (numbers.length < Math.max(MIN_ROWS, SHARE * rows.length)) return [];
  numbers.sort((a, b) => a.value - b.value);
  const median = numbers[numbers.length >> 1]?.value ?? 0;
  const byDistance = [...numbers].sort((a, b) => Math.abs(b.value - median) - Math.abs(a.value - median));
  for (let count = 1; count <= MAX_OUTLIERS; count++) {
    const [last, next] = [byDistance[count - 1], byDistance[count]];
    if (last === undefined || next === undefined) return [];
    const [far, near] = [Math.abs(last.value - median), Math.abs(next.value - median)];
    if (near > 0 && far >= DISTANCE_RATIO * near) {
      const others = byDistance.slice(count).map((entry) => entry.value);
      const [least, most] = [others.reduce((a, b) => Math.min(a, b)), others.reduce((a, b) => Math.max(a, b))];
      return byDistance
        .slice(0, count)
        .map(({ row, value }) => [Math.abs(value - median) / near, { row, column: column + 1, value, least, most }]);
    }
  }
  return [];
}
