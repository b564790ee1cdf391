// The worker that computes the layout of a graph of operations, and of a record's lineage.

import { placementOf as graphPlacementOf } from "./graph/placement";
import type { LayoutTask } from "./layout";
import { placementOf } from "./trace/placement";

addEventListener("message", ({ data }: MessageEvent<LayoutTask>) => {
  try {
    postMessage({ result: "graph" in data ? graphPlacementOf(data.graph) : placementOf(data.trace) });
  } catch (error) {
    postMessage({ error: String(error) });
  }
});
