"""An update over a slow link that goes down in the middle is resumed from what was acknowledged.

20 MB over 1 Mbit/s, down for 20 s, in .ci/run; a tenth, down for 2 s, in ./check. Two network namespaces, so that the
link can really be slow and really be cut; needs root.
"""
import os
import shutil
import subprocess
import threading
import time
import unittest

from federation import Child, Federation
from supervised import LONG

NAMESPACE = f"causeway-cut-{os.getpid()}"
NEAR, FAR = f"cwn{os.getpid()}", f"cwf{os.getpid()}"
SUBNET = f"10.77.{16 + os.getpid() % 200}"  # a run that was killed may have left its own behind
# The short form is just above what moves in memory without a file, over a wider line.
WIDE, DOWN_S, RATE = (76_000, 20, "1mbit") if LONG else (14_500, 2, "4mbit")
WINDOW = 8 * 128 * 1024  # credits x the chunk at this rate, at most
OVERHEAD = 1.05          # TLS, ZeroMQ, message headers; measured 0.3 %


def root(*words):
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip") and shutil.which("tc"), "needs root and iproute2")
class LinkCut(unittest.TestCase):
    def setUp(self):
        if not root("ip", "netns", "add", NAMESPACE):
            self.skipTest("no network namespaces here")
        self.addCleanup(root, "ip", "netns", "del", NAMESPACE)
        inside = ["ip", "-n", NAMESPACE]
        for words in (["ip", "link", "add", NEAR, "type", "veth", "peer", "name", FAR, "netns", NAMESPACE],
                      ["ip", "addr", "add", f"{SUBNET}.1/24", "dev", NEAR], ["ip", "link", "set", NEAR, "up"],
                      [*inside, "addr", "add", f"{SUBNET}.2/24", "dev", FAR], [*inside, "link", "set", FAR, "up"],
                      [*inside, "link", "set", "lo", "up"],
                      ["tc", "-n", NAMESPACE, "qdisc", "add", "dev", FAR, "root", "tbf", "rate", RATE, "burst", "16kb",
                       "latency", "200ms"]):
            if not root(*words):
                self.skipTest("cannot make a slow link here: " + " ".join(words))
        self.federation = Federation(clients=1)
        self.addCleanup(self.federation.close)

    def start(self):
        federation = self.federation
        coordinator = Child(["coordinator", "--json", "--state", federation.state, "--listen", f"{SUBNET}.1:{federation.port}",
                             "--data", f"digits={federation.parts}/holdout.csv.gz"], federation.folder, "coordinator")
        federation.children["coordinator"] = coordinator
        coordinator.event(lambda e: e.get("event") == "listening")
        node = Child(["join", federation.token("client-1"), "--json", "--state",
                      os.path.join(federation.folder, "client-1"), "--data", f"digits={federation.parts}/part-1.csv.gz"],
                     federation.folder, "client-1", prefix=["ip", "netns", "exec", NAMESPACE])
        federation.children["client-1"] = node
        node.event(lambda e: "joined" in e.get("text", ""))

    def part_bytes(self):
        spool = os.path.join(self.federation.state, "spool")
        return max([os.path.getsize(os.path.join(spool, name)) for name in os.listdir(spool)], default=0)

    def test_the_transfer_resumes_and_the_next_one_is_not_wedged(self):
        self.start()
        parameters = 64 * WIDE + WIDE + WIDE * 10 + 10
        self.assertGreater(4 * parameters, 20e6 if LONG else 4.2e6)
        watch = self.federation.watch(self.federation.submit(
            "--set", "experiment.rounds=2", "--set", "sync.min_clients=1", "--set", "sync.rejoin=120s",
            "--set", f'model.layers=["flatten","dense {WIDE}","relu","dense 10"]', "--set", "train.local_epochs=1"))
        self.addCleanup(watch.stop)
        tick = threading.Event()
        until = time.monotonic() + 400
        while self.part_bytes() < 2 * parameters:  # half of it is there
            tick.wait(0.1)
            self.assertLess(time.monotonic(), until, "half of the update never came")
            self.assertIsNone(self.federation.children["client-1"].process.poll())
        root("ip", "link", "set", NEAR, "down")
        tick.wait(DOWN_S)
        root("ip", "link", "set", NEAR, "up")
        first = watch.event(lambda e: e.get("round") == 1, deadline=600)
        self.assertLess(first["bytes_up"], 4 * parameters * OVERHEAD + WINDOW)
        second = watch.event(lambda e: e.get("round") == 2, deadline=600)
        self.assertLess(second["bytes_up"], 4 * parameters * OVERHEAD)
        self.assertEqual("succeeded", watch.event(lambda e: e.get("event") == "done", deadline=60)["state"])


if __name__ == "__main__":
    unittest.main()
