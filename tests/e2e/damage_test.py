"""A damaged disk is noticed: one byte flipped anywhere in a stopped folder is refused by name, rebuilt, or does no harm.

A federation is killed in the middle of a run, and its folders are kept. Each try puts them back, damages one file and
starts everything again: the run ends with the undisturbed SHA-256, or something says by name why it does not. It is never
another model, and a revoked node stays out. A few tries in ./check, many with CAUSEWAY_LONG=1; CAUSEWAY_SEED repeats one.
"""
import glob
import os
import random
import shutil
import unittest

from federation import Child, Federation, events, run

LONG = os.environ.get("CAUSEWAY_LONG")
SETTINGS = ["--set", "experiment.rounds=6", "--set", "sync.min_clients=3", "--set", "train.local_epochs=1",
            "--set", "sync.rejoin=3s", "--set", "sync.start_timeout=20s"]
MODEL = ["--set", 'model.layers=["flatten", "dense 6000", "relu", "dense 10"]']  # rounds of some tenths of a second
KILLED_AFTER = 3
UNHARMED_END_S = 60


def flip(path, at, mask):
    with open(path, "r+b") as file:
        file.seek(at)
        was = file.read(1)[0]
        file.seek(at)
        file.write(bytes([was ^ mask]))


class Damage(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=3)
        self.addCleanup(self.federation.close)

    def live(self, *settings):
        """A revoked node, and a run that is killed; what it comes to when nothing is damaged."""
        f = self.federation
        f.start_coordinator()
        f.join_clients(3)
        mallory = f.token("mallory")
        f.children["mallory"] = Child(
            ["join", mallory, "--json", "--state", os.path.join(f.folder, "mallory"),
             "--data", f"digits={f.parts}/part-1.csv.gz"], f.folder, "mallory")
        f.children["mallory"].event(lambda e: "joined" in e.get("text", ""))
        done = f.command("node", "revoke", "mallory")
        self.assertEqual(0, done.returncode, done.stderr)
        self.experiment = f.submit(*SETTINGS, *settings)
        watch = f.watch(self.experiment)
        watch.event(lambda e: e.get("event") == "round" and e["round"] == KILLED_AFTER)
        for child in f.children.values():
            child.kill()
        watch.stop()
        self.kept = f.folder + "-kept"
        self.addCleanup(shutil.rmtree, self.kept, True)
        self.names = ["coordinator", "client-1", "client-2", "client-3"]
        for name in self.names:
            shutil.copytree(os.path.join(f.folder, name), os.path.join(self.kept, name), symlinks=True)
        self.expected = self.go_on()
        self.assertEqual("succeeded", self.expected["state"], self.expected)

    def put_back(self):
        f = self.federation
        for child in f.children.values():
            if child.process.poll() is None:
                child.kill()
            child.process.stdout.close()
        f.children.clear()
        for name in self.names:
            shutil.rmtree(os.path.join(f.folder, name), ignore_errors=True)
            shutil.copytree(os.path.join(self.kept, name), os.path.join(f.folder, name), symlinks=True)

    def files(self, *folders):
        found = []
        for name in folders or self.names:
            for path in glob.glob(os.path.join(self.kept, name, "**"), recursive=True):
                if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) > 0:
                    found.append(os.path.relpath(path, self.kept))
        return sorted(found)

    def go_on(self):
        """Starts everything on the folders as they are: the end of the run, or {"refused": what was said}."""
        f = self.federation
        try:
            f.start_coordinator()
        except (AssertionError, TimeoutError) as refusal:
            return {"state": "refused", "reason": str(refusal)}
        for number in range(1, 4):
            f.start_client(number)
        revoked = f.command("node", "list", "--json")
        if revoked.returncode == 0:
            mallory = [e for e in events(revoked.stdout) if e.get("name", e.get("node")) == "mallory"]
            self.assertTrue(mallory and mallory[0].get("revoked", True), revoked.stdout)
        done = f.command("experiment", "wait", self.experiment, "--json", "--timeout", f"{UNHARMED_END_S}s",
                         deadline=UNHARMED_END_S + 30)
        ended = [e for e in events(done.stdout) if e.get("event") == "done"]
        if ended:
            return ended[-1]
        status = f.command("experiment", "status", self.experiment, "--json")
        said = [e for e in events(status.stdout) if "state" in e]
        if said and said[-1]["state"] == "paused":
            return {"state": "paused", "reason": said[-1]["reason"]}
        return {"state": "stopped", "reason": (done.stderr + status.stderr + "".join(
            child.errors() for child in f.children.values()))}

    def judge(self, end, what):
        """Undisturbed, or a name; never another model."""
        if end["state"] == "succeeded":
            self.assertEqual(self.expected["model_sha256"], end["model_sha256"], what)
            return "undisturbed"
        self.assertTrue(end["reason"], what)
        self.assertNotIn("terminate called", end["reason"], what)
        return end["state"]

    def test_one_byte_flipped_anywhere_is_refused_rebuilt_or_harmless(self):
        self.live(*MODEL)
        seed = int(os.environ.get("CAUSEWAY_SEED", "1"))
        chosen = random.Random(seed)
        files = self.files()
        # Each kind of file once in a while: those that are damaged most badly first.
        tries = 200 if LONG else 4
        for number in range(tries):
            relative = chosen.choice(files)
            size = os.path.getsize(os.path.join(self.kept, relative))
            at, mask = chosen.randrange(size), chosen.randrange(1, 256)
            what = f"CAUSEWAY_SEED={seed}, try {number}: byte {at} of {relative} (mask {mask})"
            self.put_back()
            flip(os.path.join(self.federation.folder, relative), at, mask)
            end = self.go_on()
            outcome = self.judge(end, f"{what}: {end}")
            if LONG or os.environ.get("CAUSEWAY_SHOW"):
                print(what, outcome, end["reason"][-300:].replace("\n", " | ") if outcome != "undisturbed" else "", flush=True)

    def test_a_damaged_log_is_refused_by_name_and_a_repair_brings_all_of_it_back(self):
        self.live(*MODEL)
        self.put_back()
        state = self.federation.state
        flip(os.path.join(state, "coordinator.db-wal"), 5000, 1)
        end = self.go_on()
        self.assertEqual("refused", end["state"], end)
        for word in ("is older than coordinator.head", "the revocation of mallory", "--repair"):
            self.assertIn(word, end["reason"])
        repaired = run("doctor", "--repair", "--json", "--state", state)
        self.assertEqual(0, repaired.returncode, repaired.stderr)
        self.assertIn("the revocation of mallory", repaired.stdout)
        again = self.go_on()
        self.assertEqual(self.expected["model_sha256"], again.get("model_sha256"), again)
        audit = self.federation.command("audit", "show", "--last", "20")
        self.assertIn("federation.repaired", audit.stdout)

    def test_a_damaged_snapshot_is_made_again_by_the_members(self):
        self.live(*MODEL)
        self.put_back()
        folder = os.path.join(self.federation.state, "snapshots")
        newest = max(glob.glob(os.path.join(folder, "*.safetensors")), key=os.path.getmtime)
        flip(newest, os.path.getsize(newest) // 2, 1)
        end = self.go_on()
        self.assertEqual(("succeeded", self.expected["model_sha256"]), (end["state"], end.get("model_sha256")), end)
        self.assertIn("goes back from round", self.federation.children["coordinator"].errors())
        self.assertIn("experiment.rewound", self.federation.command("audit", "show", "--last", "20").stdout)

    def test_a_removed_snapshots_folder_pauses_the_run_until_it_is_back(self):
        self.live(*MODEL, "--set", "train.optimizer_state=keep")
        self.put_back()
        folder = os.path.join(self.federation.state, "snapshots")
        os.rename(folder, folder + "-away")
        f = self.federation
        f.start_coordinator()
        for number in range(1, 4):
            f.start_client(number)
        status = {}
        while status.get("state") != "paused":
            done = f.command("experiment", "status", self.experiment, "--json")
            status = [e for e in events(done.stdout) if "state" in e][-1]
            self.assertNotIn(status["state"], ("failed", "succeeded"), status)
        self.assertIn("snapshot_lost", status["reason"])
        for file in os.listdir(folder + "-away"):
            os.rename(os.path.join(folder + "-away", file), os.path.join(folder, file))
        end = f.finish(self.experiment)
        self.assertEqual(("succeeded", self.expected["model_sha256"]), (end["state"], end["model_sha256"]), end)


if __name__ == "__main__":
    unittest.main()
