#!/usr/bin/env python3
"""colours_test.py: colours of the page's kinds of work stay apart for people with any colour vision.

The colours are those of scenarios/report/page/page.css, light and dark. What a dichromat sees of a colour is by the
matrices of Machado, Oliveira and Fernandes (2009, "A physiologically-based model for simulation of color vision
deficiency", IEEE TVCG 15(6), severity 1.0) on linear sRGB. The distance is CIEDE2000 (Sharma, Wu and Dalal 2005, whose
test data it reproduces). People notice a difference of 2.3 between two patches side by side (Mahy et al. 1994, in CIE
1976 Lab). Parts of a picture lie apart, so that the least distance here is four times that.
"""
import itertools
import math
import pathlib
import re
import unittest

CSS = pathlib.Path(__file__).resolve().parents[2] / "scenarios/report/page/page.css"
LEAST = 4 * 2.3
# Colours that one picture shows beside each other: kinds of tasks in the timeline, shares of a bar, and their ground.
PICTURES = {
    "timeline": ["forward", "backward", "weight-grad", "recompute", "optimizer", "communication", "exposed", "other",
                 "idle"],
    "shares": ["compute", "exposed", "bubble", "paper"],
    "goodput": ["compute", "optimizer", "exposed", "recompute", "bubble"],
}
SEEN = {
    "any": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def colours(css):
    """{"light": {name: "#rrggbb"}, "dark": ...}; the dark page keeps what it does not change."""
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    light, changed = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks[:2])
    return {"light": light, "dark": {**light, **changed}}


def linear(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def lab(rgb):
    to_xyz = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
    white = (0.95047, 1.0, 1.08883)

    def f(t):
        return t ** (1 / 3) if t > (6 / 29) ** 3 else t / (3 * (6 / 29) ** 2) + 4 / 29

    x, y, z = (f(sum(m * c for m, c in zip(row, rgb)) / w) for row, w in zip(to_xyz, white))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen_as(colour, vision):
    rgb = linear(colour)
    return lab([min(1, max(0, sum(m * c for m, c in zip(row, rgb)))) for row in SEEN[vision]])


def ciede2000(first, second):
    (l1, a1, b1), (l2, a2, b2) = first, second
    mean = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    g = 0.5 * (1 - math.sqrt(mean**7 / (mean**7 + 25**7)))
    a1, a2 = a1 * (1 + g), a2 * (1 + g)
    c1, c2 = math.hypot(a1, b1), math.hypot(a2, b2)
    h1, h2 = (math.degrees(math.atan2(b, a)) % 360 if a or b else 0 for a, b in ((a1, b1), (a2, b2)))
    turn = 0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    if c1 * c2 != 0 and h2 - h1 == 180:
        turn = 180
    dl, dc, dh = l2 - l1, c2 - c1, 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2))
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    if c1 * c2 == 0:
        hue = h1 + h2
    elif abs(h1 - h2) <= 180:
        hue = (h1 + h2) / 2
    else:
        hue = (h1 + h2 + (360 if h1 + h2 < 360 else -360)) / 2
    cos = lambda degrees: math.cos(math.radians(degrees))  # noqa: E731
    t = 1 - 0.17 * cos(hue - 30) + 0.24 * cos(2 * hue) + 0.32 * cos(3 * hue + 6) - 0.20 * cos(4 * hue - 63)
    sl = 1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2)
    sc, sh = 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    rc = 2 * math.sqrt(chroma**7 / (chroma**7 + 25**7))
    rt = -math.sin(math.radians(60 * math.exp(-(((hue - 275) / 25) ** 2)))) * rc
    return math.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rt * dc / sc * dh / sh)


class Colours(unittest.TestCase):
    def test_the_distance_is_that_of_the_published_pairs(self):
        for first, second, distance in (
            ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
            ((50, -1, 2), (50, 0, 0), 2.3669),
            ((50, 2.4900, -0.0010), (50, -2.4900, 0.0011), 7.2195),
            ((50, 2.5, 0), (73, 25, -18), 27.1492),
            ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
        ):
            self.assertAlmostEqual(ciede2000(first, second), distance, places=4)

    def test_all_pairs_of_kinds_stay_apart(self):
        for scheme, of in colours(CSS.read_text()).items():
            for picture, names in PICTURES.items():
                for (a, b), vision in itertools.product(itertools.combinations(names, 2), SEEN):
                    apart = ciede2000(seen_as(of[a], vision), seen_as(of[b], vision))
                    with self.subTest(scheme=scheme, picture=picture, vision=vision, pair=(a, b)):
                        self.assertGreater(apart, LEAST, f"{of[a]} and {of[b]}")


if __name__ == "__main__":
    unittest.main()
