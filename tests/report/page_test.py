#!/usr/bin/env python3
"""page_test.py BUILD COMMAND: makes the page of `slipway COMMAND --report` and uses it in a headless Chromium.

It must load nothing, write no error to the console, zoom and hover by pointer and by keyboard, in light and dark, at
1280 pixels and on a phone. Exit status 77: skipped, without a browser.
SLIPWAY_PICTURES=FOLDER keeps the page and screenshots there.
"""
import os
import subprocess
import sys
import tempfile
import unittest

import browser as browsers

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
examples = os.path.join(root, "scenarios", "examples")


def example(name):
    return os.path.join(examples, name)


class Page(unittest.TestCase):
    build, command, folder = "", "", ""

    @classmethod
    def setUpClass(cls):
        cls.kept = os.environ.get("SLIPWAY_PICTURES")
        cls.path = os.path.join(cls.kept or cls.folder, cls.command + ".html")
        cls.make(cls.path)
        cls.browser = browsers.Browser().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()

    @classmethod
    def slipway(cls, *arguments):
        done = subprocess.run([os.path.join(cls.build, "slipway"), *arguments], cwd=cls.folder, capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"slipway {' '.join(arguments)}: {done.stdout}{done.stderr}")

    @classmethod
    def make(cls, path):
        commands[cls.command](cls, os.path.abspath(path))

    def opened(self, width=1280, scheme="light"):
        self.browser.size(width, 900)
        self.browser.scheme(scheme)
        self.browser.open(self.path)
        self.browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        if self.kept:
            self.browser.picture(os.path.join(self.kept, f"{self.command}-{scheme}-{width}.png"))
        self.assertEqual(self.browser.errors(), [])
        return self.browser

    def test_it_is_small_and_loads_nothing(self):
        self.assertLess(os.path.getsize(self.path), 5_000_000)
        page = self.opened()
        self.assertEqual(page.run("return performance.getEntriesByType('resource').length"), 0)
        self.assertIn("MIT", page.run("return document.querySelector('footer').textContent"))

    def test_the_answer_is_first_and_has_a_value(self):
        page = self.opened()
        self.assertTrue(page.run("return document.querySelector('.card').classList.contains('answer')"))
        for text in page.run("return [...document.querySelectorAll('.card .value')].map((card) => card.textContent)"):
            self.assertRegex(text, r"\S")
            self.assertNotRegex(text, "nan|inf|undefined")
        self.assertNotRegex(page.run("return document.body.innerText"), r"undefined|\bNaN\b")

    def test_it_fits_a_screen_and_a_phone_in_light_and_dark(self):
        for width in (1280, 390):
            for scheme in ("light", "dark"):
                page = self.opened(width, scheme)
                self.assertLessEqual(page.run("return document.documentElement.scrollWidth"), width)

    def test_every_plot_shows_its_points_and_says_what_they_are(self):
        page = self.opened()
        for i in range(page.run("return document.querySelectorAll('.plot').length")):
            with self.subTest(plot=i):
                page.run("document.querySelectorAll('.plot')[arguments[0]].scrollIntoView({block: 'center'})", i)
                x, y, least, most = page.run(
                    "const {plot} = document.querySelectorAll('.plot')[arguments[0]],"
                    " bounds = plot.over.getBoundingClientRect();"
                    "const s = plot.series.findIndex((each, s) => s > 0), at = plot.data[s].findIndex((y) => y !== null);"
                    # A point on the edge of the plot is reached from two pixels inside.
                    "const inside = (at, size) => Math.min(Math.max(at, 2), size - 2);"
                    "return [bounds.left + inside(plot.valToPos(plot.data[0][at], 'x'), bounds.width),"
                    " bounds.top + inside(plot.valToPos(plot.data[s][at], 'y'), bounds.height),"
                    " plot.scales.x.min, plot.scales.x.max]", i)
                self.assertLess(least, most)
                page.pointer(x, y)
                self.assertTrue(page.run("return !document.getElementById('hover').hidden"))
                self.assertRegex(page.run("return document.getElementById('hover').innerText"), r"\w+: .*\d")
        self.assertEqual(page.errors(), [])

    def test_every_timeline_hovers_and_zooms(self):
        page = self.opened()
        for i in range(page.run("return document.querySelectorAll('.timeline').length")):
            with self.subTest(timeline=i):
                self.hovers_and_zooms(page, i)
        self.assertEqual(page.errors(), [])

    def test_every_timeline_tells_of_the_rows_that_are_out_of_view(self):
        page = self.opened()
        frames = "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        for i in range(page.run("return document.querySelectorAll('.timeline').length")):
            with self.subTest(timeline=i):
                box = "const box = document.querySelectorAll('.timeline')[arguments[0]];"
                told = box + "return box.nextElementSibling.textContent"
                hidden = page.run(box + "return box.scrollHeight - box.clientHeight", i)
                if hidden < 40:
                    self.assertEqual(page.run(told, i), "")
                    continue
                self.assertRegex(page.run(told, i), r"\d below\. Scroll")
                page.run(box + "box.scrollTop = box.scrollHeight", i)
                page.run(frames)
                self.assertRegex(page.run(told, i), r"\d above\. Scroll")

    def test_the_parts_of_a_bar_are_told_apart(self):
        page = self.opened()
        for bar in page.run("return [...document.querySelectorAll('.bar')].map((bar) => [...bar.children]"
                            ".map((part) => getComputedStyle(part).backgroundColor))"):
            self.assertEqual(len(bar), len(set(bar)))

    def hovers_and_zooms(self, page, i):
        timeline = "const box = document.querySelectorAll('.timeline')[arguments[0]], {timeline} = box;"
        shown = timeline + "return [timeline.state.from, timeline.state.to]"
        page.run(timeline + "box.scrollIntoView({block: 'center'})", i)
        # The middle of the longest task of the first lane.
        x, y, label = page.run(
            timeline + "const lane = timeline.lanes[0], {view, state} = timeline, bounds = box.getBoundingClientRect();"
            "let at = 0; for (let s = 0; s < lane.count; s++)"
            " if (lane.end[s] - lane.start[s] > lane.end[at] - lane.start[at]) at = s;"
            "const gutter = box.clientWidth < 600 ? 84 : 148, middle = (lane.start[at] + lane.end[at]) / 2;"
            "return [bounds.left + 1 + gutter + middle / view.seconds * (box.clientWidth - gutter),"
            " bounds.top + 27 + lane.y + lane.height / 2, view.heads[lane.head[at]] + view.tails[lane.tail[at]]]", i)
        page.pointer(x, y)
        self.assertIn(label, page.run("return document.getElementById('hover').innerText"))
        self.assertRegex(page.run("return document.getElementById('hover').innerText"), r"\d (µs|ms|s)")
        page.run(timeline + "box.focus()", i)
        whole = page.run(shown, i)
        page.press("+", 187)
        zoomed = page.run(shown, i)
        self.assertLess(zoomed[1] - zoomed[0], whole[1] - whole[0])
        page.press("ArrowRight", 39)
        self.assertGreater(page.run(shown, i)[0], zoomed[0])
        page.press("Home", 36)
        self.assertEqual(page.run(shown, i), whole)
        page.press("n", 78)
        self.assertIn("on the critical path", page.run("return document.getElementById('hover').innerText"))
        page.press("Escape", 27)
        self.assertTrue(page.run("return document.getElementById('hover').hidden"))
        page.devtools("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-120, modifiers=2)
        page.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        zoomed = page.run(shown, i)
        self.assertLess(zoomed[1] - zoomed[0], whole[1] - whole[0])


tiny, llama = example("tiny-llama-cpu.yaml"), example("llama-8b-64xh100.yaml")
studies = os.path.join(root, "scenarios", "studies")


def compare(page, path):
    page.slipway("simulate", tiny, "--trace", "predicted.json")
    page.slipway("execute", tiny, "--set", "run.steps=6", "--out", "run")
    page.slipway("compare", "predicted.json", "run/trace.json", "--report", path)


commands = {
    "simulate": lambda page, path: page.slipway("simulate", llama, "--report", path),
    "memory": lambda page, path: page.slipway("memory", llama, "--changes", "--report", path),
    "plan": lambda page, path: page.slipway("plan", llama, "--keep", "layout.tensor", "--keep", "layout.zero",
                                            "--keep", "schedule.recompute", "--report", path),
    "study": lambda page, path: page.slipway("study", llama, "--vary", "schedule.name=gpipe,1f1b",
                                             "--vary", "schedule.global_batch=32,64,128", "--report", path),
    "goodput": lambda page, path: page.slipway(
        "goodput", llama, "--histories", "50", "--set", "cluster.mtbf_per_node=2000 h", "--set",
        "run.checkpoint_cost=20 s", "--set", "cluster.restart=5 min", "--set", "cluster.repair=4 h", "--report", path),
    "growth": lambda page, path: page.slipway(
        "growth", os.path.join(studies, "lau-2024", "gpt3-175b-8192xh100.yaml"), "--rungs", "2", "--report", path),
    "validate": lambda page, path: page.slipway(
        "validate", os.path.join(studies, "hagemann-2023", "runs.csv"), "--report", path),
    "execute": lambda page, path: page.slipway("execute", tiny, "--set", "run.steps=6", "--confirm", "--out", "run",
                                               "--report", path),
    "compare": compare,
    "confirm": lambda page, path: page.slipway(
        "confirm", tiny, "--set", "run.steps=4", "--baseline", "pipeline 2:", "--case",
        "data 2: layout.pipeline=1 layout.data=2", "--case", "batch 16: schedule.global_batch=16", "--out", "runs",
        "--report", path),
}
executing = {"execute", "compare", "confirm"}  # these need the rank program


def why_skipped():
    if browsers.missing():
        return browsers.missing()
    if Page.command in executing and not os.path.exists(os.path.join(Page.build, "slipway-rank")):
        return "slipway-rank is not built"
    return None


if __name__ == "__main__":
    Page.build, Page.command = os.path.abspath(sys.argv[1]), sys.argv[2]
    if why_skipped():
        print("skipped:", why_skipped())
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="slipway-page-") as Page.folder:
        sys.exit(0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1)
