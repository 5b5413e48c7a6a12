"""A full disk is a pause, not an end: the reason is told, nothing is lost, and with room the same model is reached."""
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from federation import Federation, events, run, DIGITS

ROUNDS = ["--set", "experiment.rounds=120", "--set", "sync.min_clients=2", "--set", "train.local_epochs=1"]


def has_small_disks():
    """Mounting needs root; elsewhere the machines' own tests (tests/simulation) show the same."""
    folder = tempfile.mkdtemp(prefix="causeway-disk-")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False)
    if mounted.returncode == 0:
        subprocess.run(["umount", folder], check=False)
    os.rmdir(folder)
    return mounted.returncode == 0


class SmallDisk:
    """A folder on a disk of its own that can be filled and freed."""

    def __init__(self, folder, size):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", folder], check=True)
        self.folder = folder
        self.filler = os.path.join(folder, "filler")

    def fill(self):
        file = os.open(self.filler, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            while os.write(file, b"x" * 4096):
                pass
        except OSError:
            pass
        os.close(file)

    def free(self):
        os.unlink(self.filler)

    def close(self):
        subprocess.run(["umount", "-l", self.folder], check=False)


@unittest.skipUnless(shutil.which("mount") and has_small_disks(), "needs the right to mount a small disk")
class FullDisk(unittest.TestCase):
    def start(self, folder_of, size):
        self.federation = Federation(clients=2)
        disk = SmallDisk(folder_of(self.federation), size)
        self.addCleanup(self.federation.close)
        self.addCleanup(disk.close)
        self.addCleanup(self.stop)
        self.federation.start_coordinator()
        self.federation.join_clients(2)
        return disk

    def stop(self):
        for child in self.federation.children.values():
            child.stop()

    def run_until_full(self, disk):
        experiment = self.federation.submit(*ROUNDS)
        watch = self.federation.watch(experiment)
        watch.event(lambda e: e.get("round") == 3)
        disk.fill()
        watch.stop()
        return experiment

    def check_end(self, experiment, *more):
        end = self.federation.finish(experiment)
        self.assertEqual("succeeded", end["state"], end)
        done = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", 2, *ROUNDS, *more,
                   deadline=120)
        self.assertEqual(events(done.stdout)[-1]["model_sha256"], end["model_sha256"])

    def test_a_coordinator_without_room_pauses_says_why_and_goes_on_by_itself(self):
        disk = self.start(lambda federation: federation.state, "8m")
        experiment = self.run_until_full(disk)
        end = time.monotonic() + 30
        said = ""
        while "No space left" not in said and "disk is full" not in said:
            self.assertLess(time.monotonic(), end, "the reason was not told: " + said)
            status = self.federation.command("experiment", "status", experiment, "--json", deadline=10)
            said = status.stdout + status.stderr
        disk.free()
        end = time.monotonic() + 30
        while "disk is full" in said or "No space left" in said:  # until its next try nobody can be served
            self.assertLess(time.monotonic(), end, "there is room, and it does not go on: " + said)
            status = self.federation.command("experiment", "status", experiment, "--json", deadline=10)
            said = status.stdout + status.stderr
        self.check_end(experiment)

    def test_a_coordinator_started_without_room_waits_and_starts_by_itself(self):
        disk = self.start(lambda federation: federation.state, "8m")
        experiment = self.run_until_full(disk)
        self.federation.children["coordinator"].kill()
        disk.fill()
        coordinator = self.federation.launch_coordinator()
        end = time.monotonic() + 60
        # Where closing its log anew leaves it some room, it starts, and the next commit finds none.
        while not re.search("this start waits for it|is paused: disk_full|until the store has room", coordinator.errors()):
            self.assertIsNone(coordinator.process.poll(), coordinator.errors())
            self.assertLess(time.monotonic(), end, "it never met its full disk")
        disk.free()
        coordinator.event(lambda e: e.get("event") == "listening")
        self.check_end(experiment)

    def test_a_node_without_room_waits_and_goes_on_by_itself(self):
        disk = self.start(lambda federation: os.path.join(federation.folder, "client-1"), "2m")
        disk.fill()
        kept = ("--set", "train.optimizer_state=keep")  # state that goes with an update must be on disk with it
        experiment = self.federation.submit(*ROUNDS, *kept)
        end = time.monotonic() + 30
        while "trying again until it works" not in self.federation.children["client-1"].errors():
            self.assertLess(time.monotonic(), end, "the node never met its full disk")
        status = self.federation.command("experiment", "status", experiment, "--json", deadline=10)
        self.assertEqual("running", events(status.stdout)[0]["state"])
        disk.free()
        self.check_end(experiment, *kept)

    def test_a_node_without_room_goes_on_with_updates_that_it_could_make_again(self):
        disk = self.start(lambda federation: os.path.join(federation.folder, "client-1"), "2m")
        disk.fill()
        self.check_end(self.federation.submit(*ROUNDS))
        self.assertNotIn("trying again until it works", self.federation.children["client-1"].errors())


if __name__ == "__main__":
    unittest.main()
