"""The demo as a newcomer runs it: it learns, repeats bit for bit, and what it prints at its end works as printed."""
import os
import re
import subprocess
import tempfile
import unittest

from federation import DEADLINE_S, DIGITS, Child, events, run, signal


def demo(*arguments, env=None):
    return run("demo", "digits-fedavg", "--data", f"digits={DIGITS}", *arguments, deadline=120, env=env)


class Demo(unittest.TestCase):
    def test_two_demos_and_the_simulator_give_one_digest_whatever_the_threads(self):
        ends = []
        for workers in (1, 4):
            done = demo("--json", "--workers", workers)
            self.assertEqual(0, done.returncode, done.stderr)
            ends.append(events(done.stdout)[-1])
        simulated = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", 5, deadline=120)
        self.assertEqual(0, simulated.returncode, simulated.stderr)
        ends.append(events(simulated.stdout)[-1])
        self.assertEqual(1, len({end["model_sha256"] for end in ends}), ends)
        self.assertEqual(1, len({end["accuracy"] for end in ends}))
        self.assertGreaterEqual(ends[0]["accuracy"], 0.95)
        self.assertEqual("succeeded", ends[0]["state"])

    def test_rounds_count_bytes_and_clients(self):
        done = demo("--json", "--set", "experiment.rounds=3")
        rounds = [e for e in events(done.stdout) if e["event"] == "round"]
        self.assertEqual([1, 2, 3], [e["round"] for e in rounds])
        for event in rounds:
            self.assertEqual(5, event["clients"])
            # Five updates of 4,810 f32 parameters, and TLS around them: more than the payload, less than 20 % more.
            self.assertGreater(event["bytes_up"], 5 * 4810 * 4)
            self.assertLess(event["bytes_up"], 1.2 * 5 * 4810 * 4 + 20000)
            self.assertEqual(64, len(event["model_sha256"]))

    def test_what_it_prints_at_the_end_works_as_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            state = os.path.join(folder, "demo")
            done = demo("--state", state, "--set", "experiment.rounds=3", "--clients", "3")
            self.assertEqual(0, done.returncode, done.stderr)
            model = re.search(r"^model +(\S+)$", done.stdout, re.M)[1]
            digest = re.search(r"^SHA-256 +([0-9a-f]{64})$", done.stdout, re.M)[1]
            summed = subprocess.run(["sha256sum", model], capture_output=True, text=True, check=True).stdout
            self.assertTrue(summed.startswith(digest))
            commands = re.findall(r"^    (/\S.*)$", done.stdout, re.M)
            self.assertEqual(3, len(commands), done.stdout)
            for command in commands:
                again = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
                self.assertEqual(0, again.returncode, command + "\n" + again.stderr)
                if " simulate " in command:
                    self.assertIn(digest, again.stdout)
            self.assertTrue(all(len(line) <= 100 for line in done.stdout.splitlines() if not line.startswith("    ")
                                and "/" not in line), done.stdout)

    def test_it_leaves_nothing_behind_unless_asked_to_or_failed_and_then_says_where(self):
        with tempfile.TemporaryDirectory() as folder:
            left = lambda: os.listdir(folder)
            short = ("--set", "experiment.rounds=1", "--clients", "2")
            done = demo(*short, "--json", env={"TMPDIR": folder})
            self.assertEqual((0, []), (done.returncode, left()), done.stderr)
            self.assertIsNone(events(done.stdout)[-1]["model"])
            kept = demo(*short, "--keep", env={"TMPDIR": folder})
            self.assertEqual(0, kept.returncode, kept.stderr)
            self.assertTrue(os.path.exists(re.search(r"^model +(\S+)$", kept.stdout, re.M)[1]))
            self.assertEqual(1, len(left()))
            failed = demo("--clients", "2", "--slow", "1000x", "--set", "sync.straggler_deadline=1s", env={"TMPDIR": folder})
            self.assertEqual(1, failed.returncode, failed.stdout)
            self.assertIn(os.path.join(folder, "causeway-demo-"), failed.stdout)
            self.assertEqual(2, len(left()))

    def test_slow_links_change_the_times_and_not_the_model(self):
        short = ("--set", "experiment.rounds=2", "--clients", "2", "--json")
        plain, shaped = (events(demo(*short, *link).stdout)[-1] for link in (
            (), ("--link", "uplink=2mbit,downlink=8mbit,delay=10ms,jitter=2ms; client-2: uplink=1mbit")))
        self.assertEqual(plain["model_sha256"], shaped["model_sha256"])
        # Two rounds of 19 KB up and 19 KB down over 1 and 1 Mbit/s, and their delays: no machine is faster.
        self.assertGreater(shaped["seconds"], 2 * 2 * 4810 * 4 * 8 / 1e6)

    def test_smashed_data_too_go_over_the_slow_links_and_change_no_bit(self):
        short = ("demo", "digits-gsfl", "--data", f"digits={DIGITS}", "--set", "experiment.rounds=2", "--clients", "3",
                 "--set", "sync.min_clients=3", "--json")
        plain, shaped = (events(run(*short, *link, deadline=120).stdout)[-1]
                         for link in ((), ("--link", "uplink=2mbit,downlink=8mbit,delay=2ms")))
        self.assertEqual(plain["model_sha256"], shaped["model_sha256"])
        # All that three lines of 2 Mbit/s can carry at a time: no machine is faster.
        self.assertGreater(shaped["seconds"], 0.95 * shaped["stream_bytes_up"] * 8 / 3 / 2e6)

    def test_an_interrupted_demo_leaves_nothing_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            running = Child(["demo", "digits-fedavg", "--data", f"digits={DIGITS}", "--json", "--set", "experiment.rounds=5000"],
                            folder, "demo", env={**os.environ, "TMPDIR": folder})
            running.event(lambda e: e.get("round") == 2)
            running.signal(signal.SIGINT)
            self.assertEqual(130, running.process.wait(DEADLINE_S))
            self.assertEqual(["demo.log"], os.listdir(folder))
            running.stop()

    def test_its_picture_at_a_terminal_fits_100_columns(self):
        done = demo("--set", "experiment.rounds=2")
        header = [line for line in done.stdout.splitlines() if "accuracy" in line and "round" in line]
        self.assertTrue(header and len(header[0]) <= 100)


if __name__ == "__main__":
    unittest.main()
