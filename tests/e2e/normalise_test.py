"""`data.normalise = "federated"`: the columns' sums leave the nodes that allow it, and everything uses what they come to."""
import os
import signal
import unittest
import zipfile

from federation import DIGITS, Federation, events, run

EXPERIMENT = """
[experiment]
name = "columns"
seed = 7
rounds = 5
[data]
dataset = "digits"
label = "last"
shape = [64]
normalise = "federated"
holdout = "20%"
partition = { kind = "dirichlet", alpha = 0.5 }
[model]
layers = ["dense 32", "relu", "dense 10"]
[train]
optimizer = { kind = "sgd", learning_rate = 0.05, momentum = 0.9 }
batch = 32
local_epochs = 3
[regime]
preset = "fedavg"
[sync]
min_clients = 3
quorum = "100%"
rejoin = "60s"
"""


class Columns(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=3)
        self.addCleanup(self.federation.close)
        self.file = os.path.join(self.federation.folder, "columns.toml")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(EXPERIMENT)
        self.federation.start_coordinator()

    def allow(self, *numbers):
        for number in numbers:
            folder = os.path.join(self.federation.folder, f"client-{number}")
            os.makedirs(folder, mode=0o700, exist_ok=True)
            with open(os.path.join(folder, "policy.toml"), "w", encoding="utf-8") as file:
                file.write("share_statistics = true\n")

    def submit(self, *more):
        done = self.federation.command("experiment", "submit", self.file, "--json", *more)
        self.assertEqual(0, done.returncode, done.stderr)
        return events(done.stdout)[0]["experiment"]

    def status(self, experiment):
        return events(self.federation.command("experiment", "status", experiment, "--json").stdout)[-1]

    def wait_until(self, experiment, holds):
        for _ in range(400):  # each asks a process, which takes its time
            status = self.status(experiment)
            if holds(status):
                return status
        self.fail(f"never so: {status}")

    def test_a_run_whose_coordinator_is_killed_in_round_0_is_the_simulators_and_the_replays(self):
        self.allow(1, 2, 3)
        self.federation.join_clients(3)
        last = self.federation.children["client-3"]
        last.signal(signal.SIGSTOP)
        experiment = self.submit()
        self.wait_until(experiment, lambda s: s["phase"] == "summing columns" and
                        sum(m["state"] == "counted" for m in s["members"]) == 2)
        self.federation.children["coordinator"].kill()
        self.federation.start_coordinator()
        self.wait_until(experiment, lambda s: s["phase"] == "summing columns" and
                        sum(m["state"] == "counted" for m in s["members"]) == 2)
        last.signal(signal.SIGCONT)
        done = self.federation.finish(experiment)
        self.assertEqual("succeeded", done["state"], done)
        self.assertGreater(done["accuracy"], 0.85)
        simulated = run("simulate", self.file, "--clients", 3, "--data", f"digits={DIGITS}", "--json")
        self.assertEqual(0, simulated.returncode, simulated.stderr)
        last_event = events(simulated.stdout)[-1]
        self.assertEqual(done["model_sha256"], last_event["model_sha256"])
        watched = events(self.federation.command("experiment", "watch", experiment, "--json").stdout)
        for shown in (watched, events(simulated.stdout)):
            first = next(event for event in shown if event["event"] in ("statistics", "round"))
            self.assertEqual(("statistics", 0, 3, 3), tuple(first[key] for key in ("event", "round", "clients", "cohort")))
            self.assertEqual(1, sum(event["event"] == "statistics" for event in shown))
        told = self.federation.command("experiment", "watch", experiment).stdout.splitlines()
        self.assertIn("columns summed over 3 of 3 clients", told[0])
        self.assertAlmostEqual(done["accuracy"], last_event["accuracy"], places=9)
        words = [word for number in (1, 2, 3)
                 for word in ("--data", f"client-{number}:digits={self.federation.parts}/part-{number}.csv.gz")]
        replayed = self.federation.command("experiment", "replay", experiment, "--json", *words)
        self.assertEqual(0, replayed.returncode, replayed.stdout + replayed.stderr)
        self.assertEqual(done["model_sha256"], events(replayed.stdout)[-1]["model_sha256"])
        self.use(experiment, done)

    def use(self, experiment, done):
        """The exported model knows its normalisation: whoever uses it needs no other word."""
        held_out = f"{self.federation.parts}/holdout.csv.gz"
        folder = self.federation.folder
        for words in (("--out", f"{folder}/model.safetensors"), ("--out", f"{folder}/model.npz", "--format", "npz")):
            exported = self.federation.command("experiment", "export", experiment, "--json", *words)
            self.assertEqual(0, exported.returncode, exported.stderr)
        for words in (("--label", "last"), ("--experiment", self.file)):
            evaluated = run("experiment", "evaluate", f"{folder}/model.safetensors", held_out, "--json", *words)
            self.assertEqual(0, evaluated.returncode, evaluated.stderr)
            self.assertAlmostEqual(done["accuracy"], events(evaluated.stdout)[-1]["accuracy"], places=9)
            self.assertEqual(done["model_sha256"], events(evaluated.stdout)[-1]["model_sha256"])
        predicted = run("experiment", "predict", f"{folder}/model.safetensors", held_out, "--label", "last")
        self.assertEqual(0, predicted.returncode, predicted.stderr)
        with zipfile.ZipFile(f"{folder}/model.npz") as archive:
            self.assertLessEqual({"normalise.mean.npy", "normalise.deviation.npy"}, set(archive.namelist()))
        without = run("experiment", "predict", done["model"], held_out, "--experiment", self.file)
        self.assertEqual(2, without.returncode)
        self.assertIn("experiment export", without.stderr)

    def test_a_node_that_does_not_share_its_sums_says_by_which_rule(self):
        self.allow(1, 2)
        self.federation.join_clients(3)
        node = self.federation.children["client-3"]
        experiment = self.submit("--set", "sync.quorum=2")
        told = node.event(lambda e: "declined" in e.get("text", ""))["text"]
        self.assertIn("default policy: share_statistics: it asks for the sums of the columns of \"digits\"", told)
        done = self.federation.finish(experiment)
        self.assertEqual("succeeded", done["state"], done)  # with the others' numbers it trains all the same
        other = self.submit("--set", "sync.quorum=3")
        done = self.federation.finish(other)
        self.assertEqual("failed", done["state"])
        self.assertIn("client-3: declined: policy_statistics: default policy: share_statistics", done["reason"])


if __name__ == "__main__":
    unittest.main()
