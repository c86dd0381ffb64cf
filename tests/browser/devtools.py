"""A browser as a person uses it, driven over Chromium's own DevTools protocol."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

PATIENCE = 60.0  # seconds for a program to start, an answer to come, a page to become what it should
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
FLAGS = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-sandbox",  # containers
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--window-size=1000,800",
)
Message = dict[str, Any]

# Settles when `good` holds, looking again whenever the document changes.
_UNTIL = """new Promise((resolve, reject) => {
  const look = () => { if (%(good)s) resolve(true); };
  new MutationObserver(look).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
  setTimeout(() => reject(new Error("still not: " + document.body.innerText)), %(milliseconds)d);
  look();
})"""


def on_path() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One connection to a running Chromium; pages are sessions on it."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._last = socket, 0
        self._seen: dict[str, list[Message]] = {}

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Message:
        """Asks, and reads on to the answer. Raises AssertionError with what the browser says is wrong."""
        self._last += 1
        of_session = {"sessionId": session} if session else {}
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": parameters, **of_session}))
        while (message := self._next()).get("id") != self._last:
            pass
        assert "error" not in message, f"{method}: {message['error']}"
        return message["result"]

    def event(self, session: str, method: str) -> Message:
        """The next event of this kind that was not taken yet."""
        seen = self._seen.setdefault(session, [])
        while not (found := next((event for event in seen if event["method"] == method), None)):
            self._next()
        seen.remove(found)
        return found["params"]

    def seen(self, session: str, method: str) -> list[Message]:
        """Every event of this kind so far that was not taken."""
        return [event["params"] for event in self._seen.get(session, []) if event["method"] == method]

    def _next(self) -> Message:
        message = json.loads(self._socket.recv(timeout=PATIENCE + 10))
        if "method" in message:
            self._seen.setdefault(message.get("sessionId", ""), []).append(message)
        return message


class Page:
    """A tab with a storage of its own."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self._session = str(browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        self._call("Page.navigate", url=url)
        self._loaded()

    # -- what a person does
    def click(self, selector: str) -> None:
        place = "const {x, y, width, height} = element.getBoundingClientRect(); return [x + width / 2, y + height / 2];"
        element = f"document.querySelector({json.dumps(selector)})"
        x, y = self.evaluate(f"(() => {{ const element = {element}; element.scrollIntoView(); {place} }})()")
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, selector: str, text: str) -> None:
        self.click(selector)
        self._call("Input.insertText", text=text)

    def insert(self, text: str) -> None:
        """At the cursor of what has the focus."""
        self._call("Input.insertText", text=text)

    def press(self, key: str, code: int, text: str | None = None) -> None:
        """One key; `text`: what it types, if it does."""
        fields = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        typed = {"text": text} if text else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", **fields, **typed)
        self._call("Input.dispatchKeyEvent", type="keyUp", **fields)

    def click_to_another_page(self, selector: str) -> None:
        self.click(selector)
        self._loaded()

    def press_control_and_enter(self) -> None:
        enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "modifiers": 2}
        for kind in ("rawKeyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, **enter)

    def reload(self) -> None:
        self._call("Page.reload")
        self._loaded()

    # -- what a person sees
    def text(self, selector: str) -> str:
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def until(self, good: str, seconds: float = PATIENCE) -> None:
        """Waits for a JavaScript expression to hold; raises AssertionError with the text of the page."""
        self.evaluate(_UNTIL % {"good": good, "milliseconds": seconds * 1000})

    def until_shown(self, selector: str, text: str) -> None:
        self.until(f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(text)})")

    def evaluate(self, expression: str) -> Any:
        answer = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]["exception"]["description"]
        return answer["result"].get("value")

    # -- what happened behind it
    def complaints(self) -> list[str]:
        """Errors and warnings: of the console, of scripts, of the browser about the page."""
        self.evaluate("1")  # everything before it has arrived then
        seen = self._browser.seen
        said = [
            e for e in seen(self._session, "Runtime.consoleAPICalled") if e["type"] in ("error", "warning", "assert")
        ]
        logged = [event["entry"] for event in seen(self._session, "Log.entryAdded")]
        return [
            *(str(event["args"]) for event in said),
            *(str(event["exceptionDetails"]) for event in seen(self._session, "Runtime.exceptionThrown")),
            *(str(entry) for entry in logged if entry["level"] in ("error", "warning")),
        ]

    def requests(self) -> list[str]:
        """The address of everything the page asked for, sockets included."""
        self.evaluate("1")
        sent = [event["request"]["url"] for event in self._browser.seen(self._session, "Network.requestWillBeSent")]
        return [*sent, *(event["url"] for event in self._browser.seen(self._session, "Network.webSocketCreated"))]

    def _call(self, method: str, **parameters: Any) -> Message:
        return self._browser.call(method, self._session, **parameters)

    def _loaded(self) -> None:
        self._browser.event(self._session, "Page.loadEventFired")


@contextmanager
def browser_at(program: str, profile: Path) -> Generator[Browser]:
    """Starts Chromium with an empty profile and ends it, and all it started."""
    with (profile.parent / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # a group of its own, to be ended as one
        )
    try:
        # No pings: their thread draws on `random`, which Hypothesis notices in the tests of the same process.
        with connect(
            _address(process, profile), compression=None, max_size=None, open_timeout=PATIENCE, ping_interval=None
        ) as socket:
            yield Browser(socket)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _address(process: subprocess.Popen[bytes], profile: Path) -> str:
    """Chromium writes the port it took and the path of its socket to a file in its profile."""
    file, deadline = profile / "DevToolsActivePort", time.monotonic() + PATIENCE
    while not file.is_file() or len(lines := file.read_text().splitlines()) < 2:
        assert process.poll() is None, f"Chromium ended: {(profile.parent / 'chromium.log').read_text()[-2000:]}"
        assert time.monotonic() < deadline, "Chromium did not open its DevTools port"
        time.sleep(0.05)
    return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
