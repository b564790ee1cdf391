// Puts elements into a drawing in small steps: what they look like and how wide their texts are is found in one task,
// the frame that draws them is the next. Done in one, hundreds of elements would hold the page up.

import type { Core, ElementDefinition } from "cytoscape";
import { frame } from "./slices";

/** Elements that are made at a time. */
const SLICE = 20;
/** The first ones find all of Cytoscape's code cold. */
const FIRST_SLICE = 6;

/** Is there when all elements stand, or the signal ends it. */
export async function addElements(
  graph: Core,
  elements: readonly ElementDefinition[],
  signal: AbortSignal,
): Promise<void> {
  for (let start = 0, end = FIRST_SLICE; start < elements.length; start = end, end += SLICE) {
    graph.batch(() => {
      graph.add(elements.slice(start, end));
    });
    // Who asks for its bounds has styled it and measured its text; the frame then finds both.
    for (const { data } of elements.slice(start, end)) graph.getElementById(String(data.id)).boundingBox();
    await frame();
    if (signal.aborted) return;
  }
}

/**
 * Cytoscape puts one rule into a <style> of its own, which the Content-Security-Policy refuses, unless an element of
 * that name is there. The rule is in style.css.
 */
export function allowStyles(): void {
  const name = "__________cytoscape_stylesheet";
  if (document.getElementById(name) !== null) return;
  const placeholder = document.createElement("meta");
  placeholder.id = name;
  document.head.append(placeholder);
}
