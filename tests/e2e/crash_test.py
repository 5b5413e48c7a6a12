"""kill -9 at any moment: the experiment goes on by itself, and its model is the undisturbed run's, bit for bit."""
import unittest

from federation import Federation, events, run, DIGITS

ROUNDS = ["--set", "experiment.rounds=8", "--set", "sync.min_clients=3"]


def undisturbed():
    done = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", 3, *ROUNDS, deadline=120)
    return events(done.stdout)[-1]["model_sha256"]


class Crash(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=3)
        self.federation.start_coordinator()
        self.federation.join_clients(3)
        self.addCleanup(self.federation.close)

    def test_a_coordinator_killed_in_the_middle_of_a_round_goes_on_to_the_same_model(self):
        experiment = self.federation.submit(*ROUNDS)
        watch = self.federation.watch(experiment)
        watch.event(lambda e: e.get("round") == 3)
        self.federation.children["coordinator"].kill()
        watch.stop()
        self.federation.start_coordinator()
        end = self.federation.finish(experiment)
        self.assertEqual("succeeded", end["state"])
        self.assertEqual(8, end["rounds"])
        self.assertEqual(undisturbed(), end["model_sha256"])

    def test_a_client_killed_in_the_middle_of_a_round_goes_on_to_the_same_model(self):
        experiment = self.federation.submit(*ROUNDS)
        watch = self.federation.watch(experiment)
        watch.event(lambda e: e.get("round") == 3)
        self.federation.children["client-2"].kill()
        self.federation.start_client(2)
        watch.stop()
        end = self.federation.finish(experiment)
        self.assertEqual("succeeded", end["state"])
        self.assertEqual(undisturbed(), end["model_sha256"])

    def test_both_killed_at_once_go_on_to_the_same_model(self):
        experiment = self.federation.submit(*ROUNDS)
        watch = self.federation.watch(experiment)
        watch.event(lambda e: e.get("round") == 2)
        self.federation.children["client-1"].kill()
        self.federation.children["coordinator"].kill()
        watch.stop()
        self.federation.start_client(1)
        self.federation.start_coordinator()
        self.assertEqual(undisturbed(), self.federation.finish(experiment)["model_sha256"])


if __name__ == "__main__":
    unittest.main()
