"""Batch norms that stay with their clients: a client that is killed goes on with its own, and nothing of them travels."""
import json
import os
import struct
import unittest

from federation import Federation, events, run, DIGITS

SETTINGS = ["--set", "experiment.rounds=6", "--set", "sync.min_clients=3", "--set", "train.local_epochs=2",
            "--set", 'model.layers=["flatten","dense 32","batchnorm","relu","dense 10"]',
            "--set", 'model.batch_norm="local"', "--set", 'evaluation.where="clients"']


class LocalNorms(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=3)
        self.federation.start_coordinator()
        self.federation.join_clients(3)
        self.addCleanup(self.federation.close)

    def norms_of(self, experiment):
        """The exported model's scale and shift, by the file's own header."""
        path = os.path.join(self.federation.folder, "model.safetensors")
        done = self.federation.command("experiment", "export", experiment, "--out", path)
        self.assertEqual(0, done.returncode, done.stderr)
        with open(path, "rb") as file:
            data = file.read()
        end = 8 + struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:end])

        def values(name):
            begin, stop = header[name]["data_offsets"]
            return struct.unpack(f"<{(stop - begin) // 4}f", data[end + begin:end + stop])
        return values("batchnorm1.weight"), values("batchnorm1.running_mean"), header["__metadata__"]["architecture"]

    def test_kill_9_of_a_client_with_norms_of_its_own_does_not_change_the_model(self):
        experiment = self.federation.submit(*SETTINGS)
        watch = self.federation.watch(experiment)
        self.addCleanup(watch.stop)
        watch.event(lambda e: e.get("event") == "round" and e["round"] == 2)
        self.federation.children["client-2"].kill()
        self.federation.start_client(2)
        end = self.federation.finish(experiment)
        self.assertEqual("succeeded", end["state"], end)
        simulated = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", 3, *SETTINGS,
                        deadline=120)
        self.assertEqual(0, simulated.returncode, simulated.stderr)
        self.assertEqual(events(simulated.stdout)[-1]["model_sha256"], end["model_sha256"])
        self.assertGreater(end["accuracy"], 0.6)
        scale, mean, architecture = self.norms_of(experiment)
        self.assertEqual(({1.0}, {0.0}), (set(scale), set(mean)))
        self.assertIn("batchnorm local", architecture)
        replayed = self.federation.command("experiment", "replay", experiment, "--json", "--data", f"digits={DIGITS}",
                                           deadline=120)
        self.assertEqual(0, replayed.returncode, replayed.stdout + replayed.stderr)


if __name__ == "__main__":
    unittest.main()
