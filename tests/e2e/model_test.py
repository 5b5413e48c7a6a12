"""What people do with a model afterwards: evaluate it, predict with it, take it elsewhere."""
import csv
import os
import shutil
import struct
import tempfile
import unittest
import zipfile

from federation import DIGITS, Federation, events, run


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="causeway-model-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.model = os.path.join(cls.folder, "model.safetensors")
        done = run("simulate", "digits-fedavg", "--json", "--set", "experiment.rounds=3", "--data", f"digits={DIGITS}",
                   "--out", cls.model)
        assert done.returncode == 0, done.stderr
        cls.end = events(done.stdout)[-1]
        cls.parts = os.path.join(cls.folder, "parts")
        done = run("data", "split", f"digits={DIGITS}", "--parts", 1, "--holdout", "20%", "--seed", 7, "--out", cls.parts)
        assert done.returncode == 0, done.stderr
        cls.holdout = os.path.join(cls.parts, "holdout.csv.gz")

    def at(self, name):
        return os.path.join(self.folder, name)

    def evaluated(self):
        done = run("experiment", "evaluate", self.model, self.holdout, "--experiment", "digits-fedavg", "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        return events(done.stdout)[0]

    def test_evaluation_of_the_file_gives_the_accuracy_that_the_run_showed(self):
        event = self.evaluated()
        self.assertEqual(self.end["accuracy"], event["accuracy"])
        self.assertEqual(self.end["model_sha256"], event["model_sha256"])
        self.assertEqual(event["examples"], sum(c["examples"] for c in event["classes"]))
        self.assertIsNone(event["auc"])  # ten classes
        shown = run("experiment", "evaluate", self.model, self.holdout, "--label", "last", "--scale", "0..16 -> 0..1")
        self.assertIn(f"accuracy {100 * event['accuracy']:.2f} %", shown.stdout)
        self.assertIn("precision", shown.stdout)

    def test_a_model_of_numbers_is_measured_by_its_errors_and_predicts_numbers(self):
        data, file, model = self.at("line.csv"), self.at("line.toml"), self.at("line.safetensors")
        rows = [(x % 10, 100 * (x % 7)) for x in range(120)]
        with open(data, "w", encoding="utf-8") as table:
            table.write("x1,x2,y\n" + "".join(f"{a},{b},{2 * a + 0.01 * b + 3}\n" for a, b in rows))
        with open(file, "w", encoding="utf-8") as experiment:
            experiment.write("""[experiment]
name = "line"
rounds = 20
[data]
dataset = "line"
label = "y"
shape = [2]
normalise = "federated"
[model]
layers = ["dense 1"]
loss = "mean-squared-error"
[train]
batch = 8
local_epochs = 3
[regime]
preset = "fedavg"
[evaluation]
metric = "mae"
""")
        done = run("simulate", file, "--json", "--clients", 3, "--data", f"line={data}", "--out", model)
        self.assertEqual(0, done.returncode, done.stderr)
        done = run("experiment", "evaluate", model, data, "--label", "y", "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        event = events(done.stdout)[0]
        self.assertLess(event["mae"], 0.01)  # a line, and the file says how its values were normalised
        self.assertLess(event["rmse"], 0.02)
        done = run("experiment", "predict", model, data, "--label", "y")
        shown = list(csv.DictReader(done.stdout.splitlines()))
        self.assertEqual(["row", "value"], list(shown[0]))
        for (a, b), row in zip(rows, shown):
            self.assertAlmostEqual(2 * a + 0.01 * b + 3, float(row["value"]), places=1)

    def test_predictions_are_csv_rows_whose_probabilities_add_up_and_whose_hits_are_the_accuracy(self):
        out = self.at("out.csv")
        done = run("experiment", "predict", self.model, self.holdout, "--experiment", "digits-fedavg", "--out", out)
        self.assertEqual(0, done.returncode, done.stderr)
        with open(out, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(["row", "class"] + [f"p{i}" for i in range(10)], list(rows[0]))
        self.assertEqual([str(i + 1) for i in range(len(rows))], [row["row"] for row in rows])
        for row in rows:
            values = [float(row[f"p{i}"]) for i in range(10)]
            self.assertAlmostEqual(1, sum(values), places=5)
            self.assertEqual(max(range(10), key=values.__getitem__), int(row["class"]))
        event = self.evaluated()
        self.assertEqual(event["examples"], len(rows))
        for label, counts in enumerate(event["classes"]):
            self.assertEqual(counts["predicted"], sum(row["class"] == str(label) for row in rows))
        streamed = run("experiment", "predict", self.model, self.holdout, "--experiment", "digits-fedavg")
        with open(out, encoding="utf-8") as file:
            self.assertEqual(file.read(), streamed.stdout)

    def test_npy_without_labels_is_predicted_as_csv_is(self):
        examples = [[float((7 * i + j) % 17) for j in range(64)] for i in range(5)]
        with open(self.at("x.csv"), "w", encoding="utf-8") as file:
            file.writelines(",".join(map(str, row)) + "\n" for row in examples)
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 64), }"
        header += " " * (117 - len(header)) + "\n"
        with open(self.at("x.npy"), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            file.write(struct.pack("<320f", *[value for row in examples for value in row]))
        outputs = [run("experiment", "predict", self.model, self.at(name), "--scale", "0..16->0..1", "--json")
                   for name in ("x.csv", "x.npy")]
        self.assertEqual(0, outputs[0].returncode, outputs[0].stderr)
        self.assertEqual(5, len(events(outputs[0].stdout)))
        self.assertEqual(outputs[0].stdout, outputs[1].stdout)

    def test_mistakes_name_the_file_and_the_remedy(self):
        with open(self.at("labelled.csv"), "w", encoding="utf-8") as file:
            file.write(",".join(["1"] * 65) + "\n")
        with open(self.at("junk.safetensors"), "w", encoding="utf-8") as file:
            file.write("no model at all")
        for words, code, said in [
            (["predict", self.at("no.safetensors"), self.holdout], 2, ["no.safetensors"]),
            (["predict", self.at("junk.safetensors"), self.holdout], 1, ["junk.safetensors", "safetensors"]),
            (["predict", self.model, self.at("no.csv")], 2, ["no.csv"]),
            (["predict", self.model, self.at("labelled.csv")], 2, ["65 values", "[8, 8, 1]", "--label"]),
            (["evaluate", self.model, self.at("labelled.csv"), "--label", "last", "--scale", "16"], 2, ["16"]),
            (["evaluate", self.model, self.at("x.csv")], 2, ["--label"]),
            (["evaluate", self.model, self.holdout, "--experiment", "digits-fedvag"], 2, ["digits-fedavg"]),
        ]:
            with open(self.at("x.csv"), "w", encoding="utf-8") as file:
                file.write(",".join(["1"] * 64) + "\n")
            done = run("experiment", *words)
            self.assertEqual(code, done.returncode, (words, done.stderr))
            for word in said:
                self.assertIn(word, done.stderr, words)


class Export(unittest.TestCase):
    def test_a_run_that_starts_from_a_file_has_it_as_its_round_0_and_reaches_the_simulators_digest(self):
        federation = Federation(clients=2)
        self.addCleanup(federation.close)
        words = ["digits-fedavg", "--json", "--clients", "2", "--data", f"digits={DIGITS}"]
        first = os.path.join(federation.folder, "first.safetensors")
        done = run("simulate", *words, "--set", "experiment.rounds=2", "--out", first)
        self.assertEqual(0, done.returncode, done.stderr)
        start = events(done.stdout)[-1]["model_sha256"]
        chosen = ["--set", "experiment.rounds=1", "--set", "model.init_from=first"]
        done = run("simulate", *words, *chosen, "--model", f"first={first}")
        self.assertEqual(0, done.returncode, done.stderr)
        virtual = events(done.stdout)[-1]
        self.assertNotEqual(start, virtual["model_sha256"])

        federation.start_coordinator("--model", f"first={first}")
        federation.join_clients(2)
        experiment = federation.submit(*chosen, "--set", "sync.min_clients=2")
        self.assertEqual(virtual["model_sha256"], federation.finish(experiment)["model_sha256"])
        exported = federation.command("experiment", "export", experiment, "--round", 0, "--json", "--out",
                                      os.path.join(federation.folder, "zero.safetensors"))
        self.assertEqual(start, events(exported.stdout)[0]["model_sha256"])

        refused = federation.command("experiment", "submit", "digits-fedavg", *chosen, "--set",
                                     'model.layers=["flatten", "dense 32", "relu", "dense 10"]')
        self.assertEqual(2, refused.returncode)
        for tensor in ("dense1.weight", "dense1.bias", "dense2.weight"):
            self.assertIn(tensor, refused.stderr)
        self.assertNotIn("dense2.bias", refused.stderr)  # it fits
        unknown = federation.command("experiment", "submit", "digits-fedavg", "--set", "model.init_from=frist")
        self.assertEqual(2, unknown.returncode)
        self.assertIn("known: first", unknown.stderr)

    def test_patience_ends_a_run_and_the_best_model_is_the_one_with_the_best_accuracy_shown(self):
        federation = Federation(clients=2)
        self.addCleanup(federation.close)
        federation.start_coordinator()
        federation.join_clients(2)
        experiment = federation.submit("--set", "experiment.rounds=60", "--set", "sync.min_clients=2", "--set",
                                       "evaluation.patience=2")
        watched = events(federation.command("experiment", "watch", experiment, "--json").stdout)
        rounds, done = watched[:-1], watched[-1]
        self.assertEqual("succeeded", done["state"])
        self.assertTrue(done["reason"].startswith("early_stop: 2 rounds"), done)
        best = max(rounds, key=lambda e: (e["accuracy"], -e["round"]))
        self.assertLess(done["rounds"], 60)
        self.assertEqual(done["rounds"] - 2, done["best_round"])
        self.assertEqual(best["accuracy"], rounds[done["best_round"] - 1]["accuracy"])
        out = os.path.join(federation.folder, "best.safetensors")
        exported = federation.command("experiment", "export", experiment, "--best", "--json", "--out", out)
        event = events(exported.stdout)[0]
        self.assertEqual(done["best_round"], event["round"])
        self.assertEqual(rounds[done["best_round"] - 1]["model_sha256"], event["model_sha256"])
        evaluated = run("experiment", "evaluate", out, f"{federation.parts}/holdout.csv.gz", "--experiment",
                        "digits-fedavg", "--json")
        self.assertEqual(best["accuracy"], events(evaluated.stdout)[0]["accuracy"])

    def test_npz_holds_the_tensors_of_the_safetensors_file(self):
        federation = Federation(clients=1)
        self.addCleanup(federation.close)
        federation.start_coordinator()
        federation.join_clients(1)
        experiment = federation.submit("--set", "experiment.rounds=1", "--set", "sync.min_clients=1")
        self.assertEqual("succeeded", federation.finish(experiment)["state"])
        model, archive = (os.path.join(federation.folder, name) for name in ("m.safetensors", "m.npz"))
        for out, form in ((model, "safetensors"), (archive, "npz")):
            done = federation.command("experiment", "export", experiment, "--out", out, "--format", form)
            self.assertEqual(0, done.returncode, done.stderr)
        with open(model, "rb") as file:
            whole = file.read()
        data = whole[8 + struct.unpack("<Q", whole[:8])[0]:]
        with zipfile.ZipFile(archive) as entries:
            self.assertIsNone(entries.testzip())
            values = b"".join(entries.read(name)[10 + struct.unpack("<H", entries.read(name)[8:10])[0]:]
                              for name in entries.namelist())
        self.assertEqual(data, values)
        self.assertEqual([], [name for name in os.listdir(federation.folder) if name.endswith(".part")])


if __name__ == "__main__":
    unittest.main()
