"""The kinds of faults. Each function injects one into a running start, at a random moment, and returns what must follow.

A third of the moments lie in the first second, while the ranks load their libraries and meet, a third among the steps.
"""
import contextlib
import ctypes
import errno
import os
import resource
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field

from runs import AGENTS_PATIENCE_S, HEARTBEAT_S, hosts, listening_ports, text_of


@dataclass
class Injected:
    """What was done, and what must follow."""
    what: str
    culprit: int | None = None     # the rank that must be named; None: any, or none
    must_say: str = ""             # besides, this expression
    may_go_on: bool = False        # a fault that a run may survive
    must_go_on: bool = False       # or has to
    shows_later: bool = False      # when the run next writes; its time counts from the first sign of it
    limit_s: float = 10            # until everything has ended
    undo: list = field(default_factory=list)  # called when everything has ended


def send(pid, number):
    """A rank that has ended hears nothing: then the training was complete before the fault."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def wait_for_moment(start, chance):
    """Sleeps to a random moment of the start and returns it: of the first second, of the first four, or among the steps."""
    kind = chance.randrange(3)
    if kind == 2:
        start.wait_for_step(chance.randrange(1, 25), 60)
    until = (time.monotonic() if kind == 2 else start.began) + chance.uniform(0, (1, 4, 0.3)[kind])
    while time.monotonic() < until and not start.is_over():
        time.sleep(min(0.02, max(0.0, until - time.monotonic())))
    return time.monotonic() - start.began


def rank_at_a_moment(start, chance):
    """The ranks' processes, the moment to which this has waited, and one of the ranks."""
    pids = start.rank_pids()
    moment = wait_for_moment(start, chance)
    return pids, moment, chance.randrange(len(pids))


def killed(number):
    def inject(start, chance):
        pids, moment, rank = rank_at_a_moment(start, chance)
        send(pids[rank], number)
        return Injected(f"{signal.Signals(number).name} to rank {rank} after {moment:.2f} s", culprit=rank)
    return inject


def stopped(start, chance):
    pids, moment, rank = rank_at_a_moment(start, chance)
    send(pids[rank], signal.SIGSTOP)
    # The heartbeat's time, or what a rank waits for others at the start; then the launcher's or agent's patience.
    return Injected(f"SIGSTOP to rank {rank} after {moment:.2f} s", culprit=rank,
                    limit_s=max(HEARTBEAT_S, 0 if start.training.way == "execute" else AGENTS_PATIENCE_S) + 10)


def slow(start, chance):
    """One rank gets a tenth of its time for three seconds."""
    pids, moment, rank = rank_at_a_moment(start, chance)
    until = time.monotonic() + 3
    while time.monotonic() < until and not start.is_over():
        send(pids[rank], signal.SIGSTOP)
        time.sleep(0.09)
        send(pids[rank], signal.SIGCONT)
        time.sleep(0.01)
    return Injected(f"rank {rank} slow after {moment:.2f} s", must_go_on=True)


def out_of_memory(start, chance):
    pids, moment, rank = rank_at_a_moment(start, chance)
    pages = int((text_of(f"/proc/{pids[rank]}/statm") or "0").split()[0])
    limit = int(pages * resource.getpagesize() * chance.uniform(0.5, 1.02))
    if pages > 0:
        resource.prlimit(pids[rank], resource.RLIMIT_AS, (limit, limit))
    return Injected(f"rank {rank} may have {limit >> 20} MiB after {moment:.2f} s", culprit=rank, may_go_on=True)


def clock_set(start, chance):
    """The time of day jumps twice (set_clock.cpp)."""
    start.rank_pids()
    moment = wait_for_moment(start, chance)
    seconds = [chance.choice([-86400, -30, 30, 86400]) for _ in range(2)]
    for each in seconds:
        start.training.set_clock(each)
        start.wait_for_step(1, 60)
    return Injected(f"clock set by {seconds[0]} s, then by {seconds[1]} s after {moment:.2f} s", must_go_on=True)


def parent_killed(start, chance):
    start.rank_pids()
    moment = wait_for_moment(start, chance)
    start.processes[0].kill()
    return Injected(f"SIGKILL to the launcher after {moment:.2f} s")


def interrupted(start, chance):
    start.rank_pids()
    moment = wait_for_moment(start, chance)
    number = chance.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    start.processes[0].send_signal(number)
    return Injected(f"{number.name} to the launcher after {moment:.2f} s", must_say="interrupted")


def mounted(*words):
    subprocess.run(["mount", *words], check=True, capture_output=True)


def unmounted(path):
    subprocess.run(["umount", str(path)], check=True, capture_output=True)


def disk_full(start, chance):
    """The folder is a small file system of its own (faults.py); a file takes all but a little of it."""
    start.rank_pids()
    moment = wait_for_moment(start, chance)
    junk = start.training.folder / "rank-9.records"  # a name that is no leftover
    left = chance.choice([0, 4096, 300_000, 2_000_000])
    with open(junk, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 65536)
        except OSError as error:
            assert error.errno == errno.ENOSPC
        file.truncate(max(0, file.tell() - left))
    return Injected(f"disk full but for {left} bytes after {moment:.2f} s", must_say="No space left|disk full", shows_later=True,
                    undo=[junk.unlink])


def read_only(start, chance):
    """From now on no checkpoint can be written: a file system that is only read lies over their folder."""
    start.rank_pids()
    start.wait_for_step(1, 60)  # rank 0 would not find the checkpoint that it goes on from
    moment = wait_for_moment(start, chance)
    folder = start.training.folder / "checkpoints"
    folder.mkdir(exist_ok=True)
    mounted("-t", "tmpfs", "-o", "ro", "none", str(folder))
    # A rank that has just made a checkpoint's folder finds that it is gone: what is mounted is empty.
    said = "Read-only file system|cannot write .*: No such file or directory"
    return Injected(f"checkpoints read-only after {moment:.2f} s", must_say=said, shows_later=True,
                    undo=[lambda: unmounted(folder)])


GREETING = bytes([0]) + (0x3C85F7CE).to_bytes(4, "little")  # what a client of c10d's store sends first


def stranger_bytes(chance):
    """Bytes of somebody who does not belong to the run."""
    return chance.choice([
        chance.randbytes(chance.randrange(1, 5000)),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0" * 64, b"\xff" * 64,
        GREETING[:3],                                                # and no more
        GREETING + bytes([1]) + (1 << 62).to_bytes(8, "little"),     # a key of 4 EiB
        GREETING + bytes([6]) + (1 << 40).to_bytes(8, "little"),     # a wait for 10^12 keys
        GREETING + chance.randbytes(200),
        b"",
    ])


@contextlib.contextmanager
def network_of(pid):
    """Sockets that this thread opens are in the process's network."""
    libc, of_network = ctypes.CDLL(None, use_errno=True), 0x40000000  # CLONE_NEWNET
    with open("/proc/self/ns/net") as own, open(f"/proc/{pid}/ns/net") as theirs:
        if os.fstat(own.fileno()).st_ino == os.fstat(theirs.fileno()).st_ino:
            yield
            return
        if libc.setns(theirs.fileno(), of_network) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            libc.setns(own.fileno(), of_network)


def stranger(start, chance):
    """Connections to every port of the ranks; half stay open until the end."""
    pids = start.rank_pids()
    moment = wait_for_moment(start, chance)
    until, open_ones, sent = time.monotonic() + 3, [], 0
    latest = until + 60  # a busy machine: the ranks do not listen yet
    while time.monotonic() < (until if sent >= 20 else latest) and not start.is_over():
        for pid in pids:
            for port in listening_ports(pid):
                address = start.network.address(pids.index(pid)) if start.network else "127.0.0.1"
                try:
                    with network_of(pid):
                        connection = socket.create_connection((address, port), timeout=0.5)
                    connection.sendall(stranger_bytes(chance))
                    sent += 1
                    if chance.random() < 0.5:
                        open_ones.append(connection)
                    else:
                        connection.close()
                except OSError:
                    pass
        time.sleep(0.05)
    return Injected(f"{sent} strangers' connections after {moment:.2f} s", must_go_on=True,
                    undo=[connection.close for connection in open_ones])


# Of the link of a rank's host.

def link_cut(start, chance):
    _, moment, rank = rank_at_a_moment(start, chance)
    start.network.cut(rank)
    # The cut host takes the others for lost, and of two nobody knows which one was cut.
    named = rank if start.training.ranks > 2 else "[01]"
    return Injected(f"link of host {rank} cut after {moment:.2f} s", limit_s=hosts.SILENT_S + hosts.VERDICT_S,
                    must_say=f"rank {named} failed: (no heartbeat for|it hosts the store)|rank {named} did not join|"
                             "the store of this run")


def link_cut_briefly(start, chance):
    _, moment, rank = rank_at_a_moment(start, chance)
    start.network.cut(rank)
    time.sleep(chance.uniform(0.1, 2))
    start.network.heal(rank)
    return Injected(f"link of host {rank} cut for a moment after {moment:.2f} s", must_go_on=True)


def link_slow(start, chance):
    _, moment, rank = rank_at_a_moment(start, chance)
    start.network.slow(rank, 5e6)
    return Injected(f"link of host {rank} slow after {moment:.2f} s", must_go_on=True)


def link_lossy(start, chance):
    _, moment, rank = rank_at_a_moment(start, chance)
    start.network.lose(rank, 0.01)
    return Injected(f"link of host {rank} loses frames after {moment:.2f} s", must_go_on=True)


# Damage to the newest checkpoint, between two starts. Each returns the file that must be named.

def truncated(checkpoint, chance):
    path = chance.choice(sorted(checkpoint.iterdir()))
    os.truncate(path, chance.randrange(path.stat().st_size))
    return path


def altered(checkpoint, chance):
    path = chance.choice(sorted(checkpoint.iterdir()))
    with open(path, "r+b") as file:
        at = chance.randrange(path.stat().st_size)
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ (1 << chance.randrange(8))]))
    return path


def missing(checkpoint, chance):
    path = chance.choice(sorted(checkpoint.iterdir()))
    path.unlink()
    return path


def no_manifest(checkpoint, chance):
    path = checkpoint / "manifest"
    path.write_bytes(b"")
    return path


RUNNING = {
    "killed (SIGKILL)": killed(signal.SIGKILL),
    "killed (SIGSEGV)": killed(signal.SIGSEGV),
    "ended (SIGTERM)": killed(signal.SIGTERM),
    "stopped (SIGSTOP)": stopped,
    "slow": slow,
    "out of memory": out_of_memory,
    "launcher killed": parent_killed,
    "launcher interrupted": interrupted,
    "disk full": disk_full,
    "read-only": read_only,
    "strangers": stranger,
    "clock set": clock_set,
    "link cut": link_cut,
    "link cut for a moment": link_cut_briefly,
    "link slow": link_slow,
    "link lossy": link_lossy,
}
DAMAGE = {
    "checkpoint truncated": truncated,
    "checkpoint altered": altered,
    "shard missing": missing,
    "manifest empty": no_manifest,
}
NEEDS_MOUNTS = {"disk full", "read-only"}
NEEDS_CLOCK = {"clock set"}
NEEDS_LAUNCHER = {"launcher killed", "launcher interrupted"}
NEEDS_HOSTS = {"link cut", "link cut for a moment", "link slow", "link lossy"}


def ways_of(kind):
    """How the training may be started (runs.py). The file systems that are mounted are not seen on hosts."""
    if kind in NEEDS_LAUNCHER:
        return ["execute"]
    if kind in NEEDS_HOSTS:
        return ["hosts"]
    return ["execute", "restarted"] + ([] if kind in NEEDS_MOUNTS else ["hosts"])
