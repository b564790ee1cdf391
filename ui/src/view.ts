// What a view of the page is, and what it may use of the shell around it.

import type { Client } from "./client";
import type { NoRoute, Route } from "./route";

export interface ViewContext {
  client: Client;
  /** Goes to another place of the page; with `replace` the back button does not return to this one. */
  navigate(route: Exclude<Route, NoRoute>, options?: { replace?: boolean }): void;
  /** Says a short sentence to those who hear the page. */
  announce(text: string): void;
  /** The title of the window, of bookmarks and of the history. */
  title(text: string): void;
}

/**
 * A view that stands in its place until it is closed. `update` is told of another address of the same view and the
 * same application; of any other the shell closes it and makes a new one.
 */
export interface View<R extends Route = Route> {
  update(route: R): void;
  close(): void;
}

/** Fills the place, and begins with an h1 that can be focused (`tabindex: -1`), so that readers hear where they are. */
export type MakeView<R extends Route> = (container: HTMLElement, context: ViewContext, route: R) => View<R>;
