"""Folders of images and tables of words: from the files to a model, twice the same, with augmentations and microbatches."""
import os
import random
import shutil
import struct
import tempfile
import unittest
import zlib

from federation import events, run

EXPERIMENT = """\
[experiment]
name = "{name}"
rounds = 6
seed = 3

[data]
dataset = "{name}"
{data}
holdout = "25%"

[model]
layers = {layers}

[train]
batch = 8
microbatch = 3
recompute = 2
local_epochs = 2
optimizer = {{ kind = "sgd", learning_rate = 0.1, momentum = 0.9 }}
"""


def png(values, width):
    """A grey PNG of these bytes."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = [values[i:i + width] for i in range(0, len(values), width)]
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, len(rows), 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))) + chunk(b"IEND", b""))


class Images(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="causeway-images-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def experiment(self, name, **values):
        with open(self.path("experiment.toml"), "w", encoding="utf-8") as file:
            file.write(EXPERIMENT.format(name=name, **values))
        return self.path("experiment.toml")

    def learned(self, file, data):
        """The end of two runs, which must be equal."""
        ends = []
        for _ in range(2):
            done = run("simulate", file, "--json", "--clients", 2, "--data", data, deadline=120)
            self.assertEqual(0, done.returncode, done.stderr)
            ends.append(events(done.stdout)[-1])
        self.assertEqual(ends[0]["model_sha256"], ends[1]["model_sha256"])
        return ends[0]

    def test_a_folder_of_images_for_each_class_trains_a_model(self):
        dice = random.Random(1)
        for kind, ground in (("dark", 40), ("light", 180)):
            os.makedirs(self.path("skies", kind))
            for i in range(40):
                with open(self.path("skies", kind, f"{i}.png"), "wb") as file:
                    file.write(png([ground + dice.randint(0, 40) for _ in range(80)], 10))
        shown = run("data", "inspect", self.path("skies"), "--json")
        self.assertEqual(0, shown.returncode, shown.stderr)
        summary = events(shown.stdout)[0]
        self.assertEqual(("images", 80, [8, 10, 1], [40, 40], ["dark", "light"]),
                         (summary["reader"], summary["examples"], summary["shape"], summary["per_class"],
                          summary["class_names"]))
        file = self.experiment("skies", layers='["conv 4 3x3", "relu", "maxpool 2", "dropout 0.1", "flatten", "dense 2"]',
                               data='shape = [8, 10, 1]\nscale = "0..255 -> 0..1"\n'
                                    'augment = ["crop 2", "flip", "normalise 0.5 0.25"]')
        self.assertGreater(self.learned(file, f"skies={self.path('skies')}")["accuracy"], 0.9)
        with open(self.path("skies", "dark", "7.png"), "r+b") as damaged:
            damaged.truncate(60)
        refused = run("data", "inspect", self.path("skies"))
        self.assertNotEqual(0, refused.returncode)
        self.assertIn("dark/7.png", refused.stderr)

    def test_a_table_of_numbers_and_words_trains_a_model(self):
        dice = random.Random(2)
        with open(self.path("staff.csv"), "w", encoding="utf-8") as file:
            file.write("age,ward,shift,ill\n")
            for i in range(120):
                ward, shift = dice.choice(["icu", "er", "lab"]), dice.choice(["day", "night", ""])
                file.write(f"{dice.randint(20, 60) if i % 10 else 'NA'},{ward},{shift},{int(ward == 'icu')}\n")
        data = ('label = "ill"\nshape = [6]\ncategories = ["ward: icu, er, lab", "shift: day, night"]\nmissing = "40"\n'
                'augment = ["normalise 40,0,0,0,0,0 12,1,1,1,1,1"]')
        file = self.experiment("staff", layers='["dense 8", "relu", "dense 2"]', data=data)
        self.assertGreater(self.learned(file, f"staff={self.path('staff.csv')}")["accuracy"], 0.95)
        with open(self.path("staff.csv"), "a", encoding="utf-8") as table:
            table.write("30,icuu,day,0\n")
        refused = run("simulate", file, "--clients", 2, "--data", f"staff={self.path('staff.csv')}")
        self.assertNotEqual(0, refused.returncode)
        self.assertIn('row 122, column 2', refused.stderr)
        self.assertIn("did you mean 'icu'?", refused.stderr)


if __name__ == "__main__":
    unittest.main()
