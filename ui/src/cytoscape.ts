// Adds elements to a drawing in small slices: one task computes their style and measures their texts,
// the next one draws them in a frame. In a single task, hundreds of elements would block the page.

import type { Core, ElementDefinition } from "cytoscape";
import { frame } from "./slices";

/** Elements that are added in one task. */
const SLICE = 20;
/** The first slice runs Cytoscape's code cold. */
const FIRST_SLICE = 6;

/** Resolves when all elements are added, or the signal aborts. */
export async function addElements(
  graph: Core,
  elements: readonly ElementDefinition[],
  signal: AbortSignal,
): Promise<void> {
  for (let start = 0, end = FIRST_SLICE; start < elements.length; start = end, end += SLICE) {
    graph.batch(() => {
      graph.add(elements.slice(start, end));
    });
    // Asking for the bounds computes the style and measures the text; the frame then finds both.
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
