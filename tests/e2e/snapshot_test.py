"""A client killed in the middle of a long round goes on where its last snapshot was, and ends with the same bits."""
import glob
import json
import os
import select
import time
import unittest

from federation import Federation, events, run, DEADLINE_S, DIGITS

# One round that takes seconds, with everything that a place in it could forget: momentum, dropout, microbatches.
SETTINGS = ["--set", "experiment.rounds=1", "--set", "sync.min_clients=2", "--set", "train.local_epochs=150",
            "--set", "train.optimizer.momentum=0.9", "--set", "train.microbatch=20", "--set", "train.clip_norm=1",
            "--set", 'model.layers=["flatten","dense 64","relu","dropout 0.3","dense 10"]',
            "--set", 'train.snapshot_every="50 batches"']


class Snapshot(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=2)
        self.federation.start_coordinator()
        self.federation.join_clients(2)
        self.addCleanup(self.federation.close)

    def kept(self, client):
        return glob.glob(os.path.join(self.federation.folder, client, "experiments", "*.running"))

    def log(self, client):
        with open(os.path.join(self.federation.folder, client, "log", "node.log"), encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]

    def wait_for_snapshot(self, client):
        deadline = time.monotonic() + DEADLINE_S
        while not self.kept(client):
            self.assertLess(time.monotonic(), deadline, f"{client} has kept nothing of its round")
            select.select([], [], [], 0.05)

    def test_a_round_under_way_is_gone_on_with_after_kill_9(self):
        experiment = self.federation.submit(*SETTINGS)
        self.wait_for_snapshot("client-2")
        self.federation.children["client-2"].kill()
        self.assertTrue(self.kept("client-2"))
        self.federation.start_client(2)
        end = self.federation.finish(experiment)
        self.assertEqual("succeeded", end["state"])
        simulated = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", 2, *SETTINGS,
                        deadline=120)
        self.assertEqual(events(simulated.stdout)[-1]["model_sha256"], end["model_sha256"])
        said = [line for line in self.log("client-2") if line["what"] in ("resumed", "trained")]
        self.assertEqual(["resumed", "trained"], [line["what"] for line in said])
        self.assertGreaterEqual(said[0]["steps"], 50)
        self.assertEqual([], self.kept("client-2"))


if __name__ == "__main__":
    unittest.main()
