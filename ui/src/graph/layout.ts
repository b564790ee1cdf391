// Lays a graph out in a worker, so that the page stays usable meanwhile.

import type { LayoutRequest, Placed } from "./layered";

export type { Box, LayoutRequest, Line, Placed, Point } from "./layered";

type Answer = { placed: Placed } | { failed: string };

/** Places of the boxes and bends of the lines. With an aborted signal the work ends at once. */
export function layOut(request: LayoutRequest, signal?: AbortSignal): Promise<Placed> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    // One worker a layout: it takes milliseconds to start, and can be ended in the middle.
    const worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    const abort = () => end(() => reject(signal?.reason));
    const end = (then: () => void) => {
      worker.terminate();
      signal?.removeEventListener("abort", abort);
      then();
    };
    signal?.addEventListener("abort", abort);
    worker.onmessage = ({ data }: MessageEvent<Answer>) =>
      end(() => ("placed" in data ? resolve(data.placed) : reject(new Error(`the layout failed: ${data.failed}`))));
    worker.onerror = (event) => end(() => reject(new Error(`the layout failed: ${event.message || "no worker"}`)));
    worker.postMessage(request);
  });
}
