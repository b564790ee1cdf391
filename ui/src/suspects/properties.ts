// What the input rows of bad outputs have in common, and those of good ones have not.

import type { Contrast, SharedProperty } from "../api";
import { type Child, h } from "../dom";
import { number } from "../format";
import { notice } from "../states";
import { table } from "../table";

export const propertiesOf = (contrast: Contrast): Child => [
  !contrast.complete && notice("caution", "Not all input rows were looked at, or the lineage is not complete."),
  contrast.properties.length === 0
    ? notice("empty", "The input rows of bad outputs have nothing that those of good ones have less often.")
    : propertyTable(contrast),
  contrast.how.map((text) => h("p", { class: "small soft" }, text)),
];

const propertyTable = ({ properties }: Contrast): HTMLElement =>
  table<SharedProperty>({
    caption: "What bad outputs share",
    rows: properties,
    columns: [
      {
        name: "An input row with",
        cell: ({ property, unusual }) => h("span", { class: unusual && "is-unusual" }, property),
      },
      { name: "Bad", kind: "count", cell: ({ bad, of_bad: all }) => `${number(bad)} of ${number(all)}` },
      { name: "Good", kind: "count", cell: ({ good, of_good: all }) => `${number(good)} of ${number(all)}` },
      { name: "", cell: ({ unusual }) => h("span", { class: "soft" }, unusual ? "unusual" : "may be chance") },
    ],
  });
