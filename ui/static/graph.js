// An application's graph as a layered drawing, top to bottom (after Sugiyama): layers by longest path,
// long edges led through placeholders, crossings reduced by barycentres, then places pulled to their neighbours.

import { count, nodeNumber, number, route, s } from "./dom.js";

const WIDTH = 216;
const HEIGHT = 66;
const GAP_X = 36;
const GAP_Y = 58;
const LANE = 20; // width of a long edge between two nodes
const SWEEPS = 8;

/** Layers of {id, node, up, down, x, y}; `node` is null for the placeholder of a long edge. */
export function layout(graph) {
  const places = new Map(graph.nodes.map((node) => [node.node_id, place(node.node_id, node)]));
  const edges = graph.edges.filter((edge) => places.has(edge.source) && places.has(edge.target));
  const depth = depths([...places.keys()], edges);
  const layers = Array.from({ length: Math.max(0, ...depth.values()) + 1 }, () => []);
  for (const [id, each] of places) layers[depth.get(id)].push(each);

  const ways = edges.map((edge) => {
    const way = [places.get(edge.source)];
    for (let layer = depth.get(edge.source) + 1; layer < depth.get(edge.target); layer += 1) {
      const lane = place(`${edge.source}>${edge.target}@${layer}`, null);
      layers[layer].push(lane);
      way.push(lane);
    }
    way.push(places.get(edge.target));
    for (let step = 1; step < way.length; step += 1) {
      way[step - 1].down.push(way[step]);
      way[step].up.push(way[step - 1]);
    }
    return { edge, way };
  });
  order(layers);
  position(layers);
  return { layers, ways };
}

const place = (id, node) => ({ id, node, up: [], down: [], x: 0, y: 0, width: node ? WIDTH : LANE });

/** Node id -> its layer from the top, 0: the longest path to it, sources right above what reads them. */
export function depths(ids, edges) {
  const depth = new Map(ids.map((id) => [id, 0]));
  // A graph of n nodes is settled after n rounds; more would mean a cycle, which then stays flat.
  for (let round = 0, changed = true; changed && round < ids.length; round += 1) {
    changed = false;
    for (const { source, target } of edges) {
      if (depth.get(target) <= depth.get(source)) {
        depth.set(target, depth.get(source) + 1);
        changed = true;
      }
    }
  }
  for (const id of ids) {
    const below = edges.filter((edge) => edge.source === id).map((edge) => depth.get(edge.target));
    if (below.length > 0 && !edges.some((edge) => edge.target === id)) depth.set(id, Math.min(...below) - 1);
  }
  return depth;
}

function order(layers) {
  const number = () => layers.forEach((layer) => layer.forEach((each, index) => (each.rank = index)));
  number();
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const side = sweep % 2 === 0 ? "up" : "down";
    for (const layer of side === "up" ? layers : [...layers].reverse()) {
      const middle = new Map(layer.map((each) => [each, mean(each[side].map((other) => other.rank)) ?? each.rank]));
      layer.sort((a, b) => middle.get(a) - middle.get(b));
      layer.forEach((each, index) => (each.rank = index));
    }
  }
}

function position(layers) {
  for (const layer of layers) spread(layer, () => 0);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const side = sweep % 2 === 0 ? "up" : "down";
    for (const layer of side === "up" ? layers : [...layers].reverse()) {
      spread(layer, (each) => mean(each[side].map((other) => other.x)) ?? each.x);
    }
  }
  const left = Math.min(...layers.flat().map((each) => each.x - each.width / 2));
  layers.forEach((layer, index) => {
    for (const each of layer) {
      each.x += GAP_X / 2 - left;
      each.y = 8 + index * (HEIGHT + GAP_Y);
    }
  });
}

/** As near to what each wishes as the order and the gaps allow: the mean of pushing right and pushing left. */
function spread(layer, wish) {
  const wishes = layer.map(wish);
  const apart = (a, b) => (layer[a].width + layer[b].width) / 2 + GAP_X;
  const right = [...wishes];
  for (let i = 1; i < layer.length; i += 1) right[i] = Math.max(wishes[i], right[i - 1] + apart(i - 1, i));
  const left = [...wishes];
  for (let i = layer.length - 2; i >= 0; i -= 1) left[i] = Math.min(wishes[i], left[i + 1] - apart(i, i + 1));
  layer.forEach((each, i) => (each.x = (right[i] + left[i]) / 2));
}

const mean = (values) =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;

/** The drawing; each node is a link to its records. */
export function draw(application, graph) {
  const { layers, ways } = layout(graph);
  const all = layers.flat();
  const width = Math.max(...all.map((each) => each.x + each.width / 2)) + GAP_X / 2;
  const height = layers.length * (HEIGHT + GAP_Y) - GAP_Y + 16;
  return s(
    "svg",
    { class: "graph", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Graph of operations" },
    s(
      "defs",
      {},
      s(
        "marker",
        { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
        s("path", { d: "M0 0 L8 4 L0 8 z", class: "tip" }),
      ),
    ),
    ways.map(({ way }) => s("path", { class: "edge", d: curve(way), "marker-end": "url(#tip)" })),
    ways.map(({ edge, way }) => edgeLabel(edge, way)),
    all.filter((each) => each.node).map((each) => box(application, each)),
  );
}

function curve(way) {
  let path = `M${way[0].x} ${way[0].y + HEIGHT}`;
  for (let step = 1; step < way.length; step += 1) {
    const [from, to] = [way[step - 1], way[step]];
    const middle = (from.y + HEIGHT + to.y) / 2;
    path += ` C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y - (to.node ? 2 : 0)}`;
    if (!to.node) path += ` L${to.x} ${to.y + HEIGHT}`;
  }
  return path;
}

function edgeLabel({ source, target, flows }, way) {
  if (flows === null) return null;
  const [from, to] = way;
  const where = { x: (from.x + to.x) / 2, y: (from.y + HEIGHT + to.y) / 2 + 4, class: "flows" };
  const title = `${count(flows, "flow")} from ${nodeNumber(source)} to ${nodeNumber(target)}`;
  return s("text", where, s("title", {}, title), number(flows));
}

function box(application, { node, x, y }) {
  const records = node.records === null ? "records not counted" : count(node.records, "record");
  const dataset = node.dataset?.name ?? "";
  const spoken = [
    `${node.name}, ${node.kind} ${node.node}, ${records}`,
    dataset && `of ${dataset}`,
    !node.exact && `not exact: ${node.reason}`,
  ];
  const lines = [cut(node.name, 19), `${records}${node.exact ? "" : " · not exact"}`, dataset && cutFront(dataset, 27)];
  return s(
    "a",
    {
      href: route(["app", application, "nodes", node.node]),
      class: `node ${node.kind}${node.exact ? "" : " inexact"}`,
      transform: `translate(${x - WIDTH / 2} ${y})`,
      "aria-label": spoken.filter(Boolean).join(", "),
    },
    s("title", {}, [node.description || node.name, node.call_site, dataset, node.reason].filter(Boolean).join("\n")),
    s("rect", { width: WIDTH, height: HEIGHT, rx: 8 }),
    s("text", { x: 12, y: dataset ? 21 : 29, class: "name" }, lines[0]),
    s("text", { x: WIDTH - 12, y: dataset ? 21 : 29, class: "number" }, node.node),
    s("text", { x: 12, y: dataset ? 39 : 48 }, lines[1]),
    dataset && s("text", { x: 12, y: 56, class: "dataset" }, lines[2]),
  );
}

const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
const cutFront = (text, length) => (text.length > length ? `…${text.slice(1 - length)}` : text);
