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

    def test_bf16_trains_where_the_processor_has_it_and_is_refused_by_name_where_not(self):
        settings = ["--json", "--data", f"digits={DIGITS}", "--set", "experiment.rounds=2"]
        in_bf16 = [*settings, "--set", "train.compute=bf16"]
        # oneDNN is told to be of an older processor: nodes then lack the instructions.
        refused = run("demo", "digits-cnn", *in_bf16, "--clients", 2, deadline=300, env={"ONEDNN_MAX_CPU_ISA": "AVX2"})
        self.assertEqual(1, refused.returncode, refused.stdout)
        self.assertIn("avx512_bf16", refused.stdout + refused.stderr)
        first = run("simulate", "digits-cnn", *in_bf16, "--clients", 2, deadline=300)
        if first.returncode != 0:
            self.assertIn("avx512_bf16", first.stdout + first.stderr)  # this very processor lacks them
            return
        again = run("simulate", "digits-cnn", *in_bf16, "--clients", 2, deadline=300)
        in_f32 = run("simulate", "digits-cnn", *settings, "--clients", 2, deadline=300)
        ends = [events(done.stdout)[-1] for done in (first, again, in_f32)]
        self.assertEqual(ends[0]["model_sha256"], ends[1]["model_sha256"])
        self.assertNotEqual(ends[0]["model_sha256"], ends[2]["model_sha256"])
        self.assertGreater(ends[0]["accuracy"], 0.8 * ends[2]["accuracy"])


if __name__ == "__main__":
    unittest.main()
