# SPDX-License-Identifier: BSD-3-Clause
"""A Chromium without a window, driven through two pipes; it reaches this machine and nothing else."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

LONGEST = 900  # seconds that the browser may be silent: the time limit of a test, which ends a wait in vain before
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """The first Chromium on the path, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


# The browser expects descriptors 3 and 4; moved away first, because they may be each other's.
WITH_PIPES = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for number, pipe in zip((3, 4), pipes):
    os.dup2(pipe, number)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page of one browser. Messages are JSON that ends with a null byte (source: --remote-debugging-pipe)."""

    def __init__(self, program, folder):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        arguments = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--window-size=1400,900",
            f"--user-data-dir={folder}",
            # No name leads anywhere: what the page needs has to come from this machine.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--remote-debugging-pipe",
            "about:blank",
        ]
        command = [sys.executable, "-c", WITH_PIPES, str(theirs_in), str(theirs_out), *arguments]
        self._process = subprocess.Popen(
            command, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._to = os.fdopen(ours_out, "wb", buffering=0)
        self._from = os.fdopen(ours_in, "rb", buffering=0)
        self._rest = b""
        self._number = 0
        self._session = None
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method, **parameters):
        """Calls a method of the DevTools protocol, and returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _next(self):
        while b"\0" not in self._rest:
            assert select.select([self._from], [], [], LONGEST)[0], f"the browser says nothing for {LONGEST} s"
            part = self._from.read(1 << 20)
            assert part, "the browser has ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, address):
        """Begins to load a page."""
        self.call("Page.navigate", url=address)

    def value(self, script):
        """What a script gives, or the promise that it gives."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, condition):
        """Waits in the page until an expression is true; the time limit of the test ends a wait that is in vain."""
        script = f"""new Promise((resolve) => {{
            const look = () => {{
              let value = null;
              try {{ value = {condition}; }} catch (error) {{ value = null; }}
              value ? resolve(value) : setTimeout(look, 100);
            }};
            look();
        }})"""
        return self.value(script)

    def press(self, text):
        """Types text into what has the focus."""
        self.call("Input.insertText", text=text)

    def key(self, key, code):
        """Presses and releases one key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, path):
        """Writes what the page shows as PNG."""
        Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self):
        """Ends the browser."""
        self._process.terminate()
        try:
            self._process.wait(120)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._to.close()
        self._from.close()
