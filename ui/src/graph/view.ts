// An application: what it is, the graph of its operations by stages, and the same as a table beside it.

import type { Application, Graph, Node as Operation } from "../api";
import { isAbort } from "../client";
import { type Child, h, replace } from "../dom";
import {
  colourOf,
  completeness,
  count,
  errorText,
  expressionText,
  fileName,
  nodeNumber,
  number,
  stateText,
  time,
} from "../format";
import { failureNotice } from "../failures/view";
import { layoutGraph } from "../layout";
import { applicationHref, type ApplicationRoute, jobHref, recordsHref, replaysHref, suspectsHref } from "../route";
import { frame, pause } from "../slices";
import { loading, notice, showFailure } from "../states";
import { drawingTools } from "../tools";
import type { View, ViewContext } from "../view";
import { foldBranches } from "./branches";
import { type Drawing, makeDrawing } from "./drawing";
import { heightOf, zoomOf } from "./extent";
import { layoutRequestOf, sizeOf } from "./labels";
import { type MarkedOperations, operationLook } from "./look";
import { type DrawnBox, type Group, groupsOf, initiallyOpen, type Picture, pictureOf, summaryOf } from "./model";
import { operationTable, reservation } from "./operations";
import { MOST_SUSPECTS, unusualOf } from "./unusual";

const HELP =
  "Arrow keys move between operations, Enter opens an operation or a stage, + and - zoom, 0 shows all, Escape clears the selection. " +
  "The table below has the same content.";
/** Room that the rest of the page takes above and below the drawing, at least. */
const AROUND = 250;
const LEAST_HEIGHT = 220;
/** A drawing smaller than this cannot be read: its stages are closed at first. */
const LEAST_ZOOM = 0.5;

export function graphView(
  container: HTMLElement,
  context: ViewContext,
  first: ApplicationRoute,
): View<ApplicationRoute> {
  let route = first;
  const closing = new AbortController();
  let layoutRun = new AbortController();
  let markRun = new AbortController();
  let canvas: Drawing<Picture> | null = null;
  let loaded: { whole: Graph; graph: Graph; alike: ReadonlyMap<string, readonly Operation[]>; all: Group[] } | null =
    null;
  let currentPicture: Picture | null = null;
  const culprits = new Set<string>();
  const unusual = new Map<string, number>();

  const id = route.application;
  const heading = h("h1", { tabindex: -1 }, id);
  const about = h("div", {}, loading());
  const [failing, marking] = [h("div"), h("div")];
  const body = h("div");
  context.title(id);
  replace(container, heading, about, failing, marking, body);

  const load = async () => {
    const options = { signal: closing.signal };
    try {
      const [application, graph] = await Promise.all([
        context.client.application(id, options),
        context.client.graph(id, options),
      ]);
      replace(heading, application.name, " ", h("small", {}, id));
      context.title(application.name);
      context.named(id, application.name);
      replace(about, facts(application, load));
      if (graph.nodes.length === 0) {
        replace(body, notice("empty", "This application has registered no operation yet."));
        return;
      }
      loaded = loadedOf(graph);
      await pause(); // one piece of work at a time
      build(graph);
      await frame();
      if (closing.signal.aborted) return;
      canvas?.close();
      canvas = makeDrawing(box, operationLook({ culprits, unusual }), { onOpen: open, current: showDetails });
      await draw();
      context.announce(`${application.name}: ${count(graph.nodes.length, "operation")}`);
    } catch (error) {
      showFailure(about, error, load);
      return;
    }
    await loadFailures();
    if (isMarked()) await loadUnusual();
  };

  const isMarked = () => route.query.get("suspects") === "1";

  /** Marks the operations whose tasks behave oddly, if the address wants it. */
  const loadUnusual = async () => {
    markRun.abort(); // an answer that comes late marks nothing
    markRun = new AbortController();
    const { signal } = markRun;
    unusual.clear();
    try {
      if (isMarked()) {
        const suspects = await context.client.suspects(id, { limit: MOST_SUSPECTS }, { signal });
        if (signal.aborted) return;
        for (const [node, tasks] of unusualOf(suspects)) unusual.set(node, tasks);
        context.announce(`${count(unusual.size, "operation")} with unusual tasks`);
      }
      if (loaded !== null) showOperations(loaded.whole);
      await draw();
    } catch (error) {
      if (isAbort(error) || signal.aborted) return;
      replace(marking, notice("caution", "Who behaves oddly could not be asked."));
    }
  };

  /** The graph does not wait for them, and does without them. */
  const loadFailures = async () => {
    try {
      const { failures } = await context.client.failures(id, { signal: closing.signal });
      replace(failing, failureNotice(id, failures));
      culprits.clear();
      for (const { node_id } of failures) if (node_id !== null) culprits.add(node_id);
      if (culprits.size > 0) await draw();
    } catch (error) {
      if (isAbort(error) || closing.signal.aborted) return;
      replace(failing, notice("caution", "Which records made tasks fail could not be asked."));
    }
  };

  // -- around the drawing ----------------------------------------------------------------------------

  const details = h("p", { class: "details" });
  const omissions = h("div");
  const box = h("div", {
    class: "canvas",
    tabindex: 0,
    role: "application",
    "aria-label": "Graph of operations",
    "aria-describedby": "graph-help",
  });

  const tools = h("div", { class: "tools" });
  const listed = h("div");

  /** With equal branches as one, unless the address wants each of them. */
  const loadedOf = (whole: Graph) => {
    const { graph, alike } =
      route.query.get("branches") === "all" ? { graph: whole, alike: new Map() } : foldBranches(whole);
    return { whole, graph, alike, all: groupsOf(graph) };
  };

  const build = (graph: Graph) => {
    replace(
      body,
      tools,
      omissions,
      h("div", { class: "drawn" }, box, details, h("p", { class: "soft small help", id: "graph-help" }, HELP)),
      h("h2", {}, "Operations"),
      listed,
    );
    showOperations(graph);
    showDetails(null, false);
  };

  const showOperations = (graph: Graph) =>
    replace(
      listed,
      operationTable(id, graph, unusual, (node, isRevealed) =>
        canvas?.point(node === null ? null : boxIdOf(node), isRevealed),
      ),
    );

  const showTools = ({ whole, graph, alike, all }: NonNullable<typeof loaded>) => {
    const framed = all.filter(({ members }) => members.length > 1);
    const button = (name: string, click: () => void) => h("button", { type: "button", click }, name);
    replace(
      tools,
      framed.length > 0 && [
        button("Open all stages", () => toggle(all.map((group) => group.id))),
        button("Close all stages", () => toggle([])),
      ],
      alike.size > 0 && button("Show each branch", () => setBranches(true)),
      graph === whole && route.query.has("branches") && button("Equal branches as one", () => setBranches(false)),
      button(isMarked() ? "Hide who behaves oddly" : "Mark who behaves oddly", () => setMarked(!isMarked())),
      drawingTools(
        () => canvas,
        () => `${heading.firstChild?.textContent ?? id}-graph`,
      ),
      h("span", { class: "soft small" }, legend(whole, framed, { culprits, unusual })),
    );
  };

  const setBranches = (isEach: boolean) => {
    const query = new URLSearchParams(route.query);
    query.delete("open"); // stages have other numbers then
    if (isEach) query.set("branches", "all");
    else query.delete("branches");
    context.navigate({ ...route, query });
  };

  const setMarked = (isOn: boolean) => {
    const query = new URLSearchParams(route.query);
    if (isOn) query.set("suspects", "1");
    else query.delete("suspects");
    context.navigate({ ...route, query }, { replace: true });
  };

  /** The box that an operation is drawn as. */
  const boxIdOf = (operationId: string): string | null => {
    const standsBehind = [...(loaded?.alike ?? [])].find(([, all]) =>
      all.some(({ node_id }) => node_id === operationId),
    );
    const nodeId = standsBehind?.[0] ?? operationId;
    if (currentPicture?.boxes.some((drawnBox) => drawnBox.id === nodeId)) return nodeId;
    const holder = loaded?.all.find(({ members }) => members.some(({ node_id }) => node_id === nodeId));
    return holder === undefined ? null : `group ${holder.id}`;
  };

  // -- the drawing ------------------------------------------------------------------------------------

  const draw = async () => {
    if (loaded === null) return;
    const { whole, graph, alike, all } = loaded;
    layoutRun.abort();
    layoutRun = new AbortController();
    const { signal } = layoutRun;
    box.setAttribute("aria-busy", "true");
    delete box.dataset.elements;
    const frame = { width: box.clientWidth, height: Math.max(LEAST_HEIGHT, innerHeight - AROUND) };
    const placedWith = async (open: string[]) => {
      const picture = pictureOf(graph, all, open, alike);
      return { picture, placed: await layoutGraph(layoutRequestOf(picture, frame), signal) };
    };
    const layOut = async () => {
      const open = await placedWith(openGroups(route, all, graph));
      const isChosen = route.query.has("open") || open.picture.open.length === 0;
      const isSmall = zoomOf(open.picture.boxes, open.placed.boxes, sizeOf, frame) < LEAST_ZOOM;
      return isSmall && !isChosen ? await placedWith([]) : open;
    };
    const drawn = await layOut().catch((error: unknown) => {
      if (signal.aborted) return null;
      throw error;
    });
    if (drawn === null || closing.signal.aborted) return;
    const { picture: newPicture, placed } = drawn;
    currentPicture = newPicture;
    showTools(loaded);
    const heights = { least: LEAST_HEIGHT, most: frame.height };
    box.style.height = `${heightOf(newPicture.boxes, placed.boxes, sizeOf, frame.width, heights)}px`;
    await canvas?.show(newPicture, placed);
    if (signal.aborted) return;
    box.removeAttribute("aria-busy");
    box.dataset.elements = String(newPicture.boxes.length + newPicture.lines.length); // for who measures
    replace(omissions, omissionsOf(newPicture, whole, all));
  };

  const toggle = (open: string[]) => {
    const query = new URLSearchParams(route.query);
    query.set("open", open.length === 0 ? "none" : open.length === loaded?.all.length ? "all" : open.join(","));
    context.navigate({ ...route, query }, { replace: true });
  };

  const open = (chosen: DrawnBox) => {
    if (chosen.type === "operation" && chosen.alike > 1) {
      setBranches(true);
      return;
    }
    if (chosen.type === "operation") {
      context.navigate({
        view: "records",
        application: id,
        node: String(chosen.operation.node),
        query: new URLSearchParams(),
      });
      return;
    }
    const others = (currentPicture?.open ?? []).filter((groupId) => groupId !== chosen.group.id);
    toggle(chosen.isOpen ? others : [...others, chosen.group.id]);
    context.announce(`${chosen.group.name} ${chosen.isOpen ? "closed" : "opened"}`);
  };

  const showDetails = (drawnBox: DrawnBox | null, byKey: boolean) => {
    replace(
      details,
      drawnBox === null
        ? h("span", { class: "soft" }, "Point at an operation to see its details; click it to see its records.")
        : detailsOf(drawnBox),
    );
    if (drawnBox !== null && byKey) context.announce(details.textContent ?? "");
  };

  void load();
  return {
    update(next) {
      const [isOther, isMarkedAnew] = ["branches", "suspects"].map(
        (name) => next.query.get(name) !== route.query.get(name),
      );
      route = next;
      if (isOther && loaded !== null) loaded = loadedOf(loaded.whole);
      if (isMarkedAnew) void loadUnusual();
      else draw().catch((error: unknown) => showFailure(about, error, load));
    },
    close() {
      closing.abort();
      layoutRun.abort();
      markRun.abort();
      canvas?.close();
    },
  };
}

/** The groups that the address asks to be open, the ones opened last at the end. */
function openGroups(route: ApplicationRoute, all: Group[], graph: Graph): string[] {
  const value = route.query.get("open");
  if (value === null) return initiallyOpen(all, graph);
  if (value === "all") return all.map(({ id }) => id);
  return value === "none" ? [] : value.split(",");
}

function omissionsOf(picture: Picture, graph: Graph, all: Group[]): Child {
  const boxes = picture.boxes.filter((box) => box.type === "operation");
  const drawn = boxes.reduce((sum, { alike }) => sum + alike, 0);
  const folded = boxes.filter(({ alike }) => alike > 1);
  return [
    folded.length > 0 &&
      h(
        "p",
        { class: "soft" },
        `Equal branches are drawn as one: a box with ×${number(Math.max(...folded.map(({ alike }) => alike)))} stands for as many operations. Click it to show each.`,
      ),
    drawn < graph.nodes.length &&
      h(
        "p",
        { class: "soft" },
        `${number(drawn)} of ${count(graph.nodes.length, "operation")} are drawn individually; the others are in closed stages. Click a stage to open it.`,
      ),
    picture.closed.length > 0 &&
      notice(
        "caution",
        `The drawing has no room for all of ${count(all.length, "stage")}: ${count(picture.closed.length, "stage")} stayed closed.`,
      ),
    picture.lineless > 0 &&
      notice(
        "caution",
        `${count(picture.lineless, "line")} with few flows are omitted from the drawing; the table has them.`,
      ),
  ];
}

function legend(graph: Graph, framed: Group[], { culprits, unusual }: MarkedOperations): string {
  return [
    "Lines: flows",
    graph.edges.some(({ shuffle }) => shuffle) && "dashed: a shuffle",
    framed.length > 0 && "grey: a stage (between shuffles)",
    graph.nodes.some(({ exact, state }) => !exact && state !== "failed") && "dashed box: not exact",
    graph.nodes.some(({ state }) => state === "failed") && "red box: failed",
    culprits.size > 0 && "red frame: a task failed there",
    unusual.size > 0 && "●: a task behaves oddly there",
  ]
    .filter((part) => part !== false)
    .join(" · ");
}

function detailsOf(box: DrawnBox): Child {
  if (box.type === "group") {
    const { operations, names } = summaryOf(box.group);
    return [
      h("strong", {}, box.group.name),
      ` ${box.isOpen ? "(open)" : "(closed)"}: ${count(operations, "operation")}: ${names}`,
    ];
  }
  const { name, node, kind, call_site, dataset, records } = box.operation;
  const parts = [
    `${kind} ${node}`,
    expressionText(box.operation),
    call_site !== "" && call_site,
    dataset?.name,
    records === null ? passedText(box.passedRows) : count(records, "record"),
    box.alike > 1 && `${number(box.alike)} operations alike`,
    reservation(box.operation),
  ];
  return [h("strong", {}, name), " ", parts.filter(Boolean).join(" · ")];
}

const passedText = (rows: number | null): string => (rows === null ? "rows not counted" : count(rows, "row"));

function facts(application: Application, retry: () => void): Child {
  const {
    application_id: id,
    started,
    counters,
    missing,
    complete,
    state,
    error,
    replay_of: original,
    job,
    name,
  } = application;
  const positive = Object.entries(counters).filter(([, value]) => value > 0);
  return [
    h(
      "p",
      {},
      "Started ",
      h("time", { datetime: new Date(started).toISOString() }, time(started)),
      ", ",
      h("span", { class: colourOf(state) }, state === "running" ? "still running" : stateText(application)),
      ". ",
      "Lineage: ",
      h("span", { class: complete ? null : "warning" }, completeness(application)),
      ". ",
      original != null && ["It is a replay of ", h("a", { href: applicationHref(original) }, original), "."],
    ),
    h(
      "nav",
      { class: "ways", "aria-label": "What may be wrong" },
      h("a", { href: suspectsHref(id) }, "Who behaves oddly?"),
      h("a", { href: replaysHref(original ?? id) }, "Replays"),
      original == null && h("a", { href: jobHref(job ?? name) }, "Its job"),
    ),
    positive.length > 0 &&
      h(
        "details",
        { class: "soft small" },
        h("summary", {}, "Details"),
        positive.map(([name, value]) => `${name.replaceAll("_", " ")} ${number(value)}`).join(" · "),
      ),
    state === "failed" &&
      notice(
        "failure",
        "This application failed",
        error !== null && `: ${errorText(error)}`,
        error !== null &&
          error.node_id !== null && [
            ". The action that failed: ",
            h(
              "a",
              { href: recordsHref(id, Number(nodeNumber(error.node_id))) },
              `${nodeNumber(error.node_id)} ${error.name ?? ""}`,
            ),
            error.call_site !== null && ` (${fileName(error.call_site)})`,
          ],
        ".",
      ),
    !complete &&
      notice(
        "caution",
        state === "running"
          ? "This application is still running: its counts grow until it ends."
          : "The lineage of this application is incomplete: records may be missing from results.",
        missing !== "" && ` What is missing: ${missing}.`,
        " ",
        retryButton(retry),
      ),
  ];
}

function retryButton(retry: () => void): HTMLElement {
  const button: HTMLButtonElement = h(
    "button",
    {
      type: "button",
      click: () => {
        button.disabled = true;
        retry();
      },
    },
    "Refresh",
  );
  return button;
}
