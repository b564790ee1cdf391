// Keyboard control: arrow keys; in tables they move from row to row, Home and End to the first and last.

export type Arrow = "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight";

export const isArrow = (key: string): key is Arrow => /^Arrow(Up|Down|Left|Right)$/.test(key);

/** What can be focused in a row; the first of them represents the row. */
const FOCUSABLE = "a[href], button:not(:disabled)";

/** The row that a key leads to, from the one at `at` of `rows`; null for any other key. */
export function targetRow(key: string, at: number, rows: number): number | null {
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows - 1 }[key];
  return to === undefined ? null : Math.max(0, Math.min(rows - 1, to));
}

/** Lets arrow keys move through the rows of a table body. */
export function enableArrowKeys(body: HTMLTableSectionElement): void {
  body.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const from = event.target instanceof Element ? event.target.closest("tr") : null;
    const rows = [...body.rows].filter((row) => row.querySelector(FOCUSABLE) !== null);
    const at = from === null ? -1 : rows.indexOf(from);
    const to = at < 0 ? null : targetRow(event.key, at, rows.length);
    if (to === null || from === null) return;
    event.preventDefault();
    // The same column, if it can be focused there, too.
    const column = [...from.querySelectorAll(FOCUSABLE)].indexOf(event.target as Element);
    const stops = rows[to]?.querySelectorAll<HTMLElement>(FOCUSABLE);
    (stops?.[column] ?? stops?.[0])?.focus();
  });
}

/** A click anywhere in a row follows the row's first link, unless it hit something of its own or marked text. */
export function enableRowClick(body: HTMLTableSectionElement): void {
  body.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (target === null || target.closest("a, button, input, summary") !== null) return;
    if (String(getSelection() ?? "") !== "") return;
    target.closest("tr")?.querySelector<HTMLAnchorElement>("a[href]")?.click();
  });
}
