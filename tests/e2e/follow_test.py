"""Commands that follow an experiment outlive a restart of the coordinator, say what they wait for, and end by a stated
limit; Ctrl-C ends the command and not the experiment. A pause and a lost node are in the coordinator's log by name."""
import os
import signal
import unittest

from federation import Child, Federation, events

ROUNDS = 40
SETTINGS = ["--set", f"experiment.rounds={ROUNDS}", "--set", "sync.min_clients=2", "--set", "train.local_epochs=20"]


class Follow(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=2)
        self.addCleanup(self.federation.close)
        self.federation.start_coordinator()

    def child(self, *words):
        child = Child([*words, "--state", self.federation.state], self.federation.folder, "-".join(map(str, words[:3])))
        self.addCleanup(child.stop)
        return child

    def restart(self):
        self.federation.children["coordinator"].kill()
        self.federation.start_coordinator()

    def require_whole(self, child, seen):
        """Every round once, in order, over the restart; and what is said of it."""
        said = []
        while seen[-1] < ROUNDS:
            event = child.event(lambda e: True)
            if event["event"] == "round":
                seen.append(event["round"])
            else:
                said.append(event["event"])
        self.assertEqual(list(range(1, ROUNDS + 1)), seen)
        self.assertEqual(["disconnected", "reconnected"], said)
        self.assertEqual("succeeded", child.event(lambda e: e["event"] == "done")["state"])
        self.assertIsNone(child.line())
        self.assertEqual(0, child.process.wait(10))

    def test_watch_goes_on_from_the_round_that_it_had(self):
        self.federation.join_clients(2)
        watch = self.child("experiment", "watch", self.federation.submit(*SETTINGS), "--json")
        seen = [watch.event(lambda e: e["event"] == "round")["round"] for _ in range(3)]
        self.restart()
        self.require_whole(watch, seen)

    def test_submit_watch_does_too(self):
        self.federation.join_clients(2)
        watch = self.child("experiment", "submit", "digits-fedavg", "--json", "--watch", *SETTINGS)
        seen = [watch.event(lambda e: e["event"] == "round")["round"] for _ in range(3)]
        self.restart()
        self.require_whole(watch, seen)

    def test_wait_and_a_watch_for_people_wait_too_and_say_so(self):
        self.federation.join_clients(2)
        experiment = self.federation.submit(*SETTINGS)
        wait = self.child("experiment", "wait", experiment, "--json")
        told = self.child("experiment", "watch", experiment)
        while "1/" not in told.line():
            pass
        self.restart()
        self.assertEqual(600, wait.event(lambda e: e["event"] == "disconnected")["reconnect_s"])
        wait.event(lambda e: e["event"] == "reconnected")
        lines = iter(told.line, None)
        self.assertTrue(any("waiting up to 10m" in line and "--reconnect" in line for line in lines))
        self.assertTrue(any("answers again" in line for line in lines))
        self.assertEqual("succeeded", wait.event(lambda e: e["event"] == "done")["state"])
        self.assertEqual(0, wait.process.wait(10))
        self.assertTrue(any(line.startswith("succeeded") for line in lines))

    def test_only_a_stated_long_silence_ends_them(self):
        self.federation.join_clients(1)
        experiment = self.federation.submit("--set", "sync.min_clients=2")
        watch = self.child("experiment", "watch", experiment, "--json", "--reconnect", "2s")
        waits = self.child("experiment", "watch", experiment)
        self.assertIn("waiting for clients that hold \"digits\": 1 of 2 are here", waits.line())
        self.federation.children["coordinator"].stop()
        watch.event(lambda e: e["event"] == "disconnected")
        error = watch.event(lambda e: e["event"] == "error")
        self.assertEqual("coordinator_away", error["code"])
        self.assertIn("experiment watch", error["message"])
        self.assertEqual(3, watch.process.wait(10))
        for command in ("watch", "wait"):
            help_text = self.federation.command("experiment", command, "--help").stdout
            self.assertRegex(help_text, r"--reconnect DURATION=10m +a coordinator that is away is waited for so long")

    def test_ctrl_c_says_that_the_run_goes_on_and_how_to_follow_or_end_it(self):
        self.federation.join_clients(1)
        experiment = self.federation.submit("--set", "sync.min_clients=2")
        for command in ("watch", "wait"):
            child = self.child("experiment", command, experiment)
            self.assertIn("waiting for", child.line())
            child.signal(signal.SIGINT)
            text = "\n".join(iter(child.line, None))
            for words in (f"experiment {experiment} goes on", f"experiment watch {experiment}",
                          f"experiment cancel {experiment}"):
                self.assertIn(words, text)
            self.assertEqual(130, child.process.wait(10))
        status = events(self.federation.command("experiment", "status", "--json").stdout)[-1]
        self.assertEqual("starting", status["state"])

    def kill_at_work(self, node, experiment):
        """A round must have it: between two rounds it is only missing from the next."""
        for _ in range(400):  # each asks a process, which takes its time
            status = events(self.federation.command("experiment", "status", experiment, "--json").stdout)[-1]
            if any(m["node"] == node and m["state"] == "working" for m in status.get("members", [])):
                return self.federation.children[node].kill()
        self.fail(f"never so: {status}")

    def test_a_killed_node_is_logged_as_gone_and_the_line_says_what_waiting_for_it_costs(self):
        self.federation.join_clients(2)
        experiment = self.federation.submit("--set", "experiment.rounds=3000", "--set", "train.local_epochs=100", "--set", "sync.min_clients=1", "--set",
                                            "sync.quorum=1", "--set", "sync.rejoin=2s", "--set",
                                            "sync.straggler_deadline=60s")
        told = self.child("experiment", "watch", experiment)
        watch = self.federation.watch(experiment)
        self.addCleanup(watch.stop)
        watch.event(lambda e: e["event"] == "round" and e["clients"] == 2)
        self.kill_at_work("client-2", experiment)
        without = watch.event(lambda e: e.get("without"))["without"][0]
        self.assertEqual(("client-2", "gone"), (without["node"], without["why"]))
        lines = iter(told.line, None)
        line = next(line for line in lines if "client-2" in line)
        self.assertRegex(line, r"waits for client-2 \(gone\), up to \d+s more \(sync.rejoin\)")
        self.assertTrue(next(line for line in lines if "without client-2: gone, after 2" in line))
        self.assertIn("(gone)", self.federation.children["coordinator"].errors())
        self.federation.command("experiment", "cancel", experiment)


if __name__ == "__main__":
    unittest.main()
