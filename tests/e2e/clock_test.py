"""Clocks that are an hour off, either way, at either side: enrolment, TLS and rounds do not mind, nor does the model."""
import os
import shutil
import subprocess
import tempfile
import unittest

from federation import BUILD, CAUSEWAY, DIGITS, events, run
from supervised import CLIENTS, Supervised, split_digits

CLOCK = os.path.join(BUILD, "tests", "crash", "clock_offset.so")
SETTINGS = ["--set", "experiment.rounds=4", "--set", "sync.min_clients=3"]
HOUR_S = 3600


def off_by(seconds):
    return {"LD_PRELOAD": CLOCK, "CAUSEWAY_CLOCK_OFFSET": str(seconds)}


@unittest.skipUnless(os.path.exists(CLOCK), "the sanitizers' builds have no preloaded clock")
class Clock(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="causeway-clock-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.parts = split_digits(self.folder)

    def run_with(self, coordinator_s, clients_s):
        federation = Supervised(self.parts)
        self.addCleanup(federation.close)
        federation.start_coordinator(off_by(coordinator_s))
        federation.start_clients({f"client-{n + 1}": off_by(s) for n, s in enumerate(clients_s)})
        end = federation.finish(federation.submit("skewed", *SETTINGS))
        done = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", CLIENTS, *SETTINGS)
        self.assertEqual(("succeeded", events(done.stdout)[-1]["model_sha256"]), (end["state"], end["model_sha256"]))
        return federation

    def test_the_clock_of_the_test_is_off(self):
        years = subprocess.run(["date", "+%Y"], env={**os.environ, **off_by(400 * 24 * HOUR_S)}, capture_output=True,
                               text=True, check=True).stdout
        now = subprocess.run(["date", "+%Y"], capture_output=True, text=True, check=True).stdout
        self.assertLess(int(now), int(years))

    def test_clients_an_hour_early_and_an_hour_late_join_and_train(self):
        self.run_with(0, [HOUR_S, -HOUR_S, 0])

    def test_a_coordinator_an_hour_off_serves_them_and_its_tokens_expire_by_its_own_clock(self):
        federation = self.run_with(-HOUR_S, [0, HOUR_S, -HOUR_S])
        token = events(federation.command("token", "new", "--json", "--name", "late", "--expires", "30m"))[0]["token"]
        federation.start("late", ["join", token, "--state", os.path.join(federation.folder, "late"), "--data",
                                  f"digits={self.parts}/part-1.csv.gz"])
        while not any(line.get("node") == "late" and line.get("state") == "online"
                      for line in events(federation.command("node", "list", "--json"))):
            self.assertIsNone(federation.processes["late"].poll(), federation.logs())

    def test_a_clock_years_off_is_told_as_such(self):
        federation = Supervised(self.parts)
        self.addCleanup(federation.close)
        federation.start_coordinator()
        token = events(federation.command("token", "new", "--json", "--name", "old"))[0]["token"]
        done = subprocess.run([CAUSEWAY, "join", token, "--state", os.path.join(federation.folder, "old")],
                              env={**os.environ, **off_by(-400 * 24 * HOUR_S)}, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertNotEqual(0, done.returncode)
        self.assertIn("this machine's clock says", done.stdout + done.stderr)
        self.assertIn("the clock is behind", done.stdout + done.stderr)
        self.assertFalse(os.path.exists(os.path.join(federation.folder, "old")))

    def test_a_federation_is_not_begun_by_a_clock_before_the_build(self):
        folder = os.path.join(self.folder, "early")
        done = subprocess.run([CAUSEWAY, "coordinator", "--state", folder, "--listen", "127.0.0.1:0"],
                              env={**os.environ, **off_by(-400 * 24 * HOUR_S)}, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn("set the clock", done.stderr)
        self.assertFalse(os.path.exists(folder))


if __name__ == "__main__":
    unittest.main()
