"""Two experiments at one time: each shows the bytes of its own models and updates, not the other's."""
import unittest

from federation import Federation

CLIENTS = 4
ROUNDS = 30
COMMON = ["--set", f"experiment.rounds={ROUNDS}", "--set", "train.local_epochs=1", "--set", "sync.cohort=2",
          "--set", "sync.min_clients=2", "--set", "sync.quorum=2", "--set", "evaluation.where=none"]
LARGE = 4 * (64 * 3000 + 3000 + 3000 * 10 + 10)  # bytes of its parameters


class Parallel(unittest.TestCase):
    def test_bytes_of_two_experiments_at_one_time_are_told_apart(self):
        federation = Federation(CLIENTS)
        self.addCleanup(federation.close)
        federation.start_coordinator("--parallel", "2")
        federation.join_clients(CLIENTS)
        large = federation.submit("--set", "experiment.name=large", *COMMON,
                                  "--set", 'model.layers=["flatten", "dense 3000", "relu", "dense 10"]')
        small = federation.submit("--set", "experiment.name=small", *COMMON,
                                  "--set", 'model.layers=["flatten", "dense 10"]')
        ends = {name: federation.finish(number) for name, number in (("small", small), ("large", large))}
        for name, end in ends.items():
            self.assertEqual("succeeded", end["state"], (name, end))
        moved = 2 * LARGE * ROUNDS  # two clients, one way; what else is said takes a few KB a round
        for way in ("bytes_up", "bytes_down"):
            self.assertGreater(ends["large"][way], 0.98 * moved, ends)  # some may move before both run
            self.assertLess(ends["large"][way], 1.1 * moved, ends)
            self.assertLess(ends["small"][way], 0.1 * moved, ends)


if __name__ == "__main__":
    unittest.main()
