// All jobs that ran or were asked about, with a search. Rows lead to the page of a job.

import type { JobEntry, Jobs } from "../api";
import type { Problem } from "../client";
import { h, replace } from "../dom";
import { count, number, share, time } from "../format";
import { poll } from "../poll";
import { applicationHref, jobHref, type JobsRoute, queryOf } from "../route";
import { loading, notice, showFailure } from "../states";
import { table } from "../table";
import type { View, ViewContext } from "../view";

const POLL_MS = 10_000;

export function jobsView(container: HTMLElement, context: ViewContext, first: JobsRoute): View<JobsRoute> {
  let route = first;
  let { jobs, unread_applications: unread }: Jobs = { jobs: [], unread_applications: 0 };
  let shownText = "";
  const extent = h("span", { class: "soft" });
  const list = h("div", {}, loading());
  const text = h("input", {
    name: "text",
    type: "search",
    size: 28,
    input: () => context.navigate({ view: "jobs", query: queryOf({ text: text.value }) }, { replace: true }),
  });
  context.title("Jobs");
  replace(
    container,
    h("h1", { tabindex: -1 }, "Jobs"),
    h(
      "form",
      { class: "fields", role: "search", submit: (event: SubmitEvent) => event.preventDefault() },
      h("label", {}, h("span", {}, "Name"), text),
      extent,
    ),
    list,
  );

  const show = () => {
    const searched = (route.query.get("text") ?? "").toLowerCase();
    if (text !== document.activeElement) text.value = route.query.get("text") ?? "";
    const matching = jobs.filter(({ job }) => job.toLowerCase().includes(searched));
    replace(extent, jobs.length > 0 && share(matching.length, jobs.length, "job"));
    replace(
      list,
      unread > 0 && notice("caution", `The events of ${count(unread, "application")} cannot be read now.`),
      matching.length > 0 ? tableOf(matching) : emptyNotice(jobs.length > 0),
    );
    context.announce(share(matching.length, jobs.length, "job"));
  };
  const polling = poll(
    async (signal) => {
      const answer = await context.client.jobs({ signal });
      const answerText = JSON.stringify(answer);
      if (answerText === shownText) return; // nothing new: the reader keeps focus and marked text
      ({ jobs, unread_applications: unread } = answer);
      shownText = answerText;
      show();
    },
    POLL_MS,
    (problem) => {
      shownText = "";
      if ((problem as Problem).status === 401) polling.stop();
      showFailure(list, problem, () => polling.now());
    },
  );
  return {
    update(next) {
      route = next;
      if (shownText !== "") show();
    },
    close: () => polling.stop(),
  };
}

const tableOf = (jobs: readonly JobEntry[]): HTMLElement =>
  table<JobEntry>({
    caption: "Jobs, those that ran last first",
    rows: jobs,
    key: ({ job }) => job,
    opens: true,
    columns: [
      { name: "Job", cell: ({ job }) => h("a", { href: jobHref(job) }, job) },
      {
        name: "Last execution",
        cell: ({ application_id: id, began }) =>
          id === null || began === null
            ? h("span", { class: "soft" }, "never ran with lineage")
            : [
                h("time", { datetime: new Date(began).toISOString() }, time(began)),
                h("div", { class: "id" }, h("a", { href: applicationHref(id) }, id)),
              ],
      },
      {
        name: "Waves",
        kind: "count",
        cell: ({ waves }) => (waves === 0 ? h("span", { class: "soft" }, "never asked about") : number(waves)),
      },
    ],
  });

const emptyNotice = (isSearched: boolean): HTMLElement =>
  isSearched
    ? notice("empty", "No job has this text in its name.")
    : notice(
        "empty",
        "No job has run with lineage yet. Run one with ",
        h("code", {}, "--conf spark.lineage.enabled=true"),
        ", and ask before it: ",
        h("code", {}, "lineage trigger JOB"),
        ".",
      );
