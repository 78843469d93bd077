#!/usr/bin/env python3
"""Steps over shaped links, predicted and measured: run.py [--build BUILD] [--only TEXT] [--again] [--write]

Calibrates one profile for two ranks and one for four by two runs on links of 50 Mbit/s. Executes every case on other links,
predicts it, and prints tables. Results lie in BUILD/shaped-links/.

--only           executes the cases whose name contains TEXT
--rounds         how often each is executed; its measured step is the median of all steps
--keep-profiles  takes the profiles of an earlier run; cases that are not executed again keep their steps
--again          executes nothing: new predictions for the steps of an earlier run
--write          also writes results.csv, and the tables in README.md

Needs root (tests/hosts/hosts.py). Exit status 1: a case failed; 77: hosts cannot be laid out here.
"""
import argparse
import collections
import csv
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import time

STUDY = pathlib.Path(__file__).resolve().parent
SOURCE = STUDY.parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "hosts"))
import hosts  # noqa: E402

MBIT = 1e6
CALIBRATED_AT = 50 * MBIT
UNSHAPED = 10_000 * MBIT
LOOPBACK = 1e9  # bytes/s between the ranks of a host: not measured, as it is far from deciding anything
WINDOW = 12  # frames under way on a connection where two jobs share links, as on a fabric with credits
CASE_LIMIT_S = 240
CALIBRATION_LIMIT_S = 900

# The layouts: keys of the scenario.
WHOLE = {"schedule.micro_batch": 4}  # the whole batch at once: few large messages
ZERO = [{"layout.data": 2, "layout.zero": stage, "schedule.micro_batch": 2} for stage in range(4)]
TWO = {
    "data 2": ZERO[0], "data 2, ZeRO 1": ZERO[1], "data 2, ZeRO 2": ZERO[2], "data 2, ZeRO 3": ZERO[3],
    "pipeline 2": {"layout.pipeline": 2, "model.layers": 2, "schedule.global_batch": 16, "schedule.micro_batch": 4},
    "tensor 2": {"layout.tensor": 2, **WHOLE}, "context 2": {"layout.context": 2, **WHOLE},
    "tensor 2, sequence": {"layout.tensor": 2, "layout.sequence_parallel": "true", **WHOLE},
    "context 2, ring": {"layout.context": 2, "layout.context_exchange": "ring", **WHOLE},
    "data 2, expert 2": {"layout.data": 2, "layout.expert": 2, "layout.zero": 1},
}  # fmt: skip
FOUR = {
    "data 4": {"layout.data": 4}, "data 4, ZeRO 1": {"layout.data": 4, "layout.zero": 1},
    "data 4, ZeRO 3": {"layout.data": 4, "layout.zero": 3},
    "pipeline 4": {"layout.pipeline": 4, "schedule.global_batch": 16, "schedule.micro_batch": 4},
    "pipeline 2, data 2": {"layout.pipeline": 2, "layout.data": 2, "schedule.global_batch": 8},
    "tensor 2, data 2": {"layout.tensor": 2, "layout.data": 2, "schedule.micro_batch": 2},
    "tensor 4": {"layout.tensor": 4, **WHOLE}, "context 4": {"layout.context": 4, **WHOLE},
    "data 4, expert 4": {"layout.data": 4, "layout.expert": 4, "layout.zero": 1},
}  # fmt: skip


def link_s_per_byte(bits_per_s):
    return 8 / bits_per_s / hosts.FRAME_PAYLOAD


class Case:
    """A job on all hosts; or, with a neighbour, every other rank of them: the neighbour, a job of the same number of ranks,
    has the others, and both share the uplink, or the links of hosts with two ranks."""

    def __init__(self, layout, keys, count, mbit, per_host=1, uplink=0, latency_ms=0, neighbour=None):
        self.layout, self.keys, self.count, self.per_host = layout, keys, count, per_host
        self.mbit, self.uplink, self.latency_ms, self.neighbour = mbit, uplink, latency_ms, neighbour

    @property
    def name(self):
        jobs = self.layout + (f" beside {self.neighbour.layout}" if self.neighbour else "")
        shape = f"{self.count} hosts" + (f" x {self.per_host}" if self.per_host > 1 else "")
        link = f"{self.mbit} Mbit/s" + (f", uplink {self.uplink}" if self.uplink else "")
        return f"{jobs}; {shape}; {link}" + (f"; {self.latency_ms} ms" if self.latency_ms else "")

    @property
    def scenario(self):
        return STUDY / ("experts.yaml" if "expert" in self.layout else "dense.yaml")

    @property
    def places(self):
        """The hosts of the job's ranks, and of its neighbour's."""
        every = [host for host in range(self.count) for _ in range(self.per_host)]
        return (every[0::2], every[1::2]) if self.neighbour else (range(self.count), [])

    def settings(self, profile, host_s_per_byte, latency_s):
        """The scenario's keys, with links of the known rate. `host_s_per_byte`: what a host needs besides the link. With a
        neighbour, the job has half of the nodes, and simulate deals out both jobs' ranks in turn."""
        cluster = {"scope": "cluster", "bandwidth": 1 / (link_s_per_byte(self.mbit * MBIT) + host_s_per_byte),
                   "latency": latency_s + 2 * self.latency_ms / 1e3}  # fmt: skip
        if self.uplink:
            cluster["topology"] = {"kind": "fat-tree", "shape": [self.count // 2], "uplinks": [1],
                                   "link_bandwidth": 1 / link_s_per_byte(self.uplink * MBIT)}  # fmt: skip
        inside = {"scope": "node", "bandwidth": LOOPBACK, "latency": latency_s}
        fabrics = [inside] * (self.per_host > 1) + [cluster]
        nodes = self.count // 2 if self.neighbour else self.count
        keys = {"cluster.machine": profile, "cluster.nodes": nodes, "cluster.gpus_per_node": self.per_host,
                "cluster.fabrics": json.dumps(fabrics).replace('"', ""), **self.keys}  # fmt: skip
        return [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]


def cases():
    some = [Case(layout, keys, 2, mbit) for mbit in (20, 35, 75, 150) for layout, keys in TWO.items()]
    fast = ("data 2", "data 2, ZeRO 3", "tensor 2", "pipeline 2")
    some += [Case(layout, TWO[layout], 2, mbit) for mbit in (500, 1000) for layout in fast]
    some += [Case(layout, keys, 4, mbit) for mbit in (30, 75) for layout, keys in FOUR.items()]
    some += [Case(layout, FOUR[layout], 2, 35, per_host=2)
             for layout in ("data 4", "data 4, ZeRO 1", "data 4, ZeRO 3", "tensor 2, data 2", "pipeline 2, data 2",
                            "data 4, expert 4")]  # fmt: skip
    some += [Case(layout, FOUR[layout], 4, 75, uplink=40)
             for layout in ("data 4", "data 4, ZeRO 3", "pipeline 2, data 2", "data 4, expert 4")]  # fmt: skip
    some += [Case(layout, TWO[layout], 2, 35, latency_ms=ms)
             for ms in (1, 5, 10) for layout in ("data 2", "data 2, ZeRO 3", "pipeline 2", "tensor 2")]  # fmt: skip
    for one, other in (("data 2", "data 2"), ("data 2, ZeRO 3", "tensor 2"), ("pipeline 2", "data 2"),
                       ("context 2, ring", "data 2, expert 2")):  # fmt: skip
        some += side_by_side(one, other, 4, 75, uplink=40) + side_by_side(one, other, 2, 35, per_host=2)
    return some


def side_by_side(layout, neighbour, *links, **more):
    """Each of two jobs beside the other; once where they are alike."""
    one, other = (Case(name, TWO[name], *links, **more) for name in (layout, neighbour))
    one.neighbour, other.neighbour = other, one
    return [one] if layout == neighbour else [one, other]


def check_ended(processes, folder, limit_s):
    ends = hosts.wait_all(processes, limit_s)
    if any(end is None or end[0] != 0 for end in ends):
        errors = "".join(path.read_text() for path in sorted(folder.glob("rank-*.err")))
        raise RuntimeError(f"ranks ended with {ends}: {errors[-2000:]}")


def slipway(build, *words):
    done = subprocess.run([build / "slipway", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"slipway {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def calibrate(build, folder, count):
    """The profile of `count` ranks on as many hosts: micro-benchmarks of all of them at once, and the traces of two runs on
    links of CALIBRATED_AT. One has whole layers as tasks and large messages, the other small ones."""
    profile, measured = folder / f"{count}-hosts.yaml", folder / f"measured-{count}"
    with hosts.Hosts(count, UNSHAPED) as network:
        words = [build / "slipway-rank", "--measure", measured, "--dtype", "float32"]
        check_ended(network.start_ranks(words, outputs=folder), folder, CALIBRATION_LIMIT_S)
    lines = [line for rank in range(count) for line in open(f"{measured}.{rank}")]
    measured.write_text("".join(line for line in lines if "members=" not in line))
    assumed = SOURCE / "scenarios" / "examples" / "machines" / "cpu-test.yaml"
    layouts = {"data": {"layout.data": count, "layout.zero": 1},
               "tensor": {"layout.tensor": count, "layout.sequence_parallel": "true", **WHOLE}}  # fmt: skip
    traces = []
    for port, (name, layout) in enumerate(layouts.items(), 29398):
        case = Case(name, {**layout, "run.steps": 20}, count, CALIBRATED_AT / MBIT)
        execute(build, folder, case, case.settings(assumed, 0, 0), port, None)
        traces += ["--trace", (folder / "run" / "trace.json").replace(folder / f"trace-{count}-{name}.json")]
    print(slipway(build, "calibrate", case.scenario, *case.settings(STUDY / "unmeasured.yaml", 0, 0), "--measured",
                  measured, *traces, "-o", profile), flush=True)  # fmt: skip
    return profile


def link_in(profile):
    """Bandwidth in bytes/s and latency in s of the profile's links between nodes."""
    text = re.search(r"network_link:(.*?)(\n\S|$)", profile.read_text(), re.S)[1]
    return tuple(float(re.search(rf"{key}:\s*([-+.\deE]+)", text)[1]) for key in ("bandwidth", "latency"))


def executing(build, case, settings, out):
    return [build / "slipway", "execute", case.scenario, *settings, "--out", out, "--overwrite", "--json"]


def execute(build, folder, case, settings, port, delay_program, of_neighbour=()):
    """Seconds of each counted step: between two starts of the slowest rank. The neighbour, by settings of its own, trains
    until the job has ended."""
    run = folder / "run"
    ours, theirs = case.places
    with hosts.Hosts(case.count, case.mbit * MBIT, case.uplink * MBIT or None, case.latency_ms / 1e3, delay_program,
                     WINDOW if case.neighbour else None) as network:  # fmt: skip
        beside = []
        if case.neighbour:
            words = executing(build, case.neighbour, [*of_neighbour, "--set", "run.steps=1000"], folder / "neighbour" / "run")
            beside = network.start_ranks(words, 1, port + 1000, folder / "neighbour", theirs)
        words = executing(build, case, settings, run)
        ranks = network.start_ranks(words, 1 if beside else case.per_host, port, folder, ours)
        check_ended(ranks, folder, CASE_LIMIT_S)
        if any(rank.poll() is not None for rank in beside):
            errors = (folder / "neighbour" / "rank-0.err").read_text()
            raise RuntimeError(f"the neighbour ended first: {errors[-2000:]}")
    if network.delay_costs:
        print("       links with latency: " + "; ".join(network.delay_costs), flush=True)
    starts = {}
    for event in json.loads((run / "trace.json").read_text())["traceEvents"]:
        if event.get("ph") == "X":
            key = (event["args"]["step"], event["pid"])
            starts[key] = min(starts.get(key, math.inf), event["args"]["start_s"])
    steps = 1 + max(step for step, _ in starts)
    between = [max(starts[step + 1, rank] - starts[step, rank] for at, rank in starts if at == step)
               for step in range(1, steps - 1)]  # fmt: skip
    return between


def read_steps(path):
    """Seconds of each counted step by the case's name."""
    if not path.exists():
        return {}
    return json.loads(path.read_text())


def delay_program(build):
    program = build / "tests" / "delay"
    return program if program.exists() else None


def strip(error):
    """Of -30 to +30 %, with | at zero."""
    marks = [" "] * 31
    marks[15] = "|"
    marks[round((min(max(error, -0.3), 0.3) + 0.3) * 50)] = "o"
    return "".join(marks)


def aligned(lines, left):
    widths = [max(len(line[c]) for line in lines) for c in range(len(lines[0]))]
    cells = [[cell.ljust(w) if c in left else cell.rjust(w) for c, (cell, w) in enumerate(zip(line, widths))]
             for line in lines]  # fmt: skip
    return "\n".join("  ".join(line).rstrip() for line in cells)


def table(rows):
    lines = [["layout", "hosts", "link", "predicted", "measured", "fastest", "error", "communication",
              "-30 %         0          +30 %"]]  # fmt: skip
    for row in rows:
        milliseconds = [f"{row[key] * 1e3:.0f} ms" for key in ("predicted_s", "measured_s", "fastest_s")]
        lines.append([*row["case"].split("; ", 2), *milliseconds, f"{row['error'] * 100:+.1f} %",
                      f"{row['communication'] * 100:.0f} %", strip(row["error"])])  # fmt: skip
    return aligned(lines, {0, 1, 2, 8})


def network_of(row):
    return row["case"].split("; ", 1)[1]


def on_one_network(rows):
    """The pairs among which a user chooses: layouts on the same hosts and links."""
    networks = collections.defaultdict(list)
    for row in rows:
        networks[network_of(row)].append(row)
    counts = [pairs_in_order(those) for those in networks.values()]
    return f"{sum(right for right, _ in counts)} of {sum(apart for _, apart in counts)}"


def pairs_in_order(rows):
    """Pairs that measured more than 10 % apart: how many of them the prediction has in the same order, and how many they are."""
    apart = right = 0
    for i, one in enumerate(rows):
        for other in rows[i + 1 :]:
            if max(one["measured_s"], other["measured_s"]) > 1.1 * min(one["measured_s"], other["measured_s"]):
                apart += 1
                right += (one["measured_s"] < other["measured_s"]) == (one["predicted_s"] < other["predicted_s"])
    return right, apart


def summary(what, rows):
    errors = [abs(row["error"]) for row in rows]
    fastest = [abs(row["predicted_s"] / row["fastest_s"] - 1) for row in rows]
    within = sum(error <= 0.12 for error in errors) / len(rows)
    return [what, str(len(rows)), f"{statistics.median(errors) * 100:.1f} %", f"{max(errors) * 100:.0f} %",
            f"{within * 100:.0f} %", f"{statistics.median(fastest) * 100:.1f} %",
            "{} of {}".format(*pairs_in_order(rows))]  # fmt: skip


def summaries(rows):
    alone = [row for row in rows if " beside " not in row["case"]]
    groups = {
        "all": rows,
        "at least 60 % communication": [row for row in rows if row["communication"] >= 0.6],
        "2 hosts": [row for row in rows if "; 2 hosts; " in row["case"] and not row["case"].endswith(" ms")],
        "4 hosts": [row for row in rows if "; 4 hosts; " in row["case"] and "uplink" not in row["case"]],
        "2 ranks on each of 2 hosts": [row for row in alone if "; 2 hosts x 2; " in row["case"]],
        "4 hosts, oversubscribed uplink": [row for row in alone if "uplink" in row["case"]],
        "beside another job": [row for row in rows if " beside " in row["case"]],
        "2 hosts, with latency": [row for row in rows if row["case"].endswith(" ms")],
    }
    lines = [["cases", "", "median error", "largest", "within 12 %", "of the fastest step", "pairs in order"]]
    lines += [summary(what, of) for what, of in groups.items() if of]
    return aligned(lines, {0}) + f"\n\npairs in order on one network: {on_one_network(rows)}"


def write_readme(rows):
    text = (STUDY / "README.md").read_text()
    for name, block in (("summary", summaries(rows)), ("cases", table(rows))):
        text = re.sub(rf"(<!-- {name} -->\n```\n).*?(```)", lambda at: at[1] + block + "\n" + at[2], text, flags=re.S)
    (STUDY / "README.md").write_text(text)


def write_rows(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, ["case", "predicted_s", "measured_s", "error", "fastest_s", "communication",
                                       "steps_s"])  # fmt: skip
        writer.writeheader()
        writer.writerows({**row, "steps_s": " ".join(f"{s:.4f}" for s in row["steps_s"])} for row in rows)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--keep-profiles", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


class Study:
    """Profiles, measured steps and predictions of one build, in its folder."""

    def __init__(self, build, keeps):
        self.build, self.keeps = build, keeps
        self.folder = build / "shaped-links"
        (self.folder / "neighbour").mkdir(parents=True, exist_ok=True)
        self.steps = read_steps(self.folder / "steps.json") if keeps else {}
        self.profiles, self.port = {}, 29400

    def settings(self, case):
        ranks = case.count * case.per_host
        if ranks not in self.profiles:
            profile = self.folder / f"{ranks}-hosts.yaml"
            kept = self.keeps and profile.exists()
            self.profiles[ranks] = profile if kept else calibrate(self.build, self.folder, ranks)
        bandwidth, latency = link_in(self.profiles[ranks])
        host_s_per_byte = max(0, 1 / bandwidth - link_s_per_byte(CALIBRATED_AT))
        return case.settings(self.profiles[ranks], host_s_per_byte, latency)

    def measure(self, case, rounds):
        settings, steps = self.settings(case), []
        of_neighbour = self.settings(case.neighbour) if case.neighbour else ()
        for _ in range(rounds):
            self.port += 1
            steps += execute(self.build, self.folder, case, settings, self.port, delay_program(self.build), of_neighbour)
        self.steps[case.name] = steps
        (self.folder / "steps.json").write_text(json.dumps(self.steps, indent=1))

    def predicted(self, case):
        """Seconds of a step, and the share of it in which a rank waits for messages."""
        words = ["simulate", case.scenario, *self.settings(case), "--json"]
        alone = json.loads(slipway(self.build, *words))
        step_s, share = alone["step_time_s"], alone["exposed_comm_share"]
        if not case.neighbour:
            return step_s, share
        theirs = ["--beside-set" if word == "--set" else word for word in self.settings(case.neighbour)]
        place = "alternate-gpus" if case.per_host > 1 else "alternate-nodes"
        both = json.loads(slipway(self.build, *words, "--beside", case.neighbour.scenario, *theirs, "--place", place))
        beside_s = both["beside_s"][0]
        return beside_s, 1 - (1 - share) * step_s / beside_s  # computation is what it was alone

    def row(self, case):
        predicted_s, communication = self.predicted(case)
        steps = self.steps[case.name]
        measured_s = statistics.median(steps)
        return {"case": case.name, "predicted_s": predicted_s, "measured_s": measured_s, "fastest_s": min(steps),
                "communication": communication, "steps_s": steps, "error": predicted_s / measured_s - 1}  # fmt: skip


def measure_all(study, asked):
    """The number of cases that failed. They lose the steps of an earlier run, which would look like new ones."""
    begin, failed = time.monotonic(), 0
    for case in cases():
        if asked.only not in case.name:
            continue
        if case.latency_ms and not delay_program(study.build):
            print(f"left out, build/tests/delay is not built: {case.name}")
            continue
        try:
            study.measure(case, asked.rounds)
        except RuntimeError as error:
            print(f"FAILED {case.name}: {error}", flush=True)
            study.steps.pop(case.name, None)
            failed += 1
            continue
        row = table([study.row(case)]).splitlines()[1]
        print(f"{time.monotonic() - begin:5.0f} s  {row}", flush=True)
    return failed


def main():
    asked = arguments()
    if not asked.again and (reason := hosts.missing()):
        print(f"skipped: {reason}")
        return 77
    study = Study(asked.build.resolve(), asked.again or asked.keep_profiles)
    failed = 0 if asked.again else measure_all(study, asked)
    rows = [study.row(case) for case in cases() if case.name in study.steps]
    write_rows(study.folder / "results.csv", rows)
    print("\n" + table(rows) + "\n\n" + summaries(rows))
    if asked.write:
        write_rows(STUDY / "results.csv", rows)
        write_readme(rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
