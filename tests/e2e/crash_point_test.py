"""Every persist and every rename is a named point: a process killed there comes back, and the run ends with the same model.

A first run records which points are reached, and for which files; then each is visited by a run of its own with real
processes, in which the first to reach it is killed there and started again. A point that stands in the source and is
reached by no run fails the test, so that none can be added without being visited.
"""
import collections
import concurrent.futures
import os
import re
import shutil
import tempfile
import unittest

from federation import BUILD, DIGITS, events, run
from supervised import CLIENTS, LONG, ROOT, Supervised, seeded, split_digits

PROGRAM = os.path.join(BUILD, "tests", "crash", "causeway_crash")
SETTINGS = ["--set", "experiment.rounds=4", "--set", "sync.min_clients=3", "--set", "train.local_epochs=1",
            "--set", "train.optimizer_state=keep",  # so that there is client state to promote
            "--set", 'model.layers=["flatten", "dense 14200", "relu", "dense 10"]']  # and models are files
AT_ONCE = 4  # a visit mostly waits for connections to come back
FOLDERS = ["common", "wire", "coordinator", "client", "cli"]


def points_in_source():
    names = set()
    for folder in FOLDERS:
        for file in os.listdir(os.path.join(ROOT, folder)):
            if file.endswith((".cpp", ".h")):
                with open(os.path.join(ROOT, folder, file), encoding="utf-8") as source:
                    names |= set(re.findall(r'crash_point\("([a-z_.]+)"', source.read()))
    return names


@unittest.skipUnless(os.path.exists(PROGRAM), "the sanitizers' builds have no such program")
class CrashPoints(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="causeway-points-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.parts = split_digits(self.folder)
        done = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", CLIENTS, *SETTINGS)
        self.digest = events(done.stdout)[-1]["model_sha256"]

    def visit(self, env):
        """A whole life: first start, enrolment, a run, an export."""
        federation = Supervised(self.parts, PROGRAM, env)
        try:
            federation.start_coordinator()
            federation.start_clients()
            experiment = federation.submit("visited", *SETTINGS)
            end = federation.finish(experiment)
            self.assertEqual(("succeeded", self.digest), (end["state"], end["model_sha256"]), federation.logs())
            exported = os.path.join(federation.folder, "out", "model.safetensors")
            os.mkdir(os.path.dirname(exported))
            federation.command("experiment", "export", experiment, "--out", exported)
            self.assertGreater(os.path.getsize(exported), 0)
        finally:
            federation.close()

    def record(self):
        """Each reached place with how often one process reached it."""
        file = os.path.join(self.folder, "reached")
        self.visit({"CAUSEWAY_CRASH_RECORD": file})
        with open(file, encoding="utf-8") as lines:
            times = collections.Counter(lines.read().splitlines())
        places = {}
        for line, count in times.items():
            place = line.split(" ", 1)[1]
            places[place] = max(count, places.get(place, 0))
        if os.environ.get("CAUSEWAY_LIST"):
            print("\n".join(sorted(f"{p} {n}" for p, n in places.items())))
        return places

    def test_a_kill_at_any_persist_or_rename_leaves_a_state_from_which_the_same_model_is_reached(self):
        chance = seeded(self)
        places = self.record()
        reached = {place.split(" ")[0] for place in places}
        self.assertEqual(set(), points_in_source() - reached, "these points were never reached")
        chosen = sorted(places)
        if not LONG:
            chosen = sorted(chance.sample(chosen, max(1, len(chosen) // 10)))
        visits = []
        for number, place in enumerate(chosen):
            passes = chance.randrange(places[place] // 2 + 1) if LONG and places[place] > 2 else 0
            mark = os.path.join(self.folder, f"mark-{number}")
            visits.append((f"{place} {passes}", mark))
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            runs = [pool.submit(self.visit, {"CAUSEWAY_CRASH_AT": place, "CAUSEWAY_CRASH_MARK": mark})
                    for place, mark in visits]
        for (place, mark), visited in zip(visits, runs):
            with self.subTest(place=place):
                visited.result()
                self.assertTrue(os.path.exists(mark), "the point was not reached")


if __name__ == "__main__":
    unittest.main()
