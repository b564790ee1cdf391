// How datasets and jobs look in a drawing: datasets are boxes, jobs are rounder ones between them.

import type { DatasetGraphNode } from "../api";
import type { Look } from "../graph/drawing";
import { segments } from "../graph/bends";
import { colour } from "../theme";
import { labelOf, type Net, sizeOf } from "./picture";

export const datasetLook = (centre: string): Look<DatasetGraphNode, Net> => ({
  centre,
  sizeOf,
  elements: ({ boxes, lines }, placed) => [
    ...boxes.map((box) => ({
      group: "nodes" as const,
      data: { id: box.id, label: labelOf(box), ...sizeOf(box) },
      position: placed.boxes[box.id] ?? { x: 0, y: 0 },
      classes: [box.kind, box.failed_runs > 0 && box.kind === "job" && "broken", box.id === centre && "centre"]
        .filter(Boolean)
        .join(" "),
    })),
    ...lines.map(({ id, source, target, exact }) => {
      const [from, to] = [placed.boxes[source], placed.boxes[target]];
      const bent = from && to ? segments(from, to, placed.bends[id] ?? []) : { weights: [], distances: [] };
      return {
        group: "edges" as const,
        data: { id, source, target, label: "", ...bent },
        classes: [bent.weights.length > 0 && "bent", !exact && "possible"].filter(Boolean).join(" "),
      };
    }),
  ],
  styles: () => {
    const colourOf = (name: string) => colour(`--${name}`);
    return [
      {
        selector: ".dataset",
        style: { "background-color": colourOf("source-fill"), "border-color": colourOf("source"), "border-width": 1.5 },
      },
      { selector: ".job", style: { shape: "round-octagon", "background-color": colourOf("operator-fill") } },
      {
        selector: ".broken",
        style: { "background-color": colourOf("failure-fill"), "border-color": colourOf("failure"), "border-width": 2 },
      },
      { selector: ".centre", style: { "border-width": 3 } },
      { selector: ".possible", style: { "line-style": "dashed", "line-color": colourOf("caution") } },
    ];
  },
});
