// A list with a search: sent while the reader types, and repeated while the list is visible.

import type { Problem, RequestOptions } from "./client";
import { type Child, h, replace } from "./dom";
import { poll, type Polling } from "./poll";
import type { ApplicationsRoute, DatasetsRoute } from "./route";
import { loading, showFailure } from "./states";
import type { View, ViewContext } from "./view";

const PAGE = 100;
/** After the last key, before a search is sent. */
const TYPING_PAUSE_MS = 250;

type ListRoute = ApplicationsRoute | DatasetsRoute;

export interface SearchForm {
  element: HTMLElement;
  /** What the form says. */
  query(): URLSearchParams;
  /** Fills the form, except for what is being typed: that is newer than the address. */
  set(query: URLSearchParams): void;
}

export interface ListOptions<Page> {
  heading: string;
  /** Those parameters of the address that the API knows. */
  parameters: string[];
  interval: number;
  /** `search` is called whenever the reader changes the form, with `true` while the reader types. */
  form(search: (isTyped: boolean) => void): SearchForm;
  ask(parameters: URLSearchParams, options: RequestOptions): Promise<Page>;
  show(page: Page, query: URLSearchParams): Child[];
  announcement(page: Page): string;
}

export function listView<R extends ListRoute, Page>(
  container: HTMLElement,
  context: ViewContext,
  first: R,
  { heading, parameters: known, interval, form: makeForm, ask, show: contentOf, announcement }: ListOptions<Page>,
): View<R> {
  let route = first;
  let polling: Polling | null = null;
  let shownText = "";
  let typing: ReturnType<typeof setTimeout> | undefined;
  const list = h("div", {}, loading());
  const form = makeForm((isTyped) => {
    clearTimeout(typing);
    typing = setTimeout(
      () => context.navigate({ view: first.view, query: form.query() }, { replace: true }),
      isTyped ? TYPING_PAUSE_MS : 0,
    );
  });
  context.title(heading);
  replace(container, h("h1", { tabindex: -1 }, heading), form.element, list);

  const show = (page: Page) => {
    const text = JSON.stringify(page);
    if (text === shownText) return; // nothing new: the reader keeps focus and marked text
    shownText = text;
    const focused = document.activeElement?.closest("tr")?.dataset.key;
    replace(list, ...contentOf(page, route.query));
    if (focused !== undefined) {
      list.querySelector<HTMLElement>(`tr[data-key="${CSS.escape(focused)}"] a`)?.focus({ preventScroll: true });
    }
    context.announce(announcement(page));
  };
  const start = () => {
    polling?.stop();
    shownText = "";
    form.set(route.query);
    const parameters = new URLSearchParams([...route.query].filter(([name]) => known.includes(name)));
    if (!parameters.has("limit")) parameters.set("limit", String(PAGE));
    polling = poll(
      async (signal) => show(await ask(parameters, { signal })),
      interval,
      (problem: unknown) => {
        shownText = "";
        if ((problem as Problem).status === 401) polling?.stop();
        showFailure(list, problem, () => polling?.now());
      },
    );
  };
  start();
  return {
    update(next) {
      route = next;
      start();
    },
    close() {
      clearTimeout(typing);
      polling?.stop();
    },
  };
}
