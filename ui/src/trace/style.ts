// The style of the elements in a lineage's drawing, in the current colours of the page (style.css).

import type { StylesheetJson } from "cytoscape";
import { colour } from "../theme";

export function stylesheet(): StylesheetJson {
  const [ink, soft, line, card, raised] = ["--ink", "--soft", "--line", "--card", "--raised"].map(colour);
  const rule = colour("--rule");
  // Text of a few pixels is unreadable, and drawing hundreds of them in a frame would block the page.
  const fonts = { "font-family": "ui-monospace, monospace", "font-size": 11, "min-zoomed-font-size": 5 };
  return [
    {
      selector: "node",
      style: {
        width: "data(width)",
        height: "data(height)",
        shape: "round-rectangle",
        label: "data(label)",
        color: ink,
        "text-valign": "center",
        "text-halign": "center",
        "text-wrap": "wrap",
        "line-height": 1.25,
        "background-color": card,
        "border-width": 1,
        "border-color": line,
        "z-index-compare": "manual",
        "z-index": 3,
        "overlay-opacity": 0,
        ...fonts,
      },
    },
    {
      selector: "node.group",
      style: {
        "background-color": raised,
        "border-color": rule,
        "z-index": 1,
        events: "no",
      },
    },
    {
      selector: "node.head", // above the lines that pass it
      style: {
        "background-color": raised,
        "border-width": 0,
        "z-index": 5,
        color: soft,
        "font-family": "system-ui, sans-serif",
        "font-size": 12,
        events: "no",
      },
    },
    { selector: "node.group.source", style: { "border-color": colour("--source") } },
    { selector: "node.group.sink", style: { "border-color": colour("--sink") } },
    { selector: "node.group.foreign", style: { "border-width": 3, "border-style": "double" } },
    { selector: "node.group.inexact", style: { "border-style": "dashed" } },
    {
      selector: "node.record.source",
      style: { "background-color": colour("--source-fill"), "border-color": colour("--source") },
    },
    {
      selector: "node.record.sink",
      style: { "background-color": colour("--sink-fill"), "border-color": colour("--sink") },
    },
    {
      selector: "node.record.outlier",
      style: { "background-color": colour("--caution-fill"), "border-color": colour("--caution"), "border-width": 2 },
    },
    { selector: "node.record.centre", style: { "border-width": 3, "border-color": colour("--chosen") } },
    {
      selector: "node.stub",
      style: {
        "background-color": card,
        "border-style": "dashed",
        color: colour("--link"),
        "font-family": "system-ui, sans-serif",
        "font-size": 12,
      },
    },
    {
      selector: "edge",
      style: {
        width: 1.3,
        "line-color": line,
        "curve-style": "straight",
        "source-endpoint": "50% 0",
        "target-endpoint": "-50% 0",
        "target-arrow-shape": "triangle",
        "target-arrow-color": line,
        "arrow-scale": 0.7,
        opacity: 0.8,
        "z-index-compare": "manual",
        "z-index": 2,
        "overlay-opacity": 0,
        events: "no",
      },
    },
    {
      selector: "edge.bundle",
      style: {
        "line-style": "dashed",
        width: 2,
        label: "data(label)",
        color: soft,
        "font-size": 11,
        "text-background-color": card,
        "text-background-opacity": 1,
      },
    },
    { selector: "node.dim", style: { opacity: 0.4 } },
    { selector: "edge.dim", style: { opacity: 0.12 } },
    { selector: "node.lit", style: { "background-color": colour("--lit") } },
    {
      selector: "edge.lit",
      style: {
        "line-color": colour("--chosen"),
        "target-arrow-color": colour("--chosen"),
        width: 2.2,
        opacity: 1,
      },
    },
    { selector: "node.current", style: { "border-width": 3, "border-color": colour("--chosen"), opacity: 1 } },
  ] as StylesheetJson;
}
