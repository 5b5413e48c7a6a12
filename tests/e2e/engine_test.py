"""The training engine through the product: a convolutional network learns in a federation, and models show their size."""
import unittest

from federation import DIGITS, events, run


class Engine(unittest.TestCase):
    def test_a_convolutional_network_learns_the_digits_federated_as_in_the_simulator(self):
        done = run("demo", "digits-cnn", "--json", "--data", f"digits={DIGITS}", deadline=300)
        self.assertEqual(0, done.returncode, done.stderr)
        end = events(done.stdout)[-1]
        self.assertEqual("succeeded", end["state"])
        self.assertGreaterEqual(end["accuracy"], 0.97)
        simulated = run("simulate", "digits-cnn", "--json", "--data", f"digits={DIGITS}", "--clients", 5, deadline=300)
        self.assertEqual(0, simulated.returncode, simulated.stderr)
        self.assertEqual(end["model_sha256"], events(simulated.stdout)[-1]["model_sha256"])

    def test_norms_dropout_residuals_schedules_and_clipping_train_and_repeat(self):
        layers = '["conv 8 3x3", "batchnorm", "relu", "residual 16 stride 2", "dropout 0.2", "globalavgpool", "dense 10"]'
        ends = []
        for _ in range(2):
            done = run("simulate", "digits-cnn", "--json", "--data", f"digits={DIGITS}", "--clients", 3,
                       "--set", f"model.layers={layers}", "--set", "experiment.rounds=3",
                       "--set", "train.schedule.kind=cosine", "--set", "train.schedule.warmup=1",
                       "--set", "train.clip_norm=1", "--set", "model.loss=cross-entropy smoothing=0.1", deadline=300)
            self.assertEqual(0, done.returncode, done.stderr)
            ends.append(events(done.stdout)[-1])
        self.assertEqual(ends[0]["model_sha256"], ends[1]["model_sha256"])
        self.assertGreater(ends[0]["accuracy"], 0.3)

    def test_show_says_what_a_model_takes(self):
        shown = run("experiment", "show", "digits-cnn", "--json", "--set", 'model.layers=["resnet-18 10"]',
                    "--set", "data.shape=[32, 32, 3]", "--set", "train.batch=64")
        self.assertEqual(0, shown.returncode, shown.stderr)
        found = events(shown.stdout)[-1]
        self.assertEqual(11173962, found["parameters"])
        self.assertEqual(64, found["batch"])
        self.assertEqual(4 * 11173962, found["gradient_bytes"])
        self.assertEqual(4 * 11173962, found["optimizer_bytes"])
        self.assertGreater(found["activation_bytes"], 100_000_000)
        said = run("experiment", "show", "digits-cnn")
        self.assertRegex(said.stdout, r"with a batch of 32:\n#   weights")


if __name__ == "__main__":
    unittest.main()
