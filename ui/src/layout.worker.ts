// Finds where things stand in a drawing, beside the page: of a graph of operations, and of a record's way.

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
