"""An update over a slow link that goes down in the middle is resumed from what was acknowledged.

20 MB over 1 Mbit/s, down for 20 s, in .ci/run; a tenth, down for 2 s, in ./check. The line of long_line.py is really slow,
and while it is down it swallows what is sent without a word to anybody; needs root.
"""
import os
import threading
import time
import unittest

from federation import Federation
from long_line import LongLine
from supervised import LONG

# The short form is just above what moves in memory without a file, over a wider line.
WIDE, DOWN_S, RATE = (76_000, 20, "1mbit") if LONG else (14_500, 2, "4mbit")
WINDOW = 8 * 128 * 1024  # credits x the chunk at this rate, at most
OVERHEAD = 1.05          # TLS, ZeroMQ, message headers; measured 0.3 %


class LinkCut(unittest.TestCase):
    def setUp(self):
        self.line = LongLine("--rate", RATE, "--back", "1gbit", "--delay", "1ms")  # what goes up is slow
        self.addCleanup(self.line.close)
        if not self.line.works:
            self.skipTest(self.line.why)
        self.federation = Federation(clients=1, line=self.line)
        self.addCleanup(self.federation.close)

    def part_bytes(self):
        spool = os.path.join(self.federation.state, "spool")
        return max([os.path.getsize(os.path.join(spool, name)) for name in os.listdir(spool)], default=0)

    def test_the_transfer_resumes_and_the_next_one_is_not_wedged(self):
        self.federation.start_coordinator()
        self.federation.join_clients(1)
        parameters = 64 * WIDE + WIDE + WIDE * 10 + 10
        self.assertGreater(4 * parameters, 20e6 if LONG else 4.2e6)
        watch = self.federation.watch(self.federation.submit(
            "--set", "experiment.rounds=2", "--set", "sync.min_clients=1", "--set", "sync.rejoin=120s", "--set",
            "sync.straggler_deadline=20m",
            "--set", f'model.layers=["flatten","dense {WIDE}","relu","dense 10"]', "--set", "train.local_epochs=1"))
        self.addCleanup(watch.stop)
        tick = threading.Event()
        until = time.monotonic() + 400
        while self.part_bytes() < 2 * parameters:  # half of it is there
            tick.wait(0.1)
            self.assertLess(time.monotonic(), until, "half of the update never came")
            self.assertIsNone(self.federation.children["client-1"].process.poll())
        self.line.say("down")
        tick.wait(DOWN_S)
        self.line.say("up")
        first = watch.event(lambda e: e.get("round") == 1, deadline=600)
        self.assertLess(first["bytes_up"], 4 * parameters * OVERHEAD + WINDOW)
        second = watch.event(lambda e: e.get("round") == 2, deadline=600)
        self.assertLess(second["bytes_up"], 4 * parameters * OVERHEAD)
        self.assertEqual("succeeded", watch.event(lambda e: e.get("event") == "done", deadline=60)["state"])


if __name__ == "__main__":
    unittest.main()
