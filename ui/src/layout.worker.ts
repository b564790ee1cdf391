// Finds where things stand in a drawing, beside the page: of a graph of operations, and of a record's way.

import { layered } from "./graph/placement";
import type { Question } from "./layout";
import { placementOf } from "./trace/placement";

addEventListener("message", ({ data }: MessageEvent<Question>) => {
  try {
    postMessage({ found: "graph" in data ? layered(data.graph) : placementOf(data.way) });
  } catch (error) {
    postMessage({ failed: String(error) });
  }
});
