"""A headless Chromium driven over its debugging pipe (Chrome DevTools Protocol), with nothing but Python.

Messages are JSON ended by a NUL byte, on file descriptors 3 (to the browser) and 4 (from it). Waits are for
states, with a deadline, and a failure shows what the page held.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
DEADLINE_S = 30
_FLAGS = [
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
    "--window-size=1300,1000",
]


def find() -> str | None:
    """Path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def opened(path: str) -> Iterator[Page]:
    """A browser with one empty page; both end with the block."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        to_browser, commands = os.pipe()
        answers, from_browser = os.pipe()
        root = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's sandbox refuses to run for root
        # The shell gives the pipes the numbers that Chromium expects.
        script = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        process = subprocess.Popen(
            ["/bin/bash", "-c", script, path, *_FLAGS, *root, f"--user-data-dir={profile}"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Page(commands, answers)
        finally:
            os.close(commands)  # Chromium leaves when its pipe is closed
            try:
                process.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(answers)


class Page:
    """One page. `errors` collects what its console calls an error and every exception."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol and its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """Value of a JavaScript expression; a promise is awaited."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def text(self) -> str:
        return self.evaluate("document.body?.innerText ?? ''")

    def until(self, expression: str) -> None:
        """Wait until the expression holds."""
        deadline = time.monotonic() + DEADLINE_S
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise AssertionError(f"never came true: {expression}\n{self.text()}\n{self.errors}")
            time.sleep(0.02)  # between two looks, not for a state

    def until_text(self, text: str) -> None:
        self.until(f"(document.body?.innerText ?? '').includes({json.dumps(text)})")

    def click(self, selector: str, text: str = "") -> None:
        """Click the first element that fits the selector and holds the text, once it is there."""
        found = (
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            f".find((each) => each.textContent.includes({json.dumps(text)}))"
        )
        self.until(f"Boolean({found})")
        self.evaluate(f"{found}.dispatchEvent(new MouseEvent('click', {{bubbles: true, cancelable: true}}))")

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], DEADLINE_S)
            chunk = os.read(self._answers, 1 << 16) if ready else b""
            if not chunk:
                raise AssertionError("Chromium does not answer")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        event = json.loads(message)
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(event["params"]["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.errors.append(event["params"]["entry"]["text"])
        return event
