"""One start of a training in real processes, and what can be seen of it from outside.

execute:   `slipway execute` starts the ranks.
restarted: this module plays torchrun's agent for the bare rank program; it starts every rank with torchrun's variables and
           counts the restarts. Where a rank fails it ends the others.
hosts:     the same with one rank on each host (tests/hosts/hosts.py), where nobody ends the others; a stopped rank is killed.

Each way the command has --resume if-any.
"""
import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests" / "hosts"))
import hosts  # noqa: E402

SCENARIO = SOURCE / "scenarios/examples/tiny-llama-cpu.yaml"
STEPS, EVERY, HEARTBEAT_S = 300, 3, 3
LINK_BITS_PER_S = 100e6  # between hosts
AGENTS_PATIENCE_S = 8    # torchrun's is 30 s


def settings(ranks):
    """The scenario's keys for 2 ranks (two stages) or 4 (two stages, two replicas)."""
    return [f"run.steps={STEPS}", f"run.checkpoint_steps={EVERY}", f"run.heartbeat_seconds={HEARTBEAT_S}",
            f"layout.data={ranks // 2}", f"cluster.gpus_per_node={ranks}"]


def text_of(path):
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def free_port():
    """Below those that the kernel hands out by itself, as scenarios/commands/execute/free_port.h says."""
    while True:
        port = random.randrange(10000, 32768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def state_of(pid):
    """The letter of ps(1); X for a process that has ended and was collected."""
    stat = text_of(f"/proc/{pid}/stat")
    return stat.rsplit(")", 1)[1].split()[0] if stat else "X"


def is_alive(pid):
    """False for a process that has ended, collected or not."""
    return state_of(pid) not in "ZX"


def is_stopped(pid):
    return state_of(pid) == "T"


def children_of(pid):
    """In the order in which they were started."""
    pids = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        pids += [int(word) for word in text_of(task).split()]
    return sorted(pids)


def processes_with(word):
    """Processes that have this word in their command line, but for this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        if word in text_of(entry / "cmdline") and is_alive(int(entry.name)):
            found.append(int(entry.name))
    return found


def listening_ports(pid):
    """The TCP ports at which the process listens."""
    inodes = set()
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            found = re.match(r"socket:\[(\d+)\]", os.readlink(link))
            if found:
                inodes.add(found.group(1))
    except OSError:
        pass
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in text_of(f"/proc/{pid}/net/{table}").splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                ports.add(int(words[1].rsplit(":", 1)[1], 16))
    return sorted(ports)


def hears_hangups():
    """A process that nohup has started ignores SIGHUP, and so would its children."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class NotStarted(Exception):
    """The ranks were not started; its text is what was printed."""


class Training:
    """A folder where one training is started again and again until it is complete."""

    def __init__(self, build, work, name, ranks, way):
        self.build, self.ranks, self.way = Path(build), ranks, way
        self.name = name
        self.folder = work / name / "run"
        self.logs = work / name / "logs"
        self.temporary = work / name / "tmp"
        for path in (self.folder, self.logs, self.temporary):
            path.mkdir(parents=True)
        self.clock = work / name / "clock"
        self.clock.write_bytes(bytes(8))
        self.starts = 0
        self.port = free_port()
        self.bundle = work / f"bundle-{ranks}.slip"
        if way != "execute" and not self.bundle.exists():
            words = [str(self.build / "slipway"), "lower", str(SCENARIO), "-o", str(self.bundle)]
            subprocess.run(words + self.set_words(), check=True, capture_output=True)

    def set_words(self):
        return [word for key in settings(self.ranks) for word in ("--set", key)]

    def start(self, clock=False):
        """`clock`: the processes' time of day is set by set_clock()."""
        self.starts += 1
        return Start(self, clock)

    def set_clock(self, seconds):
        """As if the machine's clock were set forward or back by so many seconds."""
        with open(self.clock, "r+b", buffering=0) as file:
            file.write(seconds.to_bytes(8, "little", signed=True))

    def checkpoints(self):
        names = [path.name for path in (self.folder / "checkpoints").glob("step-*")]
        return sorted(int(name[5:]) for name in names if re.fullmatch(r"step-\d+", name))

    def losses(self):
        """Whole lines of the ranks' losses."""
        lines = text_of(self.folder / "rank-0.losses").split("\n")
        return [line for line in lines[:-1] if line]

    def is_complete(self):
        return self.checkpoints()[-1:] == [STEPS]

    def leftovers(self):
        """Files that no running or ended training has."""
        known = [r"run\.slip", r"rank-\d+\.(records|losses|error|done|slip)", r"failure", r"losses\.csv", r"trace\.json",
                 r"checkpoints", r"checkpoints/step-\d{8}(\.abandoned(-\d+)?)?(/manifest|/shard-\d+\.(index|data))?"]
        names = [str(path.relative_to(self.folder)) for path in self.folder.rglob("*")]
        left = [name for name in names if not any(re.fullmatch(form, name) for form in known)]
        return left + [str(path) for path in self.temporary.rglob("*")]


class Start:
    """The processes of one start."""

    def __init__(self, training, clock=False):
        self.training = training
        self.log = training.logs / f"{training.starts:03d}"
        self.began = time.monotonic()
        self.terminated = False
        self.first_sign = None  # when the first error line or end of a rank was seen, while steps were awaited
        self.first_ended = None  # the rank that the agent saw end with a failure first
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "OMPI"))}
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
            variables.pop(name, None)
        variables["TMPDIR"] = str(training.temporary)
        if clock:
            training.set_clock(0)
            variables.update(LD_PRELOAD=str(training.build / "tests" / "set_clock.so"), SLIPWAY_SET_CLOCK=str(training.clock))
        self.network = None
        if training.way == "execute":
            variables["SLIPWAY_RANK"] = str(training.build / "slipway-rank")
            words = [str(training.build / "slipway"), "execute", str(SCENARIO), *training.set_words()]
            self.processes = [self.process(words, variables, "launcher")]
        else:
            variables.update(WORLD_SIZE=str(training.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(training.port),
                             TORCHELASTIC_RESTART_COUNT=str(training.starts), TORCHELASTIC_RUN_ID="faults",
                             SLIPWAY_TOKEN="of these ranks")
            if training.way == "hosts":
                self.network = hosts.Hosts(training.ranks, LINK_BITS_PER_S).__enter__()
                variables.update(MASTER_ADDR=self.network.address(0), GLOO_SOCKET_IFNAME="eth0")
            words = [str(training.build / "slipway-rank"), str(training.bundle)]
            local = lambda rank: "0" if self.network else str(rank)
            self.processes = [self.process(words, {**variables, "RANK": str(rank), "LOCAL_RANK": local(rank)},
                                           f"rank-{rank}", rank) for rank in range(training.ranks)]

    def process(self, words, variables, name, rank=0):
        words = words + ["--out", str(self.training.folder), "--resume", "if-any"]
        with open(f"{self.log}.{name}.out", "wb") as out, open(f"{self.log}.{name}.err", "wb") as err:
            how = dict(env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=hears_hangups)
            return self.network.start(rank, words, **how) if self.network else subprocess.Popen(words, **how)

    def rank_pids(self, limit_s=60):
        """Waits until all ranks were started."""
        if self.training.way == "restarted":
            return [process.pid for process in self.processes]
        until = time.monotonic() + limit_s
        while time.monotonic() < until and all(process.poll() is None for process in self.processes):
            pids = self.ranks_now()
            if len(pids) >= self.training.ranks:
                return pids[:self.training.ranks]
            time.sleep(0.002)
        raise NotStarted(self.errors() or self.output())

    def ranks_now(self):
        """The ranks' processes that were started so far; on a host under unshare and a shell (hosts.py)."""
        below = [pid for process in self.processes for pid in children_of(process.pid)]
        if not self.network:
            return below
        below = [pid for shell in below for pid in children_of(shell)]
        return [pid for pid in below if text_of(f"/proc/{pid}/comm").strip() == "slipway-rank"]

    def output(self):
        return "".join(text_of(path) for path in sorted(self.log.parent.glob(self.log.name + ".*.out")))

    def errors(self):
        return "".join(text_of(path) for path in sorted(self.log.parent.glob(self.log.name + ".*.err")))

    def steps_printed(self):
        return [int(step) for step in re.findall(r"^step (\d+)/", self.output(), re.M)]

    def resumed_from(self):
        found = re.search(r"from step (\d+): |resumes from \S*/step-0*(\d+)$", self.output(), re.M)
        return int(found.group(1) or found.group(2)) if found else 0

    def is_over(self):
        self.act_as_agent()
        return all(process.poll() is not None for process in self.processes) and not self.left()

    def left(self):
        return processes_with(str(self.training.folder))

    def act_as_agent(self):
        """torchrun's agent ends the others when one rank fails. Between hosts they have to end by themselves."""
        if self.training.way == "execute":
            return
        for rank, process in enumerate(self.processes):
            if process.poll() not in (None, 0) and self.first_ended is None:
                self.first_ended = rank
                self.failed_at = time.monotonic()
        if self.first_ended is None:
            return
        waited = time.monotonic() - self.failed_at
        if self.network:
            if waited > AGENTS_PATIENCE_S:
                for pid in filter(is_stopped, self.left()):
                    os.kill(pid, signal.SIGKILL)
            return
        if waited > 0.1 and not self.terminated:
            self.terminated = True
            self.signal_all(signal.SIGTERM)
        if waited > AGENTS_PATIENCE_S:  # a stopped rank hears nothing else
            self.signal_all(signal.SIGKILL)

    def signal_all(self, number):
        if self.network:  # the process that waits for a rank hears no signal
            for pid in self.ranks_now():
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(pid, number)
            return
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)

    def wait(self, limit_s):
        """Seconds until everything has ended; None where something runs after `limit_s`."""
        began = time.monotonic()
        while time.monotonic() - began < limit_s:
            if self.is_over():
                return time.monotonic() - began
            time.sleep(0.01)
        return None

    def wait_for_step(self, more, limit_s):
        """True when so many steps more than now were printed."""
        wanted = len(self.steps_printed()) + more
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            if len(self.steps_printed()) >= wanted:
                return True
            self.look_for_sign()
            if self.is_over():
                return False
            time.sleep(0.02)
        return False

    def look_for_sign(self):
        if self.first_sign is None and (self.errors() or self.is_over()):
            self.first_sign = time.monotonic()

    def wait_for_sign(self, limit_s):
        """Waits for the first error line, or for the end."""
        until = time.monotonic() + limit_s
        while self.first_sign is None and time.monotonic() < until:
            self.look_for_sign()
            time.sleep(0.02)

    def end_everything(self):
        for pid in self.left():
            os.kill(pid, signal.SIGKILL)
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        if self.network:
            self.network.remove()
