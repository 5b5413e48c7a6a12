"""A federation as it is lived: machines of their own, one with IPv6 only, two operators, a queue, a node that must leave,
one that falls silent and comes back, certificates that are renewed meanwhile; and the model's bits at the end.

Every machine is a network namespace on one bridge, so this needs root.
"""
import os
import shutil
import subprocess
import tempfile
import time
import unittest

from by_hand_test import root
from federation import CAUSEWAY, DEADLINE_S, DIGITS, Child, events, run, signal

TAG = f"cw{os.getpid() % 100000}"
NODES = ["client-1", "client-2", "client-3", "client-6"]  # the last has IPv6 only
ROUNDS = 6


class Machines:
    """A hub with a bridge and one namespace per machine; names are the machines'."""

    def __init__(self, names):
        self.made = []
        self.works = all(self.add(name) for name in ["hub", *names]) and self.wire(names)

    def add(self, name):
        self.made.append(f"{TAG}-{name}")
        return root("ip", "netns", "add", self.made[-1]) and root(*self.at(name), "ip", "link", "set", "lo", "up")

    def at(self, name):
        return ["ip", "netns", "exec", f"{TAG}-{name}"]

    def wire(self, names):
        hub = ["ip", "-n", f"{TAG}-hub"]
        lines = [[*hub, *"link add br0 type bridge".split()], [*hub, *"addr add 10.77.8.1/24 dev br0".split()],
                 [*hub, *"addr add fd00:77:8::1/64 dev br0 nodad".split()], [*hub, *"link set br0 up".split()]]
        for number, name in enumerate(names, 10):
            far = ["ip", "-n", f"{TAG}-{name}"]
            address = f"fd00:77:8::{number}/64 dev eth0 nodad" if name.endswith("6") else f"10.77.8.{number}/24 dev eth0"
            lines += [[*hub, "link", "add", f"v{number}", *f"type veth peer name eth0 netns {TAG}-{name}".split()],
                      [*hub, *f"link set v{number} master br0 up".split()], [*far, *f"addr add {address}".split()],
                      [*far, *"link set eth0 up".split()]]
        return all(root(*line) for line in lines)

    def close(self):
        for name in self.made:
            root("ip", "netns", "del", name)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "needs root and ip(8): every machine is a network namespace")
class RealFederation(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="causeway-real-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.machines = Machines(NODES)
        self.addCleanup(self.machines.close)
        if not self.machines.works:
            self.skipTest("network namespaces or bridges cannot be made here")
        self.children = {}
        self.addCleanup(lambda: [child.stop() for child in self.children.values()])

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def start(self, name, machine, *words):
        self.children[name] = Child(words, self.folder, name, prefix=self.machines.at(machine))
        return self.children[name]

    def ask(self, machine, *words, state="federation", code=0):
        """A command on that machine, with the events of its output."""
        done = subprocess.run([*self.machines.at(machine), CAUSEWAY, *map(str, words), "--json", "--state", self.path(state)],
                              capture_output=True, text=True, timeout=2 * DEADLINE_S, check=False)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return events(done.stdout)

    def token(self, name, *more):
        return self.ask("hub", "token", "new", "--name", name, *more)[0]["token"]

    def begin(self):
        done = run("data", "split", f"digits={DIGITS}", "--parts", 4, "--holdout", "20%", "--out", self.path("parts"))
        self.assertEqual(0, done.returncode, done.stderr)
        os.makedirs(self.path("federation"), mode=0o700)
        with open(self.path("federation", "coordinator.toml"), "w", encoding="utf-8") as file:
            file.write('certificate_lifetime = "15s"\n')  # renewal is due after two thirds of it
        self.start("coordinator", "hub", "coordinator", "--json", "--state", self.path("federation"), "--data",
                   f"digits={self.path('parts', 'holdout.csv.gz')}").event(lambda e: e.get("event") == "listening")
        for number, name in enumerate(NODES, 1):
            self.start(name, name, "join", self.token(name), "--json", "--state", self.path(name), "--data",
                       f"digits={self.path('parts', f'part-{number}.csv.gz')}").event(lambda e: "joined" in e.get("text", ""))
        alice = self.token("alice", "--role", "operator")
        enrolled = subprocess.run([*self.machines.at("client-1"), CAUSEWAY, "join", "-", "--state", self.path("alice")],
                                  input=alice, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        self.assertEqual(0, enrolled.returncode, enrolled.stderr)

    def submit(self, machine, state, name, clients, rounds=ROUNDS):
        return self.ask(machine, "experiment", "submit", "digits-fedavg", "--set", f"experiment.name={name}", "--set",
                        f"experiment.rounds={rounds}", "--set", f"sync.min_clients={clients}", "--set", "sync.quorum=1",
                        "--set", "sync.rejoin=60s", state=state)[0]["experiment"]

    def watch(self, experiment):
        return self.start(f"watch-{experiment}", "hub", "experiment", "watch", experiment, "--json", "--state",
                          self.path("federation"))

    def audit(self):
        return [line["entry"] for line in self.ask("hub", "audit", "show")]

    def wait_for_renewal(self, since):
        """Certificates made for this test live seconds; the nodes renew them in session."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            renewed = [e["node"] for e in self.audit()[since:] if e["event"] == "certificate.renewed"]
            if any(node in NODES for node in renewed):
                return
        self.fail("no certificate was renewed in time")

    def check_replay(self, experiment, digest):
        """The same decision log once more, without time and network."""
        counted = {node for sentence in self.ask("hub", "experiment", "explain", experiment, "--round", ROUNDS)
                   if sentence["about"] == "counted" for node in NODES if node in sentence["text"]}
        self.assertTrue(counted)
        parts = [word for number, name in enumerate(NODES, 1) if name in counted
                 for word in ("--data", f"{name}:digits={self.path('parts', f'part-{number}.csv.gz')}")]
        end = self.ask("hub", "experiment", "replay", experiment, *parts)[-1]
        self.assertEqual(digest, end["model_sha256"])

    def test_two_operators_a_queue_a_revocation_a_silence_and_renewals_end_with_the_same_bits_as_a_quiet_run(self):
        self.begin()
        first = self.submit("hub", "federation", "first", 3, rounds=200)  # lasts until the revocation has been made
        second = self.submit("client-1", "alice", "second", 3)
        self.assertIn(self.ask("client-1", "experiment", "status", "second", state="alice")[0]["state"],
                      ("queued", "starting", "running"))
        self.watch(first).event(lambda e: e.get("round") == 2)
        self.ask("client-1", "node", "revoke", "client-3", state="alice")
        self.assertEqual(3, self.children["client-3"].process.wait(DEADLINE_S))
        ended = self.children[f"watch-{first}"].event(lambda e: e.get("event") == "done")
        self.assertEqual("succeeded", ended["state"])

        watch = self.watch(second)
        watch.event(lambda e: e.get("round") == 2)
        asleep, noted = self.children["client-1"], len(self.audit())
        asleep.signal(signal.SIGSTOP)  # a round waits for it, and certificates come due meanwhile
        self.wait_for_renewal(noted)
        asleep.signal(signal.SIGCONT)
        disturbed = watch.event(lambda e: e.get("event") == "done")
        self.assertEqual(("succeeded", ROUNDS), (disturbed["state"], disturbed["rounds"]))

        third = self.submit("client-1", "alice", "second", 3)  # nothing disturbs this one
        quiet = self.ask("client-1", "experiment", "wait", third, state="alice")[-1]
        self.assertEqual(disturbed["model_sha256"], quiet["model_sha256"])
        self.assertEqual("offline", self.node("client-6", stop=True)["state"])
        self.assertEqual("revoked", self.node("client-3")["state"])
        for who in ("operator", "alice"):
            self.assertTrue(any(e["event"] == "experiment.submitted" and e["by"] == who for e in self.audit()))
        self.check_replay(second, disturbed["model_sha256"])

    def node(self, name, stop=False):
        if stop:
            self.children[name].stop()
        return next(node for node in self.ask("hub", "node", "list") if node["node"] == name)


if __name__ == "__main__":
    unittest.main()
