"""Data as three houses have it: a manifest each, figures of the clients' own held-out parts, regression."""
import csv
import os
import random
import shutil
import tempfile
import unittest

from federation import Child, events, free_port, run

EXPERIMENT = """\
[experiment]
name = "patients"
rounds = 12
seed = 3

[data]
dataset = "patients"
shape = [{values}]
scale = "0..100 -> 0..1"

[model]
layers = ["dense 8", "relu", "dense {outputs}"]
loss = "{loss}"

[train]
batch = 8
local_epochs = 2
optimizer = {{ kind = "sgd", learning_rate = {rate} }}

[sync]
min_clients = 3
quorum = "60%"

[evaluation]
where = "{where}"
metric = "{metric}"
holdout = "{holdout}"
"""

# Each house: the order and names of its columns, and its manifest.
HOUSES = {
    "north": (["id", "age", "pressure", "lactate", "outcome"],
              'file = "table.csv"\nlabel = "outcome"\nfeatures = ["age..lactate"]\n'
              'classes = ["home", "ward", "intensive"]\nsplit = { holdout = "25%", seed = 1 }\n'),
    "south": (["result", "lac", "bp", "years"],
              'file = "table.csv"\nlabel = "result"\nfeatures = ["years", "bp", "lac"]\n'
              'classes = ["home", "ward", "intensive"]\nsplit = { holdout = "20%" }\n'),
    "east": (["a", "b", "c", "note", "target"],
             'file = "table.csv"\nlabel = 4\nfeatures = [0, "1..2"]\n'
             'classes = ["home", "ward", "intensive"]\nsplit = { test = "later.csv" }\n'),
}


def patients(seed, count):
    dice = random.Random(seed)
    for i in range(count):
        kind = i % 3
        yield {"age": 20 + 25 * kind + dice.randint(0, 15), "pressure": 90 - 25 * kind + dice.randint(0, 10),
               "lactate": 10 + 30 * kind + dice.randint(0, 10), "kind": kind, "id": f"P-{seed}-{i}"}


def row(house, patient):
    name = ["home", "ward", "intensive"][patient["kind"]]
    age, pressure, lactate = patient["age"], patient["pressure"], patient["lactate"]
    return {"north": [patient["id"], age, pressure, lactate, name], "south": [name, lactate, pressure, age],
            "east": [age, pressure, lactate, "free, text", patient["kind"]]}[house]


def write(path, house, seed, count):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HOUSES[house][0])
        writer.writerows(row(house, patient) for patient in patients(seed, count))


class Data(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="causeway-data-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.state = os.path.join(self.folder, "coordinator")
        self.children = []
        self.addCleanup(lambda: [child.stop() for child in self.children])
        for seed, house in enumerate(HOUSES):
            os.mkdir(os.path.join(self.folder, house))
            write(self.path(house, "table.csv"), house, seed, 60)
            write(self.path(house, "later.csv"), house, seed + 10, 12)
            with open(self.path(house, "m.toml"), "w", encoding="utf-8") as file:
                file.write(HOUSES[house][1])

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def child(self, words, name):
        self.children.append(Child(words, self.folder, name))
        return self.children[-1]

    def command(self, *words):
        done = run(*words, "--state", self.state)
        self.assertEqual(0, done.returncode, done.stderr)
        return events(done.stdout)

    def start(self):
        coordinator = self.child(["coordinator", "--json", "--state", self.state, "--listen",
                                  f"127.0.0.1:{free_port()}", "--data", f"patients={self.path('north', 'm.toml')}"],
                                 "coordinator")
        coordinator.event(lambda e: e.get("event") == "listening")
        nodes = {}
        for house in HOUSES:
            token = self.command("token", "new", "--json", "--name", house)[0]["token"]
            nodes[house] = self.child(["join", token, "--json", "--state", self.path(house, "node"), "--data",
                                       f"patients={self.path(house, 'm.toml')}"], house)
        for node in nodes.values():
            node.event(lambda e: "joined" in e.get("text", ""))
        return nodes

    def submit(self, **fields):
        fields = {"outputs": 3, "loss": "cross-entropy", "where": "both", "metric": "macro_f1", "values": 3, "rate": 0.3,
                  "holdout": "20%", **fields}
        with open(self.path("experiment.toml"), "w", encoding="utf-8") as file:
            file.write(EXPERIMENT.format(**fields))
        return self.command("experiment", "submit", self.path("experiment.toml"), "--json")[0]["experiment"]

    def rounds(self, experiment):
        done = run("experiment", "watch", experiment, "--json", "--state", self.state)
        self.assertEqual(0, done.returncode, done.stderr)
        return [e for e in events(done.stdout) if e["event"] == "round"]

    def test_three_houses_with_their_own_manifests_train_and_evaluate_together(self):
        nodes = self.start()
        listed = {n["node"]: n["datasets"] for n in self.command("node", "list", "--json") if n["role"] == "client"}
        self.assertEqual([45, 48, 60], [listed[h][0]["examples"] for h in ("north", "south", "east")])
        rounds = self.rounds(self.submit())
        last = rounds[-1]
        self.assertGreater(last["accuracy"], 0.8)
        self.assertGreater(last["macro_f1"], 0.8)
        clients = last["evaluated_by_clients"]
        self.assertEqual(15 + 12 + 12, clients["examples"])
        self.assertEqual(["east", "north", "south"], [n["node"] for n in clients["nodes"]])
        weighted = sum(n["examples"] * n["accuracy"] for n in clients["nodes"]) / clients["examples"]
        self.assertAlmostEqual(weighted, clients["accuracy"])
        self.assertAlmostEqual(min(n["accuracy"] for n in clients["nodes"]),
                               clients["spread"]["accuracy"]["worst_decile"])
        self.assertEqual([], clients["left_out"])

        # Predictions of a house whose columns stand otherwise, with its classes' names.
        self.command("experiment", "export", "--out", self.path("model.safetensors"))
        done = run("experiment", "predict", self.path("model.safetensors"), self.path("south", "m.toml"), "--scale",
                   "0..100 -> 0..1")
        self.assertEqual(0, done.returncode, done.stderr)
        header, *lines = done.stdout.splitlines()
        self.assertEqual("row,class,p_home,p_ward,p_intensive", header)
        self.assertEqual(12, len(lines))
        self.assertTrue(all(line.split(",")[1] in ("home", "ward", "intensive") for line in lines))

    def test_regression_is_measured_by_distances_and_who_holds_nothing_out_is_named(self):
        columns = {"north": ["pressure", "lactate", "age"], "south": ["bp", "lac", "years"], "east": ["b", "c", "a"]}
        for house, (first, second, label) in columns.items():
            with open(self.path(house, "m.toml"), "w", encoding="utf-8") as file:
                file.write(f'file = "table.csv"\nlabel = "{label}"\nfeatures = ["{first}", "{second}"]\n'
                           'target = "number"\n')
                if house != "east":
                    file.write('split = { holdout = "20%" }\n')
        self.start()
        rounds = self.rounds(self.submit(outputs=1, loss="mean-squared-error", where="clients", metric="rmse",
                                         values=2, rate=0.0001, holdout="0%"))
        last = rounds[-1]
        self.assertIsNone(last["accuracy"])
        self.assertLess(last["rmse"], rounds[0]["rmse"])
        self.assertLessEqual(last["mae"], last["rmse"])
        self.assertAlmostEqual(last["evaluation_loss"], last["rmse"] ** 2, places=3)
        self.assertEqual(24, last["evaluated_by_clients"]["examples"])
        self.assertEqual(["east"], [n["node"] for n in last["evaluated_by_clients"]["left_out"]])
        self.assertIn("no_holdout", last["accuracy_note"])


if __name__ == "__main__":
    unittest.main()
