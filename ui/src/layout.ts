// Computes layouts in a worker, so that the page stays responsive.

import type { Placement as GraphPlacement, LayoutRequest } from "./graph/placement";
import type { Placement, PlacementRequest } from "./trace/placement";

/** The message to the worker. */
export type LayoutTask = { graph: LayoutRequest } | { trace: PlacementRequest };

type TaskResult<T> = { result: T } | { error: string };

/** Positions of the boxes and bends of the lines of a graph. An aborted signal ends the work at once. */
export const layoutGraph = (graph: LayoutRequest, signal?: AbortSignal): Promise<GraphPlacement> =>
  runTask({ graph }, signal);

/** Positions of the elements of a record's lineage. An aborted signal ends the work at once. */
export const layoutTrace = (trace: PlacementRequest, signal?: AbortSignal): Promise<Placement> =>
  runTask({ trace }, signal);

function runTask<T>(task: LayoutTask, signal?: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    // One worker for each layout: it starts in milliseconds, and can be terminated in the middle.
    const worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    const abort = () => end(() => reject(signal?.reason));
    const end = (then: () => void) => {
      worker.terminate();
      signal?.removeEventListener("abort", abort);
      then();
    };
    signal?.addEventListener("abort", abort);
    worker.onmessage = ({ data }: MessageEvent<TaskResult<T>>) =>
      end(() => ("result" in data ? resolve(data.result) : reject(new Error(`the layout failed: ${data.error}`))));
    worker.onerror = (event) => end(() => reject(new Error(`the layout failed: ${event.message || "no worker"}`)));
    worker.postMessage(task);
  });
}
