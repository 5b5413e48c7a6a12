"""The README's commands by hand, on two machines: network namespaces joined by a virtual cable (root), or loopback."""
import os
import shutil
import subprocess
import tempfile
import unittest

from federation import CAUSEWAY, DIGITS, Child, events, run

NAMESPACE = f"causeway-{os.getpid()}"


def root(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False).returncode == 0


class TwoMachines:
    """The coordinator's network stays here; nodes live in a namespace behind a veth pair, when that is possible."""

    def __init__(self, ipv6_only=False):
        kind = "v6" if ipv6_only else "v4"
        near, far = f"cw{os.getpid() % 10000}{kind}a", f"cw{os.getpid() % 10000}{kind}b"
        self.real = os.geteuid() == 0 and shutil.which("ip") is not None and root("ip", "netns", "add", NAMESPACE)
        nodad = " nodad" if ipv6_only else ""  # usable at once: nobody else is on this cable
        self.address, self.prefix = "127.0.0.1", []
        if self.real:
            self.address = "[fd00:77:7::1]" if ipv6_only else "10.77.7.1"
            ours, theirs = ("fd00:77:7::1/64", "fd00:77:7::2/64") if ipv6_only else ("10.77.7.1/24", "10.77.7.2/24")
            self.prefix = ["ip", "netns", "exec", NAMESPACE]
            self.real = all(root(*line.split()) for line in (
                f"ip link add {near} type veth peer name {far} netns {NAMESPACE}",
                f"ip addr add {ours} dev {near}" + nodad, f"ip link set {near} up",
                f"ip -n {NAMESPACE} addr add {theirs} dev {far}" + nodad, f"ip -n {NAMESPACE} link set {far} up"))

    def close(self):
        root("ip", "netns", "del", NAMESPACE)


class ByHand(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="causeway-hand-")
        self.machines = TwoMachines()
        self.children = []
        self.addCleanup(self.clean_up)

    def clean_up(self):
        for child in self.children:
            child.stop()
        self.machines.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def at(self, name):
        return os.path.join(self.folder, name)

    def start(self, name, *words, prefix=()):
        child = Child(words, self.folder, name, prefix=prefix)
        self.children.append(child)
        return child

    def test_split_coordinator_token_join_submit_watch_status_export(self):
        parts, state = self.at("parts"), self.at("federation")
        done = run("data", "split", f"digits={DIGITS}", "--parts", 2, "--holdout", "20%", "--out", parts)
        self.assertEqual(0, done.returncode, done.stderr)
        coordinator = self.start("coordinator", "coordinator", "--json", "--state", state, "--listen",
                                 f"{self.machines.address}:0", "--data", f"digits={parts}/holdout.csv.gz")
        coordinator.event(lambda e: e.get("event") == "listening")
        for number, name in enumerate(("lab-a", "lab-b"), 1):
            token = run("token", "new", "--name", name, "--state", state).stdout.strip().splitlines()[0]
            node = self.start(name, "join", token, "--json", "--state", self.at(name), "--data",
                              f"digits={parts}/part-{number}.csv.gz", prefix=self.machines.prefix)
            node.event(lambda e: "joined" in e.get("text", ""))
        listed = run("node", "list", "--state", state)
        self.assertIn("lab-a", listed.stdout)
        self.assertIn("online", listed.stdout)
        submitted = run("experiment", "submit", "digits-fedavg", "--state", state, "--set", "experiment.rounds=4",
                        "--set", "sync.min_clients=2")
        self.assertIn("partition", submitted.stdout)  # the note that nobody hands out data here
        watched = run("experiment", "watch", "--json", "--state", state)
        self.assertEqual(0, watched.returncode, watched.stderr)
        end = events(watched.stdout)[-1]
        self.assertEqual("succeeded", end["state"])
        self.assertIn("succeeded", run("experiment", "status", "--state", state).stdout)
        self.assertIn("4/4", run("experiment", "list", "--state", state).stdout)
        model = self.at("model.safetensors")
        exported = run("experiment", "export", "--state", state, "--out", model)
        self.assertEqual(0, exported.returncode, exported.stderr)
        summed = subprocess.run(["sha256sum", model], capture_output=True, text=True, check=True).stdout.split()[0]
        self.assertEqual(end["model_sha256"], summed)

    def test_a_node_with_ipv6_only_joins_and_trains(self):
        self.machines.close()
        self.machines = TwoMachines(ipv6_only=True)
        if not self.machines.real:
            self.skipTest("needs root and network namespaces")
        parts, state = self.at("parts"), self.at("federation")
        run("data", "split", f"digits={DIGITS}", "--parts", 1, "--holdout", "20%", "--out", parts)
        self.start("coordinator", "coordinator", "--json", "--state", state, "--listen", f"{self.machines.address}:0",
                   "--data", f"digits={parts}/holdout.csv.gz").event(lambda e: e.get("event") == "listening")
        token = run("token", "new", "--json", "--name", "lab-six", "--state", state)
        node = self.start("lab-six", "join", events(token.stdout)[0]["token"], "--json", "--state", self.at("lab-six"),
                          "--data", f"digits={parts}/part-1.csv.gz", prefix=self.machines.prefix)
        node.event(lambda e: "joined" in e.get("text", ""))
        submitted = run("experiment", "submit", "digits-fedavg", "--watch", "--state", state, "--set",
                        "experiment.rounds=2")
        self.assertEqual(0, submitted.returncode, submitted.stderr)
        self.assertIn("succeeded", submitted.stdout)

    def test_without_a_held_out_set_the_accuracy_is_a_dash_with_its_reason(self):
        parts, state = self.at("parts"), self.at("federation")
        run("data", "split", f"digits={DIGITS}", "--parts", 1, "--out", parts)
        coordinator = self.start("coordinator", "coordinator", "--json", "--state", state, "--listen", "127.0.0.1:0")
        coordinator.event(lambda e: e.get("event") == "listening")
        token = run("token", "new", "--name", "lab-a", "--state", state).stdout.strip().splitlines()[0]
        node = self.start("lab-a", "join", token, "--json", "--state", self.at("lab-a"), "--data",
                          f"digits={parts}/part-1.csv.gz")
        node.event(lambda e: "joined" in e.get("text", ""))
        run("experiment", "submit", "digits-fedavg", "--state", state, "--set", "experiment.rounds=2")
        watched = run("experiment", "watch", "--state", state)
        self.assertIn("accuracy -: the coordinator holds no \"digits\"", watched.stdout)
        cancelled = run("experiment", "submit", "digits-fedavg", "--state", state, "--set", "experiment.rounds=5000")
        self.assertEqual(0, cancelled.returncode)
        self.assertEqual(0, run("experiment", "cancel", "--state", state).returncode)
        waited = run("experiment", "wait", "--state", state)
        self.assertEqual(1, waited.returncode)
        self.assertIn("cancelled", waited.stdout)


if __name__ == "__main__":
    unittest.main()
