"""A headless Chromium, driven by chromedriver over the WebDriver protocol; nothing but Python's library.

    with Browser() as browser:
        browser.open("/path/page.html")
        browser.run("return document.title")

Debian: chromium and chromium-driver.
"""
import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request


def missing():
    """The reason why no browser can be started here; None where one can."""
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(absent)} not on PATH (Debian: chromium, chromium-driver)" if absent else None


class Browser:
    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.folder = tempfile.mkdtemp(prefix="slipway-browser-")
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        self.address = f"http://127.0.0.1:{port}"
        self._wait_until_ready()
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--force-device-scale-factor=1", f"--user-data-dir={self.folder}"]
        capabilities = {"alwaysMatch": {"goog:chromeOptions": {"args": arguments, "binary": shutil.which("chromium")},
                                        "goog:loggingPrefs": {"browser": "ALL"}}}
        session = self._ask("POST", "/session", {"capabilities": capabilities})
        self.session = f"/session/{session['sessionId']}"
        self._ask("POST", self.session + "/timeouts", {"script": 300_000})  # a busy machine may take its time
        return self

    def __exit__(self, *_):
        try:
            self._ask("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_until_ready(self):
        for _ in range(300):
            try:
                if self._ask("GET", "/status")["ready"]:
                    return
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.1)
        raise RuntimeError("chromedriver does not answer")

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=400) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, path):
        self._ask("POST", self.session + "/url", {"url": "file://" + os.path.abspath(path)})

    def run(self, script, *arguments):
        return self._ask("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self._ask("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                      mobile=width < 600)

    def scheme(self, name):
        """name: "light" or "dark"."""
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def pointer(self, x, y):
        self.devtools("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key, code):
        text = {"text": key} if len(key) == 1 else {}
        self.devtools("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.devtools("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def errors(self):
        """What the page wrote to its console as an error since the last call."""
        entries = self._ask("POST", self.session + "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def picture(self, path, whole=True):
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
