import { describe, expect, test } from "vitest";
import { applicationHref, href, parse, recordsHref, type Route, traceHref } from "./route";

const routeOf = (hash: string) => {
  const route = parse(hash);
  if (route.view === "nowhere") throw new Error(route.reason);
  return route;
};

describe("an address", () => {
  test.each([
    "#/",
    "#/datasets?text=wind&cursor=0%3A3",
    "#/dataset?name=%2Fdata%2Fmonthly&namespace=file&only=writes",
    "#/history?dataset=sales.orders&where=id+%3D+42&version=7",
    "#/history?dataset=%2Fdata%2Forders",
    "#/compare?dataset=%2Fdata%2Fmonthly&key=airport%2Cmonth",
    "#/applications",
    "#/applications?text=wind&state=ended",
    "#/lag",
    "#/jobs",
    "#/jobs?text=night",
    "#/job/night%2Fly%20air?waves=all",
    "#/app/local-1",
    "#/app/local-1?open=3%2C7",
    "#/app/a%2Fb%23c%20%C3%A9/nodes/12?text=%C3%BC+x&cursor=0%3A3",
    "#/app/local-1/trace?node=8&partition=0&offset=3",
    "#/app/local-1/trace?record=local-1%238%23write%230%233&direction=forward&whole=1",
    "#/app/local-1/trace?path=%2Fdata%2Fx.csv&row=1&centre=a&centre=b",
    "#/app/local-1/trace?node=8&key=A",
    "#/app/local-1/trace?node=8&where=airport+%3D+%27EWR%27",
    "#/app/local-1/trace?failure=2",
    "#/app/local-1/trace?failure=2&whole=1",
    "#/app/local-1/failures",
    "#/app/local-1/suspects",
    "#/app/local-1/suspects?bad=8%23write%230%233&good=%2Fout%2Fpart-0%3A4&method=newt",
    "#/app/local-1/rowset?record=write%230%233&node=8&limit=200",
    "#/app/local-1/rowset?failure=2",
    "#/app/local-1/explanation?record=write%230%233&node=8&limit=1000",
    "#/app/local-1/absence?node=8&key=A+B",
    "#/app/local-1/replays",
    "#/app/local-1/replays/a%2F7",
    "#/app/local-1/why?path=%2Fout%2Fpart-0&row=3&good=8%23write%230%231",
    "#/app/local-1/missing?path=%2Fdata%2Fx.csv&row=1",
    "#/app/local-1/missing?where=wind+%3E+40&path=%2Fdata%2Fmonthly",
    "#/dataset?name=%2Fdata%2Fmonthly&where=wind+%3E+40&rows=c",
  ])("comes out of its route as it went in: %s", (hash) => {
    expect(href(routeOf(hash))).toBe(hash);
  });

  test("of the page itself is the list of datasets", () => {
    for (const hash of ["", "#", "#/"]) {
      expect(parse(hash).view).toBe("datasets");
      expect(href(routeOf(hash))).toBe("#/");
    }
  });

  test("of an older link to a search for applications still is one", () => {
    expect(href(routeOf("#/?text=wind&state=ended"))).toBe("#/applications?text=wind&state=ended");
  });

  test.each([
    "#/nowhere",
    "#/app",
    "#/app/a/b",
    "#/dataset",
    "#/dataset?namespace=file",
    "#/datasets/x",
    "#/compare/x",
    "#/history",
    "#/history?where=id+%3D+42",
    "#/history/x?dataset=t",
    "#/app/a/nodes",
    "#/app/a/trace",
    "#/app/a/trace?failure=x",
    "#/app/a/failures/1",
    "#/app/a/suspects/1",
    "#/app/a/rowset",
    "#/app/a/rowset/1?failure=1",
    "#/app/a/explanation",
    "#/app/a/absence?node=8",
    "#/app/a/absence?key=A",
    "#/app/a/why?node=3",
    "#/app/%ff",
    "#/lag/x",
    "#/app/a/trace?node=1&partition=0",
  ])("that means nothing says so: %s", (hash) => {
    expect(parse(hash).view).toBe("nowhere");
  });

  test("of a trace says where it starts, in which direction and what else the view keeps", () => {
    const route = routeOf("#/app/a/trace?node=8&partition=2&offset=3&whole=1&limit=50&centre=x") as Extract<
      Route,
      { view: "trace" }
    >;
    expect(route.start).toEqual({ node: "8", partition: 2, offset: 3 });
    expect([route.direction, route.whole]).toEqual(["both", true]);
    expect(route.query.toString()).toBe("limit=50&centre=x");
  });

  test("is made with what names may hold", () => {
    expect(applicationHref("a/b#c")).toBe("#/app/a%2Fb%23c");
    expect(recordsHref("a", 3)).toBe("#/app/a/nodes/3");
    expect(traceHref("a", { path: "/x y&z", row: 2 })).toBe("#/app/a/trace?path=%2Fx+y%26z&row=2");
  });
});
