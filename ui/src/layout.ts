// Lays drawings out in a worker, so that the page stays usable meanwhile.

import type { LayoutRequest, Placed } from "./graph/placement";
import type { Placement, PlacementRequest } from "./trace/placement";

/** What the worker is asked. */
export type Question = { graph: LayoutRequest } | { way: PlacementRequest };

type Answer<T> = { found: T } | { failed: string };

/** Places of the boxes and bends of the lines of a graph. With an aborted signal the work ends at once. */
export const layOut = (graph: LayoutRequest, signal?: AbortSignal): Promise<Placed> => asked({ graph }, signal);

/** Where everything of a record's way stands. With an aborted signal the work ends at once. */
export const placeWay = (way: PlacementRequest, signal?: AbortSignal): Promise<Placement> => asked({ way }, signal);

function asked<T>(question: Question, signal?: AbortSignal): Promise<T> {
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
    worker.onmessage = ({ data }: MessageEvent<Answer<T>>) =>
      end(() => ("found" in data ? resolve(data.found) : reject(new Error(`the layout failed: ${data.failed}`))));
    worker.onerror = (event) => end(() => reject(new Error(`the layout failed: ${event.message || "no worker"}`)));
    worker.postMessage(question);
  });
}
