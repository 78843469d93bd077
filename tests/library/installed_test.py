#!/usr/bin/env python3
"""installed_test.py BUILD: installs libslipway, has the project of library/example find and link it, and uninstalls it.

What is checked from outside: CMake's package and pkg-config lead to the same library; what it exports is ours and is what
docs/library.md promises; licences go with it; nothing of it is left behind."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop()).resolve()
ROOT = Path(__file__).resolve().parents[2]


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="slipway-installed-"))
        cls.prefix = cls.folder / "prefix"
        for component in ("library", "program"):
            run("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", component)
        cls.library = next(cls.prefix.glob("lib/**/libslipway.so"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def lines_of_example(self, program):
        lines = run(program).splitlines()
        self.assertRegex(lines[0], r"^1f1b: \d\.\d{3} s a step")
        # Its own schedule is 1F1B again.
        self.assertEqual(lines[2].split(":")[1], lines[0].split(":")[1])
        self.assertTrue(any(line.startswith("refused: layout.tensor:") for line in lines))
        return lines

    def test_a_project_outside_the_tree_finds_it_by_cmake_and_by_pkg_config(self):
        source = self.folder / "example"
        shutil.copytree(ROOT / "library" / "example", source)
        run("cmake", "-S", source, "-B", self.folder / "by-cmake", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", self.folder / "by-cmake")
        by_cmake = self.lines_of_example(self.folder / "by-cmake" / "example")
        environment = dict(os.environ, PKG_CONFIG_PATH=str(next(self.prefix.glob("**/pkgconfig"))))
        flags = run("pkg-config", "--cflags", "--libs", "slipway", env=environment).split()
        version = run("pkg-config", "--modversion", "slipway", env=environment).strip()
        self.assertEqual(version, run(BUILD / "slipway", "--version").split()[1])
        program = self.folder / "by-pkg-config"
        run("c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", source / "main.cpp", "-o", program, *flags,
            f"-Wl,-rpath,{self.library.parent}")
        self.assertEqual(self.lines_of_example(program), by_cmake)

    def test_every_header_stands_alone(self):
        for header in sorted((self.prefix / "include" / "slipway").glob("*.h")):
            text = f"#include <slipway/{header.name}>\n"
            run("c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", self.prefix / "include", "-xc++", "-",
                input=text)

    def test_headers_have_no_type_of_another_library(self):
        for header in (self.prefix / "include" / "slipway").glob("*.h"):
            for included in re.findall(r"#include [<\"]([^>\"]+)", header.read_text()):
                self.assertTrue(included.startswith("slipway/") or re.fullmatch(r"[a-z_]+", included), (header, included))

    def test_exports_symbols_that_are_ours_alone(self):
        symbols = run("nm", "-DC", "--defined-only", self.library).splitlines()
        names = [line.split(" ", 2)[2] for line in symbols if not line.split(" ", 2)[2].startswith("SLIPWAY_")]
        self.assertGreater(len(names), 100)
        for name in names:
            self.assertRegex(name, r"^((typeinfo|typeinfo name|vtable|guard variable) for )?slipway::")
        promised = {name.split("@@")[0] for name in names if "@@SLIPWAY_0" in name}
        for function in ("slipway::predict(", "slipway::plan(", "slipway::explain(", "slipway::task_graph(", "slipway::version("):
            self.assertEqual(len([name for name in promised if name.startswith(function)]), 1, function)
        # The others are of folders inside, and carry a version of their own.
        self.assertFalse([name for name in promised if re.match(r"slipway::(models|schedules|sim|exec|scenarios)::", name)])

    def test_the_program_is_a_client_of_it(self):
        needed = run("readelf", "-d", self.prefix / "bin" / "slipway")
        self.assertIn("libslipway.so", needed)
        answer = run(self.prefix / "bin" / "slipway", "list", "schedules")
        self.assertIn("1f1b", answer)

    def test_licences_go_with_it(self):
        folder = next(self.prefix.glob("share/doc/slipway*"))
        self.assertIn("Apache License", (folder / "LICENSE").read_text())
        self.assertTrue((folder / "licences" / "uPlot").exists())

    def test_uninstalling_leaves_nothing(self):
        prefix = self.folder / "again"
        manifest = self.folder / "manifest"
        manifest.mkdir()
        for component in ("library", "program"):
            run("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)
            shutil.copy(BUILD / f"install_manifest_{component}.txt", manifest)
        run("cmake", "-D", f"BUILD={manifest}", "-P", ROOT / "library" / "uninstall.cmake")
        self.assertEqual([path for path in prefix.rglob("*") if not path.is_dir()], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
