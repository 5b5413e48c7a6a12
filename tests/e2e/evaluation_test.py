"""Evaluation on the clients costs no second download of a model: it is the one that the next round trains from."""
import unittest

from federation import Federation, events

# Above what comes in memory, so that the model is a file in the downloads, which adopting another one must leave alone.
SETTINGS = ["--set", "experiment.rounds=4", "--set", "sync.min_clients=2", "--set", "train.local_epochs=1",
            "--set", 'model.layers=["flatten","dense 20000","relu","dense 10"]']


class Evaluation(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=2)
        self.federation.start_coordinator()
        self.federation.join_clients(2)
        self.addCleanup(self.federation.close)

    def rounds(self, where):
        experiment = self.federation.submit(*SETTINGS, "--set", f'evaluation.where="{where}"')
        self.assertEqual("succeeded", self.federation.finish(experiment)["state"])
        watched = self.federation.command("experiment", "watch", experiment, "--json")
        return [event for event in events(watched.stdout) if event.get("event") == "round"]

    def test_a_model_goes_to_a_client_once(self):
        plain, measured = self.rounds("none"), self.rounds("clients")
        self.assertEqual(4, len(measured))
        for event in measured:
            self.assertEqual(2, event["evaluated_by_clients"]["count"], event)
        down = [sum(event["bytes_down"] for event in rounds[1:]) for rounds in (plain, measured)]
        self.assertLess(down[1], 1.4 * down[0])  # the last model, which nobody trains from, is the one that is extra


if __name__ == "__main__":
    unittest.main()
