// Much work in small pieces, so that the page answers in between.

/** Lets the browser draw and hear what waits. */
export const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

/** After the frame that draws what has changed; a page that is not seen draws none. */
export const frame = (): Promise<void> =>
  document.hidden ? pause() : new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

/** Does the work slice by slice, with a pause after each but the last; stops where the signal says so. */
export async function inSlices<Item>(
  items: readonly Item[],
  size: number,
  work: (slice: readonly Item[]) => void,
  { signal, between = pause }: { signal?: AbortSignal; between?: () => Promise<void> } = {},
): Promise<void> {
  for (let start = 0; start < items.length; start += size) {
    if (start > 0) await between();
    if (signal?.aborted) return;
    work(items.slice(start, start + size));
  }
}
