// Divides work into small tasks, so that the page stays responsive.

/** Lets the browser draw and handle waiting events. */
export const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

/** Waits for the next frame; a hidden page draws none. */
export const frame = (): Promise<void> =>
  document.hidden ? pause() : new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

/** Does the work slice by slice, with a pause between slices; stops when the signal aborts. */
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
