"""What was decided is repeated and explained: the log of a run that was disturbed, on this machine and without it."""
import gzip
import os
import unittest

from federation import DIGITS, Federation, events

ROUNDS = 6


class Replay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.federation = Federation(clients=3)
        cls.addClassCleanup(cls.federation.close)
        cls.federation.start_coordinator()
        cls.federation.join_clients(3)
        cls.disturbed = cls.federation.submit("--set", f"experiment.rounds={ROUNDS}", "--set", "sync.min_clients=2",
                                              "--set", "sync.quorum=1", "--set", "sync.rejoin=0s",
                                              "--set", "train.optimizer_state=keep", "--set", "train.local_epochs=60")
        watch = cls.federation.watch(cls.disturbed)
        watch.event(lambda e: e.get("round") == 2)
        cls.federation.children["client-3"].kill()
        cls.done = watch.event(lambda e: e.get("event") == "done")
        watch.stop()

    def data(self, *numbers):
        return [word for number in numbers
                for word in ("--data", f"client-{number}:digits={self.federation.parts}/part-{number}.csv.gz")]

    def replay(self, *words, experiment=None):
        return self.federation.command("experiment", "replay", experiment or self.disturbed, "--json", *words)

    def test_a_run_in_which_a_client_was_killed_comes_to_the_same_bits_in_every_round(self):
        self.assertEqual("succeeded", self.done["state"])
        done = self.replay(*self.data(1, 2, 3))
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        rounds = [e for e in events(done.stdout) if e["event"] == "replayed"]
        self.assertEqual(list(range(ROUNDS + 1)), [e["round"] for e in rounds])
        self.assertTrue(all(e["same"] and e["model_sha256"] == e["recorded_sha256"] for e in rounds))
        self.assertEqual(self.done["model_sha256"], events(done.stdout)[-1]["model_sha256"])

    def test_the_file_that_was_divided_as_a_demo_does_it_stands_for_all_parts(self):
        done = self.replay("--data", f"digits={DIGITS}")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_other_data_end_it_with_the_round_and_the_node(self):
        changed = os.path.join(self.federation.folder, "changed.csv.gz")
        with gzip.open(f"{self.federation.parts}/part-2.csv.gz", "rt") as file:
            lines = file.read().splitlines()
        lines[1] = ",".join("7" if value == "0" and place == 3 else value
                            for place, value in enumerate(lines[1].split(",")))
        lines[2] = lines[1]
        with gzip.open(changed, "wt") as file:
            file.write("\n".join(lines) + "\n")
        done = self.replay(*self.data(1, 3), "--data", f"client-2:digits={changed}")
        self.assertEqual(1, done.returncode, done.stdout + done.stderr)
        self.assertIn("round 1 has other bits", done.stderr)
        words = self.federation.command("experiment", "replay", self.disturbed, *self.data(1, 3), "--data",
                                        f"client-2:digits={changed}").stdout
        self.assertIn(f'note: {changed} is not what client-2 declares as "digits" today', words)
        self.assertEqual(1, words.count("note: "), words)
        last = [e for e in events(done.stdout) if e["event"] == "replayed"][-1]
        self.assertEqual((1, False, ["client-2"]), (last["round"], last["same"], last["differs"]))

    def test_missing_data_are_named_with_what_to_type(self):
        done = self.replay(*self.data(1))
        self.assertNotEqual(0, done.returncode)
        self.assertIn("--data client-2:digits=PATH --data client-3:digits=PATH", done.stderr)
        done = self.replay(*self.data(1, 2, 3), "--data", f"client-33:digits={DIGITS}")
        self.assertIn("client-3", done.stderr)
        self.assertEqual(2, done.returncode)

    def test_a_resumed_run_is_replayed_with_what_it_goes_on_from(self):
        done = self.federation.command("experiment", "resume", self.disturbed, "--rounds", ROUNDS + 2, "--json",
                                       "--set", "sync.min_clients=2", "--set", "train.local_epochs=3")
        self.assertEqual(0, done.returncode, done.stderr)
        resumed = events(done.stdout)[0]["experiment"]
        end = self.federation.finish(resumed)
        self.assertEqual("succeeded", end["state"])
        done = self.replay(*self.data(1, 2, 3), experiment=resumed)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual(end["model_sha256"], events(done.stdout)[-1]["model_sha256"])

        both = self.federation.command("experiment", "compare", self.disturbed, resumed)
        self.assertEqual(0, both.returncode, both.stderr)
        self.assertLessEqual(max(map(len, both.stdout.splitlines())), 100)
        self.assertRegex(both.stdout, r"train\.local_epochs +60 +3\n")
        self.assertNotIn("train.batch", both.stdout)
        self.assertRegex(both.stdout, rf"rounds +{ROUNDS} +{ROUNDS + 2}\n")
        compared = events(self.federation.command("experiment", "compare", self.disturbed, resumed, "--json").stdout)[-1]
        self.assertIn({"setting": "train.local_epochs", "values": ["60", "3"]}, compared["settings"])
        self.assertEqual(end["accuracy"], compared["experiments"][1]["accuracy"])
        why = self.federation.command("experiment", "explain", resumed)
        self.assertIn(f"it goes on from round {ROUNDS} of experiment {self.disturbed}.", why.stdout)

    def test_the_explanation_names_who_was_dropped_and_where_the_time_went(self):
        done = self.federation.command("experiment", "explain", self.disturbed)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn(f"has succeeded after {ROUNDS} of {ROUNDS} rounds", done.stdout)
        self.assertRegex(done.stdout, r"client-3 was dropped from rounds? \d.*\(gone\)")
        self.assertRegex(done.stdout, r"6 rounds took .* took most: ")
        told = events(self.federation.command("experiment", "explain", self.disturbed, "--json").stdout)
        dropped = next(e for e in told if e["about"] == "dropped")
        self.assertEqual("client-3", dropped["node"])

        one = self.federation.command("experiment", "explain", self.disturbed, "--round", dropped["rounds"][0])
        self.assertRegex(one.stdout, r"the updates of 2 of 3 members count in round \d: client-1, client-2\.")
        self.assertRegex(one.stdout, r"\nclient-3 .* gone")
        none = self.federation.command("experiment", "explain", self.disturbed, "--round", 99)
        self.assertIn("there are rounds 1 to 6", none.stderr)


if __name__ == "__main__":
    unittest.main()
