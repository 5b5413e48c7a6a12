"""A backup taken in the middle of a run is a folder from which a coordinator goes on, with clients that are ahead of it."""
import os
import shutil
import sqlite3
import stat
import subprocess
import unittest

from disk_test import SmallDisk, has_small_disks
from federation import DIGITS, Federation, events, run

LAST = 60
ROUNDS = ["--set", f"experiment.rounds={LAST}", "--set", "sync.min_clients=3"]


def undisturbed():
    done = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", 3, *ROUNDS, deadline=120)
    return events(done.stdout)[-1]["model_sha256"]


class Backup(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=3)
        self.federation.start_coordinator()
        self.addCleanup(self.federation.close)
        self.copy = os.path.join(self.federation.folder, "copy")

    def back_up(self, out=None):
        done = self.federation.command("backup", out or self.copy, "--json")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual(["lock"], os.listdir(os.path.join(self.federation.state, "backup")))
        return events(done.stdout)[-1]

    def restore(self):
        """The machine is lost; the copy takes its place, on the same port."""
        self.federation.children["coordinator"].kill()
        self.federation.state = self.copy
        return self.federation.start_coordinator()

    def ask_copy(self, query):
        """Of a database that nobody has open; its file is not touched."""
        database = sqlite3.connect(f"file:{self.copy}/coordinator.db?immutable=1", uri=True)
        try:
            return database.execute(query).fetchone()[0]
        finally:
            database.close()

    def audit(self):
        return [line["entry"] for line in events(self.federation.command("audit", "show", "--json").stdout)]

    def refuse(self, out, code, *words):
        done = self.federation.command("backup", out)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_a_run_goes_on_from_the_copy_to_the_undisturbed_model_although_its_clients_were_ahead(self):
        self.federation.join_clients(3)
        unused = self.federation.token("late")
        experiment = self.federation.submit(*ROUNDS)
        watch = self.federation.watch(experiment)
        watch.event(lambda e: e.get("round") == 2)
        made = self.back_up()
        self.assertGreater(made["bytes"], 0)
        copied = self.ask_copy("SELECT MAX(round) FROM commits")
        self.assertTrue(2 <= copied < LAST, copied)
        watch.event(lambda e: e.get("round", 0) > copied + 1)  # the clients have gone on from what the copy knows
        self.restore()
        watch.stop()
        end = self.federation.finish(experiment)
        self.assertEqual(("succeeded", LAST, undisturbed()), (end["state"], end["rounds"], end["model_sha256"]))

        restored = [line for line in self.audit() if line["event"] == "federation.restored"]
        self.assertEqual([1], [line["tokens_dropped"] for line in restored])
        self.assertEqual(1, len([line for line in self.audit() if line["event"] == "backup.made"]))
        late = run("join", unused, "--state", os.path.join(self.federation.folder, "late"))
        self.assertEqual(3, late.returncode, late.stderr)  # it may have been used since
        self.federation.token("late")

    def test_a_copy_of_a_stopped_coordinator_is_the_same_and_bears_no_lock_and_safe_modes(self):
        self.federation.join_clients(2)
        self.federation.children["coordinator"].stop()
        self.back_up()
        self.assertNotIn("lock", os.listdir(self.copy))
        for folder, _, files in os.walk(self.copy):
            self.assertEqual(0o700, stat.S_IMODE(os.stat(folder).st_mode), folder)
            for name in files:
                if name.endswith(".key"):
                    self.assertEqual(0o600, stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode), name)
        self.federation.state = self.copy
        self.federation.start_coordinator()
        nodes = events(self.federation.command("node", "list", "--json").stdout)
        self.assertLessEqual({"client-1", "client-2"}, {node["node"] for node in nodes})

    def test_what_stands_in_the_way_is_told_and_leaves_no_half_copy(self):
        os.mkdir(self.copy)
        self.refuse(self.copy, 2, "already exists", "name a new folder")
        self.refuse(os.path.join(self.copy, "no", "such"), 2, "there is no folder", "make it first")
        self.refuse(os.path.join(self.federation.state, "inside"), 2, "lies in the state folder itself")
        os.mkdir(self.copy + "-2.tmp")
        self.refuse(self.copy + "-2", 2, "was cut short", "remove it")
        os.unlink(os.path.join(self.federation.state, "operator", "address"))
        self.refuse(self.copy + "-3", 2, "operator identity")
        self.assertFalse(os.path.exists(self.copy + "-3.tmp"))
        done = run("backup", self.copy + "-4", "--state", self.copy)
        self.assertEqual(2, done.returncode)
        self.assertIn("no coordinator's state folder", done.stderr)

    @unittest.skipUnless(shutil.which("mount") and has_small_disks(), "needs the right to mount a small disk")
    def test_without_room_nothing_is_left_and_with_room_it_works(self):
        disk = SmallDisk(os.path.join(self.federation.folder, "disk"), "4m")
        self.addCleanup(disk.close)
        disk.fill()
        out = os.path.join(disk.folder, "copy")
        self.refuse(out, 1, "free some room")
        self.assertEqual(["filler"], os.listdir(disk.folder))
        disk.free()
        self.back_up(out)
        self.assertIn("coordinator.db", subprocess.check_output(["ls", out], text=True))


if __name__ == "__main__":
    unittest.main()
