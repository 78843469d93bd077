"""Hosts on one machine: network namespaces on switches, over links of a known rate in both directions.

    host 0 ══ eth0 ── port0 ══ switch ══ port1 ── eth0 ══ host 1      host i has the address 10.77.0.(i + 1)

    host 0 ══╗                        ╔══ host 2
             switch 0 ══ uplink ══ switch 1                           with `uplink`: the first half of the hosts is
    host 1 ══╝                        ╚══ host 3                      on switch 0, the other half on switch 1

Each end of a link sends through a token bucket (tc-tbf), so the rate holds in each direction. A rate counts whole
Ethernet frames: of 1514 bytes, 1448 are TCP's. Queues are longer than TCP's windows, so the links lose nothing.
Switches are bridges in namespaces of their own: nothing outside of these namespaces is touched, and they go with them.

With `latency_s`, each link is the program of delay.cpp, which holds frames back for so long in each direction. So a
message between two hosts on one switch takes twice that.

Needs root, ip, tc and unshare, and a kernel with network namespaces, veth, bridges and tbf. missing() names what is not
there.
"""
import os
import shutil
import signal
import subprocess
import time

PREFIX = "slipway-"
LEAST_BURST = 3200  # bytes: two frames
BURST_S = 0.0002    # of the rate, which may pass at once after a pause
SEGMENT_S = 0.001   # of the rate, which TCP hands over at once
QUEUE_BYTES = 32 << 20
# Every kernel has reno; bbr, the default of some, sends next to nothing for 0.2 s in every 10 s. A connection queues little in
# its host, as it does on links a hundred times as fast, so that connections share a link instead of following each other.
TCP = ["net.ipv4.tcp_congestion_control=reno", "net.ipv4.tcp_limit_output_bytes=16384"]
SILENT_S = 6    # after which a rank of another host counts as lost (exec/process/heartbeat.h)
VERDICT_S = 14  # after that: one beat, the suspicion of a broken connection, and a busy machine
FRAME_PAYLOAD = 1448 / 1514  # of a rate, for TCP with time stamps and frames of 1500 bytes


def run(*words, check=True):
    return subprocess.run(words, check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def shape(namespace, device, bits_per_s, verb="add"):
    burst = max(LEAST_BURST, int(bits_per_s / 8 * BURST_S))
    run("ip", "netns", "exec", namespace, "tc", "qdisc", verb, "dev", device, "root", "tbf", "rate",
        f"{int(bits_per_s)}bit", "burst", str(burst), "limit", str(QUEUE_BYTES))  # fmt: skip


def segment_bytes(bits_per_s):
    return min(65536, max(2 * 1514, int(bits_per_s / 8 * SEGMENT_S)))


def missing():
    """Why no hosts can be laid out here; empty: they can."""
    for program in ("ip", "tc", "unshare", "hostname"):
        if not shutil.which(program):
            return f"{program} is not on PATH (Debian: setup/debian.sh test)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        with Hosts(1, 1e9):
            return ""
    except subprocess.CalledProcessError as error:
        return f"{' '.join(error.cmd)}: {error.stdout.strip()}"


def remove_left_behind():
    """Removes namespaces of programs that were killed before they could."""
    for line in run("ip", "netns", "list").splitlines():
        name = line.split()[0] if line else ""
        owner = name[len(PREFIX):].split("-")[0] if name.startswith(PREFIX) else ""
        if owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            end_all_in(name)
            run("ip", "netns", "del", name, check=False)


def end_all_in(namespace):
    for pid in run("ip", "netns", "pids", namespace, check=False).split():
        if pid.isdigit():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass


class Hosts:
    """`count` hosts whose links carry `bits_per_s`; `uplink`: bit/s between two switches; `window`: frames that a
    connection has under way at most, without it as many as TCP likes. Use it in a `with`."""

    made = 0  # by this process, for names

    def __init__(self, count, bits_per_s, uplink=None, latency_s=0, delay_program=None, window=None):
        Hosts.made += 1
        self.names = [f"{PREFIX}{os.getpid()}-{Hosts.made}-host{i}" for i in range(count)]
        self.switches = [f"{PREFIX}{os.getpid()}-{Hosts.made}-switch{i}" for i in range(2 if uplink else 1)]
        self.bits_per_s, self.uplink = bits_per_s, uplink
        self.latency_s, self.delay_program, self.window = latency_s, delay_program, window
        self.processes, self.relays, self.delay_costs = [], [], []

    def __enter__(self):
        remove_left_behind()
        # A signal that would end this program must not leave namespaces behind.
        self.before = signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(SystemExit(143)))
        try:
            self.lay_out()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def lay_out(self):
        for name in self.switches + self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "netns", "exec", name, "sysctl", "-q", "-w", *TCP)
        for switch in self.switches:
            run("ip", "-n", switch, "link", "add", "bridge", "type", "bridge", "stp_state", "0")
            run("ip", "-n", switch, "link", "set", "bridge", "up")
        for host, name in enumerate(self.names):
            self.join(name, "eth0", self.switch_of(host), f"port{host}", self.bits_per_s)
            run("ip", "-n", name, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
            if self.window:
                run("ip", "-n", name, "route", "change", "10.77.0.0/24", "dev", "eth0", "proto", "kernel", "scope", "link",
                    "src", self.address(host), "cwnd", "lock", str(self.window))  # fmt: skip
            run("ip", "-n", self.switch_of(host), "link", "set", f"port{host}", "master", "bridge")
        if self.uplink:
            self.join(self.switches[0], "uplink", self.switches[1], "uplink", self.uplink)
            for switch in self.switches:
                run("ip", "-n", switch, "link", "set", "uplink", "master", "bridge")

    def join(self, left, left_device, right, right_device, bits_per_s):
        if self.latency_s:
            relay = subprocess.Popen([self.delay_program, left, left_device, right, right_device,
                                      str(int(self.latency_s * 1e6))], stdout=subprocess.PIPE, text=True,
                                     start_new_session=True)  # fmt: skip
            self.relays.append(relay)
            if relay.stdout.readline().strip() != "ready":
                raise RuntimeError(f"{self.delay_program} did not start")
        else:
            run("ip", "link", "add", left_device, "netns", left, "type", "veth", "peer", "name", right_device, "netns",
                right)  # fmt: skip
        for namespace, device in ((left, left_device), (right, right_device)):
            shape(namespace, device, bits_per_s)
            run("ip", "-n", namespace, "link", "set", device, "gso_max_size", str(segment_bytes(bits_per_s)), "up")

    def remove(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for relay in self.relays:
            relay.terminate()
            self.delay_costs.append(relay.communicate()[0].strip())
        existing = run("ip", "netns", "list")
        for name in self.names + self.switches:
            if name in existing:
                end_all_in(name)
                run("ip", "netns", "del", name, check=False)
        if getattr(self, "before", None) is not None:
            signal.signal(signal.SIGTERM, self.before)

    def switch_of(self, host):
        return self.switches[host * len(self.switches) // len(self.names)]

    @staticmethod
    def address(host):
        return f"10.77.0.{host + 1}"

    def start(self, host, words, apart=True, **options):
        """A program on a host, in a session of its own; options as for subprocess.Popen.

        `apart`: with a host name and process ids of its own, as on another machine. Without it, programs on all hosts
        see each other's processes.
        """
        # The shell stays: the first process of a host hears no signal that it has no handler for.
        own = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
               'hostname "$0" && "$@"; exit $?', f"host{host}"] if apart else []  # fmt: skip
        process = subprocess.Popen(["ip", "netns", "exec", self.names[host], *own, *map(str, words)],
                                   start_new_session=True, **options)  # fmt: skip
        self.processes.append(process)
        return process

    def start_ranks(self, words, per_host=1, port=29400, outputs=None, on=None, unset=(), **options):
        """One process of `words` for each rank, on the hosts `on` (all) in order, with the variables that torchrun would
        set, a token and the interface, but for those of `unset`. Their output goes to OUTPUTS/rank-N.out and .err, if
        given."""
        ranks, on = [], list(on or range(len(self.names)))
        for rank in range(len(on) * per_host):
            host = on[rank // per_host]
            variables = {"RANK": rank, "WORLD_SIZE": len(on) * per_host, "LOCAL_RANK": rank % per_host,
                         "MASTER_ADDR": self.address(on[0]), "MASTER_PORT": port,
                         "GLOO_SOCKET_IFNAME": "eth0", "SLIPWAY_TOKEN": "of these hosts"}  # fmt: skip
            own = dict(options, env={**os.environ, **{name: str(value) for name, value in variables.items()}})
            for name in unset:
                own["env"].pop(name, None)
            if outputs:
                with open(f"{outputs}/rank-{rank}.out", "w") as out, open(f"{outputs}/rank-{rank}.err", "w") as err:
                    ranks.append(self.start(host, words, per_host == 1, stdout=out, stderr=err, **own))
            else:
                ranks.append(self.start(host, words, per_host == 1, **own))
        return ranks

    def cut(self, host):
        """Takes a host's link down, as a pulled plug does."""
        run("ip", "-n", self.switch_of(host), "link", "set", f"port{host}", "down")

    def heal(self, host):
        run("ip", "-n", self.switch_of(host), "link", "set", f"port{host}", "up")

    def slow(self, host, bits_per_s):
        """Gives a host's link another rate, both ways."""
        shape(self.names[host], "eth0", bits_per_s, "change")
        shape(self.switch_of(host), f"port{host}", bits_per_s, "change")

    def lose(self, host, share):
        """Drops this share of the frames that arrive at a host, at random. Needs nft."""
        rules = f"""table netdev loss {{
  chain arriving {{
    type filter hook ingress device eth0 priority 0
    numgen random mod 10000 < {int(share * 10000)} drop
  }}
}}"""
        run("ip", "netns", "exec", self.names[host], "nft", rules)


def wait_all(processes, limit_s):
    """Exit statuses and the seconds until each ended; None for one that has not ended."""
    begin, ends = time.monotonic(), [None] * len(processes)
    while time.monotonic() - begin < limit_s and None in ends:
        for i, process in enumerate(processes):
            if ends[i] is None and process.poll() is not None:
                ends[i] = (process.returncode, time.monotonic() - begin)
        time.sleep(0.02)
    return ends
