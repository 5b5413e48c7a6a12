"""Rounds of 10 MB do not make the coordinator grow: at the last round its memory is within 5 MB of that at round 20.

200 rounds with 4 clients in .ci/run, a tenth in ./check (20 of them; before the twentieth it is still filling its buffers).
"""
import unittest

from federation import Federation
from hostile_test import rss_kb
from supervised import LONG

ROUNDS, WARM = (200, 20) if LONG else (40, 20)
# An update of 10 MB more or less is in flight at a look; over 200 rounds the least of ten looks has none.
MOST_GROWTH_KB = (5 if LONG else 16) * 1024
# 64 x 35,000 + 35,000 + 35,000 x 10 + 10 = 2.6 million parameters; one batch, so that the time goes into the exchange.
SETTINGS = ["--set", f"experiment.rounds={ROUNDS}", "--set", "sync.min_clients=4", "--set", "train.local_epochs=1",
            "--set", 'model.layers=["flatten","dense 35000","relu","dense 10"]', "--set", "train.batch=2000",
            "--set", "evaluation.every=1"]
LOOKS = 10  # the least of so many rounds: what transfers hold at the moment (10 MB each) is no growth


class Memory(unittest.TestCase):
    def test_the_memory_of_the_coordinator_does_not_grow_with_the_rounds(self):
        federation = Federation(clients=4, partition="iid")
        self.addCleanup(federation.close)
        coordinator = federation.start_coordinator()
        federation.join_clients(4)
        watch = federation.watch(federation.submit(*SETTINGS))
        self.addCleanup(watch.stop)

        def least_until(last):
            seen = []
            for number in range(last - LOOKS + 1, last + 1):
                event = watch.event(lambda e: e.get("round") == number, deadline=900)
                self.assertGreater(event["bytes_up"], 4 * 10_000_000)
                seen.append(rss_kb(coordinator.process))
            return min(seen)

        warm = least_until(WARM)
        self.assertLess(least_until(ROUNDS) - warm, MOST_GROWTH_KB)


if __name__ == "__main__":
    unittest.main()
