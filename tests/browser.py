"""A real browser without a window, for tests of the site: Chromium, driven through a pipe.

The protocol is that of Chrome's developer tools: JSON that ends with a zero byte.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from contextlib import contextmanager

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MISSING = (
    "Tests of the site need Chromium, which is not installed: install it (on Debian and Ubuntu, "
    "`apt install chromium`), or give the path of another build as CHROMIUM=PATH. "
    "`make docs-light` skips these tests where there is none."
)
SECONDS = 60  # that an answer may take


@contextmanager
def open_browser(folder):
    """Open Chromium with a home of its own; without one, skip, or fail with BROWSER_REQUIRED."""
    given = os.environ.get("CHROMIUM")
    program = given or next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        if os.environ.get("BROWSER_REQUIRED"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    browser = Browser(program, folder)
    try:
        yield browser
    finally:
        browser.close()


class Browser:
    """A page in a browser."""

    def __init__(self, program, folder):
        import fcntl  # missing on Windows

        # Chromium reads commands from 3 and writes answers to 4.
        (theirs_in, self._out), (self._in, theirs_out) = os.pipe(), os.pipe()
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
        for fd in (theirs_in, theirs_out):
            os.close(fd)
        # Its own sandbox needs rights that root in a container has not.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        options = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", *sandbox]
        options += ["--no-first-run", "--hide-scrollbars", f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(
            [program, *options, "--remote-debugging-pipe", "about:blank"],
            preexec_fn=lambda: [os.dup2(fd, i) for i, fd in enumerate(theirs, start=3)],
            pass_fds=(3, 4),
            stderr=subprocess.DEVNULL,
        )
        for fd in theirs:
            os.close(fd)
        self._received, self._number, self._session = b"", 0, {}
        self.errors = []  # of scripts, and of what could not be loaded
        self._events = []
        (page,) = self._wait_for_page()
        session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = {"sessionId": session["sessionId"]}
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def _wait_for_page(self):
        while True:
            targets = self.call("Target.getTargets")["targetInfos"]
            if pages := [target for target in targets if target["type"] == "page"][:1]:
                return pages
            time.sleep(0.05)

    def close(self):
        """End the browser."""
        self._process.terminate()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    # ------------------------------------------------------------------------------ the protocol

    def call(self, method, **params):
        """Call a method of the protocol, and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **self._session}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def _next(self):
        end = time.monotonic() + SECONDS
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._in], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            part = os.read(self._in, 2**20)
            assert part, "the browser has ended"
            self._received += part
        text, _, self._received = self._received.partition(b"\0")
        return json.loads(text)

    def _note(self, event):
        kind, params = event.get("method"), event.get("params", {})
        self._events.append(kind)
        if kind == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        if kind == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])

    # ---------------------------------------------------------------------------------- the page

    def get(self, url):
        """Open an address, and wait until it is loaded."""
        self._events.clear()
        self.call("Page.navigate", url=url)
        while "Page.loadEventFired" not in self._events:
            self._note(self._next())

    def run(self, script, *arguments):
        """Run the body of a function in the page, and return what it returns."""
        expression = f"(function() {{ {script} }}).apply(null, {json.dumps(arguments)})"
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait_for(self, script):
        """Run a script until it returns something true, and return that."""
        end = time.monotonic() + SECONDS
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"in vain: {script}"
            time.sleep(0.05)
        return found

    def resize(self, width, height=900):
        """Set the size of the window."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, scheme):
        """Set the color scheme of the system: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def picture(self):
        """Return the window as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def hover(self, selector):
        """Move the mouse to an element, and return its place."""
        place = self.run(
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
            "const b = e.getBoundingClientRect();"
            "return {x: b.x + b.width / 2, y: b.y + b.height / 2}",
            selector,
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **place)
        return place

    def click(self, selector):
        """Click on an element."""
        place = self.hover(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def press(self, key, **more):
        """Press a key, by the name that scripts know it by."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **more)
