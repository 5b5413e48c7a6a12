"""A node that stops in the middle of a round, without a word: suspected within 2 s, and what follows is the file's choice."""
import time
import unittest

from federation import DIGITS, Federation, events, run, signal

FEW = ["--set", "experiment.rounds=5000", "--set", "sync.min_clients=2", "--set", "sync.quorum=2"]


class Silence(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=3)
        self.addCleanup(self.federation.close)
        self.federation.start_coordinator()
        self.federation.join_clients(3)

    def stop_node_in_round_3(self, *more):
        self.watch = self.federation.watch(self.federation.submit(*FEW, *more))
        self.addCleanup(self.watch.stop)
        self.watch.event(lambda e: e.get("round") == 2)
        self.federation.children["client-2"].signal(signal.SIGSTOP)
        self.addCleanup(self.federation.children["client-2"].signal, signal.SIGCONT)
        return time.monotonic()

    def test_without_rejoin_the_others_go_on_within_3_s_and_it_may_come_back(self):
        stopped = self.stop_node_in_round_3("--set", "sync.rejoin=0s")
        self.watch.event(lambda e: e.get("clients") == 2)
        self.assertLess(time.monotonic() - stopped, 3)
        self.federation.children["client-2"].signal(signal.SIGCONT)
        self.watch.event(lambda e: e.get("clients") == 3)

    def test_with_rejoin_its_work_counts_when_it_wakes(self):
        self.stop_node_in_round_3("--set", "sync.rejoin=60s")
        with self.assertRaises(TimeoutError):  # the round waits for it
            self.watch.event(lambda e: e.get("clients") == 2, deadline=4)
        self.federation.children["client-2"].signal(signal.SIGCONT)
        after = self.watch.event(lambda e: e.get("event") == "round", deadline=10)
        self.assertEqual(3, after["clients"])

    def test_after_a_longer_stop_it_learns_that_its_lease_is_gone_and_nothing_stale_counts(self):
        self.stop_node_in_round_3("--set", "sync.rejoin=1s")
        alone = self.watch.event(lambda e: e.get("clients") == 2)
        self.federation.children["client-2"].signal(signal.SIGCONT)
        back = self.watch.event(lambda e: e.get("clients") == 3)
        self.assertLess(alone["round"], back["round"])
        said = ""
        while "left out of round" not in said and "without this node's update" not in said:
            said += self.federation.children["client-2"].line(deadline=10) or self.fail("it was not told: " + said)
        for expected in range(back["round"] + 1, back["round"] + 52):
            event = self.watch.event(lambda e: e.get("event") == "round")
            self.assertEqual(expected, event["round"])
            self.assertLessEqual(event["clients"], 3)

    def test_a_stopped_coordinator_goes_on_to_the_same_model_when_it_wakes(self):
        few = ["--set", "experiment.rounds=12", "--set", "sync.min_clients=3"]
        experiment = self.federation.submit(*few)
        watch = self.federation.watch(experiment)
        self.addCleanup(watch.stop)
        watch.event(lambda e: e.get("round") == 3)
        coordinator = self.federation.children["coordinator"]
        coordinator.signal(signal.SIGSTOP)
        with self.assertRaises(TimeoutError):
            watch.event(lambda e: e.get("round") == 12, deadline=3)
        coordinator.signal(signal.SIGCONT)
        end = self.federation.finish(experiment)
        done = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", 3, *few)
        self.assertEqual(("succeeded", events(done.stdout)[-1]["model_sha256"]), (end["state"], end["model_sha256"]))


if __name__ == "__main__":
    unittest.main()
