"""Runs the fuzz targets of a build folder: fuzz.py BUILD [--seconds N] [--jobs N] [--targets A,B].

Each target runs for N seconds, JOBS of them at a time. What libFuzzer learns stays in BUILD/fuzz/corpus, so that a later run
goes on from there. Findings are written to BUILD/fuzz/findings. The last lines are a table: executions, seconds, inputs of the
corpus, findings. Exit status 1: there is a finding. 77: the targets are not built.

A finding is a crash, a report of a sanitizer, an exception that the reader's header does not name, more than 10 s, or more
than 2 GB.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=2048"]
SANITIZERS = {"ASAN_OPTIONS": "quarantine_size_mb=16:detect_leaks=0:allocator_may_return_null=0",
              "UBSAN_OPTIONS": "print_stacktrace=1"}


def words_of(folder):
    """Words of the seeds as a dictionary of libFuzzer."""
    words = set()
    for path in sorted(folder.iterdir()):
        words.update(re.findall(rb"[A-Za-z_][A-Za-z0-9_.-]{2,30}", path.read_bytes()))
    return b"".join(b'"' + word + b'"\n' for word in sorted(words))


def folder(path):
    path.mkdir(parents=True, exist_ok=True)
    return path


class Run:
    """One target: `seconds` of libFuzzer over its corpus."""

    def __init__(self, program, build, seconds, scratch):
        self.name, self.program, self.seconds = program.name, program, seconds
        self.corpus = folder(build / "fuzz" / "corpus" / self.name)
        self.findings = folder(build / "fuzz" / "findings" / self.name)
        self.seeds = folder(build / "fuzz" / "seeds" / self.name)
        self.environment = dict(os.environ, **SANITIZERS, TMPDIR=scratch)

    def start(self):
        subprocess.run([self.program], env=dict(self.environment, SLIPWAY_FUZZ_SEEDS=self.seeds), check=True,
                       stdout=subprocess.DEVNULL)
        dictionary = self.seeds.with_suffix(".dict")
        dictionary.write_bytes(words_of(self.seeds))
        longest = max(path.stat().st_size for path in self.seeds.iterdir())
        known = {path.name for path in self.findings.iterdir()}
        folders = [self.corpus, self.seeds]
        found = TREE / "tests" / "fuzz" / "found" / self.name
        if found.is_dir():
            folders.append(found)
        command = [self.program, *folders, *LIMITS, f"-max_total_time={self.seconds}", "-print_final_stats=1", "-detect_leaks=0",
                   f"-max_len={max(4096, 2 * longest)}", f"-dict={dictionary}", f"-artifact_prefix={self.findings}/"]
        begun = time.monotonic()
        with open(self.findings.with_suffix(".log"), "wb") as log:
            self.status = subprocess.run(command, env=self.environment, stdout=log, stderr=log).returncode
        self.took = time.monotonic() - begun
        self.log = self.findings.with_suffix(".log")
        text = self.log.read_text(errors="replace")
        counted = re.search(r"stat::number_of_executed_units: +(\d+)", text)
        last = re.findall(r"^#(\d+)\t", text, re.MULTILINE)
        self.executions = int(counted.group(1)) if counted else int(last[-1]) if last else 0
        slow = "slow-unit-"  # not a finding before it reaches the limit
        self.found = sorted(path for path in self.findings.iterdir()
                            if path.name not in known and not path.name.startswith(slow))
        return self

    def row(self):
        return [self.name, f"{self.executions:,}", f"{self.took:.0f}", f"{sum(1 for _ in self.corpus.iterdir()):,}",
                str(max(len(self.found), int(self.status != 0)))]


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))) for row in rows)


def programs_in(build, names):
    programs = sorted(path for path in (build / "fuzz").glob("*") if path.is_file() and os.access(path, os.X_OK))
    unknown = set(names) - {path.name for path in programs}
    if programs and unknown:
        sys.exit(f"fuzz.py: no target {', '.join(sorted(unknown))}; allowed: {', '.join(path.name for path in programs)}")
    return [path for path in programs if not names or path.name in names]


def main():
    parser = argparse.ArgumentParser(description="Runs the fuzz targets of a build folder.")
    parser.add_argument("build", type=pathlib.Path, help="folder that `make fuzz` configured")
    parser.add_argument("--seconds", type=int, default=60, help="of each target (default 60)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at a time")
    parser.add_argument("--targets", default="", help="their names, with commas; all of them without it")
    options = parser.parse_args()
    build = options.build.resolve()
    programs = programs_in(build, [name for name in options.targets.split(",") if name])
    if not programs:
        print(f"skipped: {build} has no fuzz targets; `make fuzz` builds them where Clang is installed")
        return 77
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="slipway-fuzz-", dir=memory) as scratch, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = []
        for done in concurrent.futures.as_completed(
                pool.submit(Run(program, build, options.seconds, scratch).start) for program in programs):
            run = done.result()
            print(f"{run.name}: {run.executions:,} executions" + (f", FOUND, see {run.log}" if run.status else ""), flush=True)
            runs.append(run)
    runs.sort(key=lambda run: run.name)
    total = sum(run.executions for run in runs)
    findings = sum(max(len(run.found), int(run.status != 0)) for run in runs)
    print(table([["target", "executions", "seconds", "corpus", "findings"], *(run.row() for run in runs),
                 ["all", f"{total:,}", f"{sum(run.took for run in runs):.0f}", "", str(findings)]]))
    for run in runs:
        for path in run.found:
            print(f"found by {run.name}: {path}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
