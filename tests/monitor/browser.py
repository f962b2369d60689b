"""A real headless Chromium, driven through its DevTools protocol."""

import base64
import json
import os
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.monitor.websocket import WebSocket

NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
_RESPONSE_S = 30.0


def find_chromium() -> str | None:
    """The browser's program, None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser process with one tab; a context manager."""

    def __init__(self, program: str, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [program, *_FLAGS, f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder)},
        )
        self._asked = 0
        self.console: list[str] = []
        self.requests: list[str] = []
        try:
            self._socket = WebSocket(self._tab(time.monotonic() + _RESPONSE_S), _RESPONSE_S)
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._end()

    def open(self, url: str) -> None:
        """Go to an address; `console` starts over."""
        self.console.clear()
        self.requests.clear()
        self.call("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives on the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait_for(self, expression: str, timeout_s: float = 30.0) -> Any:
        """Wait until an expression is truthy and return it; the page itself looks every 50 ms."""
        limit_ms = min(timeout_s, _RESPONSE_S - 5) * 1000
        promise = (
            "new Promise(done => { const until = Date.now() + LIMIT; const look = () => { let found = null;"
            " try { found = (WANTED); } catch {} if (found || Date.now() > until) done(found || null);"
            " else setTimeout(look, 50); }; look(); })"
        ).replace("LIMIT", str(limit_ms))
        promise = promise.replace("WANTED", expression)
        found = self.value(promise)
        if not found:
            raise TimeoutError(f"not within {timeout_s:g} s: {expression}; the page says: {self.value(_TEXT)}")
        return found

    def look(self, width: int, height: int, scheme: str) -> None:
        """Set the window's size and the reader's colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        result = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(result["data"]))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the browser; events that come in between are noted."""
        self._asked += 1
        self._socket.send(json.dumps({"id": self._asked, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.receive())
            if message.get("id") == self._asked:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.console.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.console.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.console.append(json.dumps(params["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def _tab(self, deadline: float) -> str:
        """The address of the tab's debugger, once the browser has written down its port."""
        port_file = self._folder / "DevToolsActivePort"
        while not (port_file.exists() and port_file.read_text().strip()):
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise TimeoutError("the browser did not start")
            time.sleep(0.05)
        port = int(port_file.read_text().split()[0])
        while True:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=_RESPONSE_S) as response:
                tabs = [target for target in json.load(response) if target["type"] == "page"]
            if tabs:
                return str(tabs[0]["webSocketDebuggerUrl"])
            if time.monotonic() > deadline:
                raise TimeoutError("the browser opened no tab")
            time.sleep(0.05)

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)


_TEXT = "document.body.innerText.slice(0, 2000)"
