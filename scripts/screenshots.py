"""Makes the pictures of the documentation, from the demo and stories, with Chromium.

    python -m scripts.screenshots [--only NAME ...] [--out FOLDER]

Runs `make demo`'s demo in a folder of its own, tells the stories of tweets and customers beside it, and goes
through the table PICTURES: each is an address, what is done there, and what to wait for. Light theme, 1366 x
768. A picture larger than MAX_BYTES is an error: a page that loads slowly is not read.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route, sync_playwright

import lineage_cypher

ROOT = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT = 1366, 768
MAX_BYTES = 260_000
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_DEADLINE_S = 300.0
_DEADLINE_MS = 60_000

Places = Mapping[str, str]
"""What the addresses of the table are made of: see `places_of`."""
Steps = Callable[[Page, Places], None]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """`address` has {names} of `Places`. `until` is text that stands there when the view is whole."""

    name: str
    address: str
    until: str
    steps: Steps = lambda page, places: None


def _drawn(query: str) -> Steps:
    """Runs a query in Neo4j Browser and waits for its drawing."""

    def steps(page: Page, places: Places) -> None:
        _alone(page, places[query])
        page.locator("g.node").nth(5).wait_for(timeout=_DEADLINE_MS)
        page.wait_for_timeout(
            8_000
        )  # the drawing swings for a while, and nothing on the page says that it rests

    return steps


def _listed(query: str) -> Steps:
    """Runs a query in Neo4j Browser and waits for its table."""

    def steps(page: Page, places: Places) -> None:
        _alone(page, places[query])
        page.get_by_text("Started streaming").first.wait_for(timeout=_DEADLINE_MS)

    return steps


def _open_all(page: Page) -> None:
    """Opens the turns of loops."""
    for turn in page.locator(".loop details").all():
        turn.locator("summary").click()


def _alone(page: Page, query: str) -> None:
    """Runs a query when nothing else is to be seen."""
    page.get_by_text("node.LineageFlow").first.wait_for(
        timeout=_DEADLINE_MS
    )  # it is connected, and has the style
    run_in_browser(page, ":clear")
    run_in_browser(page, query)


PICTURES = (
    Picture(name="applications", address="{page}#/applications", until="Wind and delays"),
    Picture(name="application", address="{page}#/app/{demo}", until="saveAsTextFile"),
    Picture(name="records", address="{page}#/app/{demo}/nodes/{demo_sink}", until="EWR,2013-02,57.81"),
    Picture(
        name="wrong-row",
        address="{page}#/app/{demo}/trace?{demo_row}",
        until="Stands out",
        steps=lambda page, places: page.wait_for_timeout(3_000),  # the row that stands out is drawn last
    ),
    Picture(name="trace", address="{page}#/app/{tweets}/trace?{tweets_row}", until="breakingbad"),
    Picture(
        name="explanation",
        address="{page}#/app/{clusters}/explanation?{clusters_row}",
        until="Loop at customer_clusters.py",
        steps=lambda page, places: _open_all(page),
    ),
    Picture(
        name="lag",
        address="{page}#/lag",
        until="Lag of the stores",
        steps=lambda page, places: page.wait_for_timeout(6_000),  # rates are known after a second look
    ),
    Picture(name="neo4j-browser", address="{browser}", until="", steps=_drawn("tweet_way")),
    Picture(name="neo4j-step", address="{browser}", until="", steps=_listed("tweets_step")),
)


# -- Neo4j Browser ------------------------------------------------------------------------------------


def run_in_browser(page: Page, query: str) -> None:
    """Runs a command or a query in a Neo4j Browser that is open and connected."""
    page.locator("#monaco-main-editor textarea").focus()
    page.keyboard.insert_text(query)
    page.get_by_test_id("editor-Run").click()


# -- what there is to see -----------------------------------------------------------------------------


@contextmanager
def running_demo(folder: Path) -> Iterator[Places]:
    """The demo and the story, until the block ends."""
    environment = {**os.environ, "LINEAGE_HOME": str(folder / "home")}
    report = folder / "demo.json"
    command = [sys.executable, "-m", "examples.demo", "--folder", str(folder / "demo"), "--json", str(report)]
    command += ["--jars", str(ROOT / ".cache" / "lineage" / "jars")]
    with (folder / "demo.log").open("wb") as log:
        demo = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + _DEADLINE_S
        while "Ctrl-C ends it" not in (folder / "demo.log").read_text():
            if demo.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"screenshots: the demo does not run:\n{(folder / 'demo.log').read_text()}")
            time.sleep(0.5)
        tweets, customers = (_told(name, folder, environment) for name in ("tweets", "customers"))
        home = json.loads((folder / "home" / "stack.json").read_text())
        places = places_of(json.loads(report.read_text()), tweets, customers, home)
        yield {**places, "folder": str(folder)}
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait(_DEADLINE_S)


def _told(name: str, folder: Path, environment: Mapping[str, str]) -> Mapping[str, Any]:
    """What a story has found."""
    report = folder / f"{name}.json"
    arguments = ["--folder", str(folder / name), "--json", str(report)]
    subprocess.run(
        [sys.executable, "-m", f"examples.{name}_story", *arguments], cwd=ROOT, env=environment, check=True
    )
    answer: Mapping[str, Any] = json.loads(report.read_text())
    return answer


def places_of(
    demo: Mapping[str, Any], story: Mapping[str, Any], customers: Mapping[str, Any], stack: Mapping[str, Any]
) -> Places:
    start = demo["backward"]["start_node"]
    (tweets,) = [node for node in story["trace"]["nodes"] if node["kind"] == "source"]
    tweet = f"{tweets['node_id']}#{tweets['records'][0]['record_id']}"
    node, record = story["trace"]["start_node"].rpartition("#")[2], story["trace"]["start"][0]["record_id"]
    row = {"node": node, "record": record, "direction": "backward", "whole": "1"}
    wrong = {"node": start.rpartition("#")[2], "record": demo["backward"]["start"][0]["record_id"]}
    return {
        "page": f"{demo['url']}/",
        "demo": demo["application"],
        "demo_sink": start.rpartition("#")[2],
        "demo_row": urllib.parse.urlencode({**wrong, "direction": "backward", "whole": "1"}),
        "clusters": customers["clusters"],
        "clusters_row": customers["row"],
        "tweets": story["application"],
        "tweets_row": urllib.parse.urlencode(row),
        "tweet_way": lineage_cypher.pasted("show/forward", flowId=tweet),
        "tweets_step": lineage_cypher.pasted("show/step", flowId=story["flow_id"], nodeId=story["suspect"]),
        "browser": stack["neo4j"]["browser"],
    }


# -- the pictures -------------------------------------------------------------------------------------


#: Nothing of the page waits for an answer.
_RESTS = """() => !/(Loading|Counting) …/.test(document.body.innerText)
  && !document.querySelector('[aria-busy=true]')"""


def _without_machine(route: Route, names: Places) -> None:
    """The API's answer, with places of nobody's machine in it."""
    answer = route.fetch()
    text = answer.text().replace(names["folder"], "/data").replace(str(ROOT), "/home/ada/lineage-master")
    route.fulfill(response=answer, body=text)


def take(page: Page, picture: Picture, places: Places, out: Path) -> int:
    """Makes one picture; its size in bytes."""
    page.route(re.compile(r"^http://127\.0\.0\.1:\d+/api/"), partial(_without_machine, names=places))
    page.goto(picture.address.format(**places))
    if picture.until:
        page.get_by_text(picture.until).first.wait_for(timeout=_DEADLINE_MS)
    picture.steps(page, places)
    page.wait_for_function(_RESTS, timeout=_DEADLINE_MS)
    image = page.screenshot(animations="disabled", caret="hide")
    if len(image) > MAX_BYTES:
        raise SystemExit(f"screenshots: {picture.name} has {len(image):,} bytes, allowed are {MAX_BYTES:,}")
    (out / f"{picture.name}.png").write_bytes(image)
    return len(image)


def chromium() -> str | None:
    """Path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, CHROMIUMS)), None)


@contextmanager
def opened_pages(path: str) -> Iterator[Callable[[], Page]]:
    """Gives pages with the size and the theme of the pictures, each with nothing kept from others."""
    with sync_playwright() as playwright:
        # The sandbox of Chromium refuses to run for root.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-quic"])

        def opened() -> Page:
            return browser.new_context(
                viewport={"width": WIDTH, "height": HEIGHT},
                color_scheme="light",
                reduced_motion="reduce",
                locale="en-GB",
            ).new_page()

        yield opened
        browser.close()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.screenshots", allow_abbrev=False)
    names = [picture.name for picture in PICTURES]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="make these only")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures", help="write them here")
    options = parser.parse_args(argv)
    path = chromium()
    if path is None:
        parser.exit(1, "screenshots: there is no Chromium: apt-get install chromium\n")
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="screenshots-") as folder:
        with running_demo(Path(folder)) as places, opened_pages(path) as opened:
            for picture in PICTURES:
                if picture.name in options.only:
                    size = take(opened(), picture, places, options.out)
                    sys.stdout.write(f"{options.out / picture.name}.png  {size:,} bytes\n")


if __name__ == "__main__":
    main()
