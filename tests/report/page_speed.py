#!/usr/bin/env python3
"""page_speed.py BUILD [PAGE]: milliseconds a frame while the timeline of a page pans and zooms in a headless Chromium.

Without PAGE it makes one: `slipway simulate` of 64 pipeline ranks with about 10,000 tasks each, all 64 different.
Each frame moves the view and draws it. Chromium draws on the CPU here, at most 60 times a second. It prints the median and
the 95th percentile of the time between frames, and of the drawing alone, for the whole step and for parts of it; and the
CPU time of the page's process a frame, which other programs on the machine do not lengthen.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

import browser as browsers

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

settings = ["layout.pipeline=64", "layout.tensor=1", "layout.data=1", "schedule.micro_batch=1",
            "schedule.global_batch=1650", "cluster.nodes=8", "layout.sequence_parallel=false"]

frames = """
const box = document.querySelector('.timeline'), {timeline} = box, {view} = timeline;
const part = arguments[0], zooms = arguments[1], count = 40;
timeline.move(view.seconds * 0.3, view.seconds * (0.3 + part));
return new Promise((done) => {
  const dates = [], drawing = [];
  function frame(date) {
    dates.push(date);
    if (dates.length > count) {
      for (let i = 0; i < 10; i++) {
        const before = performance.now();
        timeline.draw();
        drawing.push(performance.now() - before);
      }
      return done({dates, drawing});
    }
    const back = dates.length % 20 < 10;
    if (zooms) timeline.zoom(back ? 0.93 : 1 / 0.93);
    else timeline.pan(back ? 0.01 : -0.01);
    box.scrollTop += back ? 6 : -6;
    requestAnimationFrame(frame);
  }
  requestAnimationFrame(frame);
});
"""


def make(build, path):
    example = os.path.join(root, "scenarios", "examples", "llama-70b-1024xh100.yaml")
    command = [os.path.join(build, "slipway"), "simulate", example, "--report", path]
    for setting in settings:
        command += ["--set", setting]
    begun = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"made in {time.monotonic() - begun:.1f} s")


def cpu_seconds(browser):
    metrics = browser.devtools("Performance.getMetrics")["metrics"]
    return next(each["value"] for each in metrics if each["name"] == "ProcessTime")


def text(name, values):
    values = sorted(values)
    return f"{name} {statistics.median(values):6.1f} ms (95 %: {values[int(len(values) * 0.95)]:6.1f} ms)"


def main():
    if browsers.missing():
        print("skipped:", browsers.missing())
        return 77
    with tempfile.TemporaryDirectory(prefix="slipway-page-") as folder:
        path = sys.argv[2] if len(sys.argv) > 2 else os.path.join(folder, "page.html")
        if len(sys.argv) == 2:
            make(os.path.abspath(sys.argv[1]), path)
        with browsers.Browser() as browser:
            browser.size(1280, 900)
            browser.open(path)
            browser.devtools("Performance.enable")
            spans, rows, note = browser.run(
                "const {lanes, view} = document.querySelector('.timeline').timeline;"
                "return [lanes.reduce((sum, lane) => sum + lane.count, 0), view.rows.length,"
                " document.querySelector('.timeline').parentElement.querySelector('.note').textContent]")
            print(f"{os.path.getsize(path) / 1e6:.2f} MB, {rows} rows, {spans} spans. {note}")
            for part in (1, 0.1, 0.01):
                for zooms in (False, True):
                    before = cpu_seconds(browser)
                    found = browser.run(frames, part, zooms)
                    cpu = (cpu_seconds(browser) - before) / (len(found["dates"]) + len(found["drawing"]))
                    between = [b - a for a, b in zip(found["dates"], found["dates"][1:])]
                    print(f"{'zoom' if zooms else 'pan ':4} {part * 100:6.1f} % of the step:",
                          text("a frame", between) + ",", text("its drawing", found["drawing"]) + f", CPU {cpu * 1e3:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
