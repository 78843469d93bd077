#!/usr/bin/env python3
"""faults.py BUILD [--count N] [--seed S] [--kinds WORD,...] [--short] [--work DIR]: injects faults into trainings.

A training is started with one command, --resume if-any, until it is complete; into each start a fault is injected. So every
fault's last whole checkpoint is resumed by the next start, and at the end the losses must be those of an undisturbed run, to
the last bit. Prints one table and each violation. Exit status: 0 none, 1 some, 77 none, but some kinds were left out.

The trainings are of 2 and 4 ranks, started by `slipway execute`, as torchrun's agent starts bare ranks, and on as many hosts
(runs.py).
"""
import argparse
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import kinds
from runs import EVERY, STEPS, NotStarted, Training

IN_NAMESPACE = "SLIPWAY_FAULTS_NAMESPACE"
ENDING_S = 15  # after SIGTERM to every rank
SHORT = ["killed (SIGKILL)", "stopped (SIGSTOP)", "launcher killed", "disk full", "checkpoint altered", "strangers"]


class Row:
    """What is known of the faults of one kind."""

    def __init__(self):
        self.seconds, self.count, self.named, self.of, self.went_on, self.lost, self.left = [], 0, 0, 0, 0, 0, 0


class Faults:
    def __init__(self, build, work, seed, short, ways):
        self.build, self.work, self.chance, self.short, self.ways = build, work, random.Random(seed), short, ways
        self.rows, self.violations = defaultdict(Row), []
        self.trainings, self.made, self.references = {}, 0, {}

    def reference(self, ranks):
        """The losses of an undisturbed run."""
        if ranks not in self.references:
            training = Training(self.build, self.work, f"undisturbed-{ranks}", ranks, "execute")
            start = training.start()
            if start.wait(300) is None or start.processes[0].returncode != 0:
                sys.exit(f"the undisturbed run of {ranks} ranks failed:\n{start.errors()}")
            self.references[ranks] = training.losses()
            print(f"undisturbed: {ranks} ranks, {STEPS} steps, {time.monotonic() - start.began:.1f} s", flush=True)
        return self.references[ranks]

    def training(self, ranks, way, kind):
        """The one that goes on, or a new one where that is complete."""
        small = kind in kinds.NEEDS_MOUNTS
        key = (ranks, way, small)
        current = self.trainings.get(key)
        if current is None or current.is_complete():
            self.close(key)
            self.made += 1
            current = Training(self.build, self.work, f"{self.made:03d}", ranks, way)
            if small:
                kinds.mounted("-t", "tmpfs", "-o", f"size={40 if ranks == 2 else 60}m", "none", str(current.folder))
            self.trainings[key] = current
        return current

    def close(self, key):
        """Where it is complete its losses are compared; a small file system is given back."""
        training = self.trainings.pop(key, None)
        if training is None:
            return
        if training.is_complete() and training.losses() != self.reference(training.ranks):
            self.violations.append(f"{training.folder}: the losses are not those of the undisturbed run")
        if key[2]:
            kinds.unmounted(training.folder)

    def violation(self, start, what, why):
        self.violations.append(f"{what}: {why}\n    logs: {start.log}.*")
        print(f"  VIOLATION {self.violations[-1]}", flush=True)

    def one(self, kind, ranks, way):
        """Injects one fault of this kind into the next start."""
        self.reference(ranks)
        training = self.training(ranks, way, kind)
        row = self.rows[kind]
        row.count += 1
        if kind in kinds.DAMAGE:
            self.damage(kind, row, training)
        else:
            self.disturb(kind, row, training)
        reference, losses = self.references[ranks], training.losses()
        if losses != reference[:len(losses)]:
            self.violations.append(f"{kind}: {training.folder}: losses differ from the undisturbed run's")

    # --- a fault in a running start ----------------------------------------------------------------

    def disturb(self, kind, row, training):
        had = training.checkpoints()
        start = training.start(clock=kind in kinds.NEEDS_CLOCK)
        try:
            injected = kinds.RUNNING[kind](start, self.chance)
        except NotStarted as why:
            self.violation(start, kind, f"nothing was started: {why}")
            start.end_everything()
            return
        began = time.monotonic()
        try:
            self.judge(kind, row, training, start, injected, began)
        finally:
            start.end_everything()
            for undo in injected.undo:
                undo()
        resumed = start.resumed_from()
        if had and start.steps_printed() and resumed != had[-1]:
            row.lost += 1
            self.violation(start, injected.what, f"resumed from step {resumed}, not from {had[-1]}")
        if had and training.checkpoints()[-1:] < had[-1:]:
            row.lost += 1
            self.violation(start, injected.what, f"checkpoint of step {had[-1]} is lost")

    def judge(self, kind, row, training, start, injected, began):
        if injected.must_go_on or injected.may_go_on:
            if self.goes_on(kind, row, training, start, injected):
                return
            began = start.first_sign or began  # where memory is short, a rank lives until it next asks for some
        if injected.shows_later:
            start.wait_for_sign(120)
            began = start.first_sign or began
        seconds = start.wait(injected.limit_s + 10)
        if seconds is None:
            self.violation(start, injected.what, f"something runs after {injected.limit_s + 10:.0f} s")
            return
        seconds = time.monotonic() - began
        if STEPS in start.steps_printed():  # it was complete before the fault, which counts as none
            row.count -= 1
            return
        row.seconds.append(seconds)
        if seconds > injected.limit_s:
            self.violation(start, injected.what, f"ended after {seconds:.1f} s, not within {injected.limit_s:.0f}")
        self.check_name(row, training, start, injected)
        self.check_what_is_left(kind, row, training, start, injected)

    def goes_on(self, kind, row, training, start, injected):
        """True where the run survived; then it is ended."""
        was_complete = STEPS in start.steps_printed()
        complete = lambda: start.is_over() and all(process.returncode == 0 for process in start.processes)
        if start.wait_for_step(5, 120) or complete():
            if was_complete:  # before the fault, which counts as none
                row.count -= 1
                return True
            row.went_on += 1
            start.signal_all(signal.SIGTERM)
            if start.wait(ENDING_S) is None:
                self.violation(start, injected.what, f"it went on, but something runs {ENDING_S} s after SIGTERM")
            self.check_what_is_left(kind, row, training, start, injected)
            return True
        if injected.must_go_on:
            self.violation(start, injected.what, "the run did not go on: " + last_lines(start))
        return False

    def check_name(self, row, training, start, injected):
        if injected.culprit is None and not injected.must_say:
            return
        row.of += 1
        said = start.errors() + start.output()
        name = f"rank {injected.culprit}"
        if injected.must_say:
            named = re.search(injected.must_say, said) is not None
        elif training.way == "execute":
            last = [line for line in said.splitlines() if line.startswith("slipway execute: ")]
            named = bool(last) and re.match(rf"slipway execute: {name}\b", last[0]) is not None
        else:  # an agent of this machine has seen who ended first, hosts have not; no survivor may name another
            blamed = re.findall(r"rank (\d+) failed: (?!ended by SIGTERM)", said)
            seen = training.way != "hosts" and start.first_ended == injected.culprit
            of_store = "the store of this run" in said  # rank 0 has it: without it nobody can tell more
            named = seen or name in said or (of_store and injected.culprit == 0)
            named = named and all(int(rank) == injected.culprit or f"rank {rank} failed: {name} did not join" in said or
                                  of_store for rank in blamed)
        row.named += named
        if not named:
            self.violation(start, injected.what, "the culprit is not named: " + last_lines(start))

    def check_what_is_left(self, kind, row, training, start, injected):
        printed, kept = start.steps_printed(), len(training.losses())
        if printed and kept < max(printed) and kind != "disk full":
            self.violation(start, injected.what, f"losses of {kept} steps are kept, {max(printed)} were done")
        pending = r".*\.partial(/.*)?|replaced-\d+(/.*)?"  # the next start's, where no launcher was left to do it
        files = training.leftovers()
        if kind == "launcher killed" or training.way != "execute":
            files = [name for name in files if not re.fullmatch(pending, name)]
        if files:
            row.left += 1
            self.violation(start, injected.what, f"left behind: {' '.join(files[:5])}")

    # --- a damaged checkpoint ----------------------------------------------------------------------

    def damage(self, kind, row, training):
        while len(training.checkpoints()) < 2:  # so far
            start = training.start()
            while len(training.checkpoints()) < 2 and not start.is_over():
                time.sleep(0.02)
            start.signal_all(signal.SIGKILL)
            start.wait(10)
            start.end_everything()
        had = training.checkpoints()
        checkpoint = training.folder / f"checkpoints/step-{had[-1]:08d}"
        path = kinds.DAMAGE[kind](checkpoint, self.chance)
        start, what = training.start(), f"{kind}: {path.relative_to(training.folder)}"
        start.wait_for_step(1, 60)
        row.of += 1
        if path.name in start.output():
            row.named += 1
        else:
            self.violation(start, what, "the damaged file is not named: " + last_lines(start))
        if start.resumed_from() == had[-2]:
            row.went_on += 1
        else:
            row.lost += 1
            self.violation(start, what, f"resumed from {start.resumed_from()}, not from {had[-2]}: " + last_lines(start))
        start.wait_for_step(2 * EVERY, 30)
        start.signal_all(signal.SIGTERM)
        if start.wait(20) is None:
            self.violation(start, what, "something runs 20 s after SIGTERM")
        start.end_everything()
        shutil.rmtree(str(checkpoint) + ".abandoned", ignore_errors=True)

    # --- all -----------------------------------------------------------------------------------------

    def run(self, chosen, count):
        begin = time.monotonic()
        number = 0
        while sum(row.count for row in self.rows.values()) < count and number < 2 * count:
            kind = chosen[number % len(chosen)]
            turn = number // len(chosen)
            ranks = 2 if self.short else (2, 4)[turn % 2]
            ways = [way for way in kinds.ways_of(kind) if way in self.ways]
            way = ways[(number if self.short else turn // 2) % len(ways)]
            at = time.monotonic()
            self.one(kind, ranks, way)
            number += 1
            print(f"{sum(row.count for row in self.rows.values())}/{count}  {kind}, {ranks} ranks, {way}: "
                  f"{time.monotonic() - at:.1f} s", flush=True)
        for key in list(self.trainings):
            self.complete(key)
        injected = sum(row.count for row in self.rows.values())
        if injected < count:
            self.violations.append(f"{injected} faults hit a run, not {count}: the others came after its end")
        print(f"{injected} faults in {(time.monotonic() - begin) / 60:.1f} min\n")

    def complete(self, key):
        """Starts the training without faults until it is complete."""
        training = self.trainings[key]
        for _ in range(3):
            if training.is_complete():
                break
            start = training.start()
            if start.wait(300) is None:
                self.violation(start, "the last start", "it does not end")
            start.end_everything()
        if not training.is_complete():
            self.violation(start, "the last start", "the training is not complete: " + last_lines(start))
        self.close(key)

    def table(self):
        rows = [("fault", "count", "median s", "max s", "named", "went on", "checkpoints lost", "leftovers")]
        for kind, row in self.rows.items():
            times = (f"{statistics.median(row.seconds):.2f}", f"{max(row.seconds):.2f}") if row.seconds else ("-", "-")
            rows.append((kind, str(row.count), *times, f"{row.named} of {row.of}" if row.of else "-", str(row.went_on),
                         str(row.lost), str(row.left)))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                                   for i, (cell, width) in enumerate(zip(row, widths))) for row in rows)


def last_lines(start):
    return " | ".join((start.errors() or start.output()).strip().splitlines()[-3:])


def may_mount():
    """Goes on in a namespace of its own, so that file systems mounted here are nobody else's."""
    if IN_NAMESPACE in os.environ:
        return os.environ[IN_NAMESPACE] == "yes"
    probe = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    os.environ[IN_NAMESPACE] = "yes" if probe.returncode == 0 else "no"
    if probe.returncode == 0:
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--count", type=int, help="number of faults (200; with --short one of each)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", help="words of the kinds, with commas; all")
    parser.add_argument("--short", action="store_true", help="six faults, two ranks: a minute")
    parser.add_argument("--work", help="folder for runs and logs; a temporary one that is removed where nothing is wrong")
    given = parser.parse_args()
    mounts = may_mount()
    every = SHORT if given.short else [*kinds.RUNNING, *kinds.DAMAGE]
    chosen = [kind for kind in every if not given.kinds or any(word in kind for word in given.kinds.split(","))]
    left_out = [kind for kind in chosen if kind in kinds.NEEDS_MOUNTS and not mounts]
    for kind in left_out:
        print(f"skipped: {kind}: no file system can be mounted here (it takes root)")
        chosen.remove(kind)
    ways = ["execute", "restarted", "hosts"]
    if why := kinds.hosts.missing():
        print(f"skipped: faults on hosts: {why}")
        ways.remove("hosts")
        left_out.append("hosts")
    chosen = [kind for kind in chosen if set(kinds.ways_of(kind)) & set(ways)]
    if not chosen:
        return 77
    work = Path(given.work or tempfile.mkdtemp(prefix="slipway-faults-"))
    faults = Faults(given.build, work, given.seed, given.short, ways)
    print(f"seed {given.seed}, folder {work}", flush=True)
    try:
        faults.run(chosen, given.count or (len(chosen) if given.short else 200))
    finally:
        for key in list(faults.trainings):
            faults.close(key)
        print(faults.table())
    print("\n".join(f"violation: {each}" for each in faults.violations) or "no violation", flush=True)
    if not faults.violations and not given.work:
        shutil.rmtree(work)
    return 1 if faults.violations else 77 if left_out else 0


if __name__ == "__main__":
    sys.exit(main())
