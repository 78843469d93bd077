#!/usr/bin/env python3
"""hosts_test.py BUILD [UNITTEST ARGUMENTS]: training on several hosts. Exit status 77: hosts cannot be laid out here.

The hosts are network namespaces with process ids of their own, on links that are cut, slow or lossy (hosts.py).
"""
import csv
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import hosts

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCENARIO = SOURCE / "scenarios" / "examples" / "tiny-llama-cpu.yaml"
MBIT = 1e6
STARTING_S = 120   # on a busy machine
build = None


def settings(**keys):
    return [word for key, value in keys.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]


def losses(folder):
    with open(folder / "losses.csv", newline="") as file:
        return [row["loss"] for row in csv.DictReader(file)]


def wait_for(path, text, limit_s=STARTING_S):
    begin = time.monotonic()
    while time.monotonic() - begin < limit_s:
        if path.exists() and text in path.read_text():
            return True
        time.sleep(0.05)
    return False


class TrainingOnHosts(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory(prefix="slipway-hosts-")
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)

    def on_one_machine(self, keys):
        run = self.folder / "one"
        subprocess.run([build / "slipway", "execute", SCENARIO, *keys, "--out", run], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        return losses(run)

    def train(self, network, keys, meanwhile=lambda: None, unset=()):
        """`slipway execute` on every host; all must end well. Their losses."""
        run = self.folder / "hosts"
        words = [build / "slipway", "execute", SCENARIO, *keys, "--out", run]
        ranks = network.start_ranks(words, outputs=self.folder, unset=unset)
        meanwhile()
        ends = hosts.wait_all(ranks, STARTING_S)
        for rank, end in enumerate(ends):
            self.assertIsNotNone(end, f"rank {rank} has not ended")
            self.assertEqual(end[0], 0, (self.folder / f"rank-{rank}.err").read_text())
        return losses(run)

    def start_endless(self, network, keys):
        bundle = self.folder / "run.slip"
        subprocess.run([build / "slipway", "lower", SCENARIO, *keys, *settings(run__steps=1000000), "-o", bundle],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        ranks = network.start_ranks([build / "slipway-rank", bundle, "--out", self.folder], outputs=self.folder)
        self.assertTrue(wait_for(self.folder / "rank-0.out", "step 3/"), (self.folder / "rank-0.err").read_text())
        return ranks


class SeveralHosts(TrainingOnHosts):
    def test_two_and_four_hosts_have_the_losses_of_one_machine(self):
        for count, keys in ((2, settings(layout__data=2, layout__pipeline=1, layout__zero=3)),
                            (4, settings(layout__pipeline=2, layout__tensor=2))):  # fmt: skip
            with self.subTest(count=count):
                steps = settings(run__steps=5)
                alone = self.on_one_machine(keys + steps + settings(cluster__gpus_per_node=count))
                with hosts.Hosts(count, 200 * MBIT) as network:
                    apart = self.train(network, keys + steps + settings(cluster__nodes=count, cluster__gpus_per_node=1))
                self.assertEqual(apart, alone)
                shutil.rmtree(self.folder / "hosts")
                shutil.rmtree(self.folder / "one")

    def test_messages_take_the_way_to_the_first_host_where_no_interface_is_named(self):
        keys = settings(layout__pipeline=2, run__steps=5)
        alone = self.on_one_machine(keys)
        with hosts.Hosts(2, 200 * MBIT) as network:
            apart = self.train(network, keys + settings(cluster__nodes=2, cluster__gpus_per_node=1),
                               unset=["GLOO_SOCKET_IFNAME"])  # fmt: skip
        self.assertEqual(apart, alone)

    def bundle(self):
        bundle = self.folder / "run.slip"
        keys = settings(layout__pipeline=2, cluster__nodes=2, cluster__gpus_per_node=1, run__steps=5)
        subprocess.run([build / "slipway", "lower", SCENARIO, *keys, "-o", bundle], check=True, stdout=subprocess.DEVNULL)
        return bundle

    def test_a_first_host_that_knows_itself_by_its_loopback_is_refused_with_the_remedy(self):
        """As Debian writes /etc/hosts: a machine's own name is 127.0.1.1 there, and its address on all others."""
        with hosts.Hosts(2, 200 * MBIT) as network:
            for rank, address in enumerate(("127.0.1.1", network.address(0))):
                (self.folder / f"names-{rank}").write_text(f"127.0.0.1 localhost\n{address} first\n")
            own_names = 'mount --bind "$0-$RANK" /etc/hosts && MASTER_ADDR=first exec "$@"'
            words = ["sh", "-c", own_names, self.folder / "names", build / "slipway-rank", self.bundle(), "--out", self.folder]
            ranks = network.start_ranks(words, outputs=self.folder, unset=["GLOO_SOCKET_IFNAME"])
            ends = hosts.wait_all(ranks, STARTING_S)
        errors = [(self.folder / f"rank-{rank}.err").read_text() for rank in range(2)]
        for rank, end in enumerate(ends):
            self.assertIsNotNone(end, f"rank {rank} has not ended: {errors}")
            self.assertEqual(end[0], 1, errors)
        self.assertIn("this host reaches MASTER_ADDR first by its own loopback (127.0.0.1)", errors[0])
        self.assertIn("set GLOO_SOCKET_IFNAME", errors[0])

    def test_no_group_forms_without_the_token_of_the_run(self):
        bundle = self.bundle()
        for unset, said in ((["SLIPWAY_TOKEN"], "the run has no token"), ([], "SLIPWAY_TOKEN is not that of the run")):
            with self.subTest(said=said), hosts.Hosts(2, 200 * MBIT) as network:
                words = [build / "slipway-rank", bundle, "--out", self.folder, "--connect-timeout", "5"]
                if not unset:
                    words = ["sh", "-c", 'SLIPWAY_TOKEN=$RANK exec "$@"', "sh", *words]
                ranks = network.start_ranks(words, outputs=self.folder, unset=unset)
                for rank, end in enumerate(hosts.wait_all(ranks, STARTING_S)):
                    self.assertIsNotNone(end, f"rank {rank} has not ended")
                    self.assertEqual(end[0], 1)
                errors = [(self.folder / f"rank-{rank}.err").read_text() for rank in range(2)]
                self.assertIn(said, errors[1])
                self.assertNotIn("step 1/", (self.folder / "rank-0.out").read_text())

    def test_a_cut_link_ends_every_rank_and_names_the_lost_one(self):
        for count, cut in ((2, 1), (4, 2)):
            with self.subTest(count=count), hosts.Hosts(count, 100 * MBIT) as network:
                keys = settings(cluster__nodes=count, cluster__gpus_per_node=1, layout__pipeline=2)
                ranks = self.start_endless(network, keys)
                network.cut(cut)
                ends = hosts.wait_all(ranks, hosts.SILENT_S + hosts.VERDICT_S)
                for rank, end in enumerate(ends):
                    error = (self.folder / f"rank-{rank}.err").read_text()
                    self.assertIsNotNone(end, f"rank {rank} of {count} has not ended")
                    self.assertEqual(end[0], 1, error)
                    # The cut host does not hear the store any more. It reads the verdict in the shared folder.
                    self.assertIn(f"rank {cut} failed: no heartbeat for ", error)
                    self.assertIn(f"on host host{cut}", error)

    def test_a_link_that_becomes_slow_loses_nothing(self):
        keys = settings(layout__pipeline=2, run__steps=20)
        alone = self.on_one_machine(keys)
        with hosts.Hosts(2, 100 * MBIT) as network:
            def meanwhile():
                self.assertTrue(wait_for(self.folder / "rank-0.out", "step 2/"))
                network.slow(1, 5 * MBIT)
            apart = self.train(network, keys + settings(cluster__nodes=2, cluster__gpus_per_node=1), meanwhile)
        self.assertEqual(apart, alone)

    def test_a_link_that_is_cut_for_a_moment_loses_nothing(self):
        keys = settings(layout__pipeline=2, run__steps=20)
        alone = self.on_one_machine(keys)
        with hosts.Hosts(2, 10 * MBIT) as network:
            def meanwhile():
                self.assertTrue(wait_for(self.folder / "rank-0.out", "step 2/"))
                network.cut(1)
                time.sleep(2)
                network.heal(1)
            apart = self.train(network, keys + settings(cluster__nodes=2, cluster__gpus_per_node=1), meanwhile)
        self.assertEqual(apart, alone)


class LossyLinks(TrainingOnHosts):
    def test_a_link_that_drops_frames_loses_nothing(self):
        keys = settings(layout__pipeline=2, run__steps=5)
        alone = self.on_one_machine(keys)
        with hosts.Hosts(2, 100 * MBIT) as network:
            for host in range(2):
                network.lose(host, 0.01)
            apart = self.train(network, keys + settings(cluster__nodes=2, cluster__gpus_per_node=1))
        self.assertEqual(apart, alone)


class LaidOut(unittest.TestCase):
    def test_hosts_leave_nothing_behind_even_when_their_program_fails(self):
        names = []
        with self.assertRaises(KeyError):
            with hosts.Hosts(2, 100 * MBIT) as network:
                names = network.names + network.switches
                network.start(0, ["sleep", "1000"])
                raise KeyError
        left = hosts.run("ip", "netns", "list")
        self.assertEqual([name for name in names if name in left], [])

    def test_a_message_between_two_hosts_has_the_latency_of_two_links(self):
        delay, latency_s = build / "tests" / "delay", 0.01
        ask = ("import socket,sys,time; s=socket.create_connection((sys.argv[1], 5000)); n=10; b=time.monotonic()\n"
               "for _ in range(n): s.sendall(b'?'); s.recv(1)\nprint((time.monotonic()-b)/n)")  # fmt: skip
        answer = ("import socket; l=socket.create_server(('', 5000)); print('ready', flush=True); s=l.accept()[0]\n"
                  "while s.recv(1): s.sendall(b'!')")  # fmt: skip
        with hosts.Hosts(2, 100 * MBIT, latency_s=latency_s, delay_program=delay) as network:
            answering = network.start(1, [sys.executable, "-c", answer], stdout=subprocess.PIPE, text=True)
            self.assertEqual(answering.stdout.readline().strip(), "ready")
            asking = network.start(0, [sys.executable, "-c", ask, network.address(1)], stdout=subprocess.PIPE, text=True)
            round_s = float(asking.communicate()[0])
        self.assertGreater(round_s, 4 * latency_s)
        self.assertLess(round_s, 3 * 4 * latency_s)  # a busy machine
        self.assertRegex(" ".join(network.delay_costs), r"\d+ frames, [\d.]+ s of processor time")

    def test_a_link_carries_its_rate_in_both_directions_and_no_more(self):
        with hosts.Hosts(2, 40 * MBIT) as network:
            self.carry(network, 40 * MBIT, [(0, 1), (1, 0)])

    def test_switches_are_joined_by_the_uplink_alone(self):
        with hosts.Hosts(4, 80 * MBIT, uplink=20 * MBIT) as network:
            self.carry(network, 20 * MBIT, [(0, 2), (3, 1)])
            self.carry(network, 80 * MBIT, [(0, 1), (3, 2)])

    def carry(self, network, rate, ways):
        """Bytes from host to host, which may not be faster than the rate; nor much slower, or another link would decide."""
        size = int(rate / 20)
        send = ("import socket,sys; s=socket.create_connection((sys.argv[1], 5000));"
                "s.sendall(bytes(int(sys.argv[2]))); s.close()")  # fmt: skip
        take = ("import socket,time; l=socket.create_server(('', 5000)); print('ready', flush=True); s=l.accept()[0];"
                "b=time.monotonic(); n=0\nwhile d:=s.recv(1<<16): n+=len(d)\nprint(n, time.monotonic()-b)")  # fmt: skip
        for source, goal in ways:
            taking = network.start(goal, [sys.executable, "-c", take], stdout=subprocess.PIPE, text=True)
            self.assertEqual(taking.stdout.readline().strip(), "ready")
            network.start(source, [sys.executable, "-c", send, network.address(goal), size]).wait()
            taken, seconds = taking.communicate()[0].split()
            self.assertEqual(int(taken), size)
            shortest = size * 8 / rate / hosts.FRAME_PAYLOAD
            self.assertGreater(float(seconds), 0.97 * shortest)
            self.assertLess(float(seconds), 3 * shortest)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv.pop(1)).resolve()
    if why := hosts.missing() or ("LossyLinks" in sys.argv and not shutil.which("nft") and
                                  "nft is not on PATH (Debian: setup/debian.sh test)"):  # fmt: skip
        print(f"skipped: {why}")
        sys.exit(77)
    unittest.main()
