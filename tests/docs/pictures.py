#!/usr/bin/env python3
"""pictures.py BUILD FOLDER: draws the pictures of the README into FOLDER.

schedules.svg: step times of seven pipeline schedules, by `slipway study --plot`. page.png: the page of
`slipway simulate --report`, as a browser shows it; it needs chromium and chromium-driver. Exit status 77: they are missing.
"""
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "report"))
import browser as browsers  # noqa: E402


def slipway(build, *arguments):
    subprocess.run([build / "slipway", *arguments], cwd=SOURCE, check=True, stdout=subprocess.DEVNULL)


def draw_schedules(build, path):
    slipway(build, "study", "scenarios/studies/schedules/gpt-4x8.yaml", "--vary",
            "schedule.name=gpipe,1f1b,interleaved-1f1b,chimera,zb-h1,zb-v,dualpipe-v", "--plot", path)  # fmt: skip


def draw_page(build, path):
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        slipway(build, "simulate", "scenarios/examples/llama-8b-64xh100.yaml", "--report", page)
        with browsers.Browser() as browser:
            browser.size(1280, 1080)
            browser.scheme("light")
            browser.open(page)
            browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            browser.picture(path, whole=False)


def main(build, folder):
    folder.mkdir(parents=True, exist_ok=True)
    draw_schedules(build, folder / "schedules.svg")
    if why := browsers.missing():
        print(f"skipped: page.png: {why}")
        sys.exit(77)
    draw_page(build, folder / "page.png")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
