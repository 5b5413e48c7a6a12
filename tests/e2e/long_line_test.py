"""Federations over a line with 100 ms round trip, 20 Mbit/s and 1 % loss, where TCP itself has to work: the model is the
undisturbed one, to the bit. With CAUSEWAY_LONG=1 also what a large model gets of the line's rate, printed.
"""
import sys
import unittest

from federation import Federation, events, run, DIGITS
from long_line import LongLine
from relays_test import RelayFederation, undisturbed
from supervised import LONG

LINE = ["--rate", "20mbit", "--delay", "50ms", "--loss", "1%", "--jitter", "2ms"]
SETTINGS = ["--set", "experiment.rounds=3", "--set", "sync.min_clients=2"]


class OverALongLine(unittest.TestCase):
    def make(self, kind, clients=2):
        self.line = LongLine(*LINE)
        self.addCleanup(self.line.close)
        if not self.line.works:
            self.skipTest(self.line.why)
        self.federation = kind(clients=clients, line=self.line)
        self.addCleanup(self.federation.close)
        self.federation.start_coordinator()
        self.federation.join_clients(clients)

    def check_line(self):
        """Packets were really lost, both ways."""
        for way, seen in self.line.close().items():
            self.assertGreater(seen["lost"], 0, way)

    def test_whole_models_come_to_the_same_bits(self):
        self.make(Federation)
        end = self.federation.finish(self.federation.submit(*SETTINGS), deadline=120)
        done = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", 2, *SETTINGS)
        self.assertEqual(("succeeded", events(done.stdout)[-1]["model_sha256"]), (end["state"], end["model_sha256"]))
        self.check_line()

    def test_a_model_that_is_cut_between_the_ends_comes_to_the_same_bits(self):
        self.make(RelayFederation, clients=3)
        self.federation.join_host()
        more = ["--set", "experiment.rounds=2", "--set", "train.batch=64"]
        end = self.federation.finish(self.federation.submit(*more), deadline=240)
        self.assertEqual(("succeeded", undisturbed(*more)), (end["state"], end["model_sha256"]))
        self.check_line()

    @unittest.skipUnless(LONG, "figures, not a test: CAUSEWAY_LONG=1")
    def test_what_a_large_model_gets_of_the_line(self):
        for control in ("bbr", "reno"):
            self.make(Federation, clients=1)
            if not self.line.use(control):
                continue
            experiment = self.federation.submit(
                "--set", "experiment.rounds=2", "--set", "sync.min_clients=1", "--set", "train.local_epochs=1", "--set",
                "sync.straggler_deadline=10m", "--set", 'model.layers=["flatten","dense 35000","relu","dense 10"]')
            end = self.federation.finish(experiment, deadline=600)
            self.assertEqual("succeeded", end["state"])
            status = events(self.federation.command("experiment", "status", experiment, "--json").stdout)[0]
            for way, stage in (("bytes_down", "distribute"), ("bytes_up", "collect")):
                rate = 8e-6 * end[way] / 2 / status["time"][stage]
                print(f"{control}, {stage}: {rate:.1f} of 20 Mbit/s", file=sys.stderr)
            self.doCleanups()


if __name__ == "__main__":
    unittest.main()
