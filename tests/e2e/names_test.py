"""Experiments by name: the newest of that name, said so where there are several, and what there is where there is none."""
import os
import unittest

from federation import Federation, events


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.federation = Federation(clients=1)
        cls.federation.start_coordinator()
        cls.federation.join_clients(1)
        short = ("--set", "experiment.rounds=1", "--set", "sync.min_clients=1")
        for name in ("alpha", "beta", "alpha", "gamma"):
            cls.federation.finish(cls.federation.submit(*short, "--set", f"experiment.name={name}"))

    @classmethod
    def tearDownClass(cls):
        cls.federation.close()

    def ask(self, command, *words, code=0):
        done = self.federation.command("experiment", command, *words)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done

    def test_a_name_that_one_has_is_as_good_as_its_number_in_every_command(self):
        out = os.path.join(self.federation.folder, "beta.safetensors")
        for command, *words in (["status"], ["watch"], ["wait"], ["export", "--out", out]):
            with self.subTest(command=command):
                self.assertNotIn("note:", self.ask(command, "beta", *words).stdout)
        self.assertEqual(2, events(self.ask("status", "beta", "--json").stdout)[0]["id"])
        self.assertIn("already over", self.ask("cancel", "beta", code=3).stderr)

    def test_of_several_with_one_name_it_is_the_newest_and_said_so(self):
        self.assertIn('note: 2 experiments are called "alpha" (1, 3); this is about 3, the newest',
                      self.ask("status", "alpha").stdout)
        self.assertEqual(3, events(self.ask("status", "alpha", "--json").stdout)[0]["id"])
        self.assertEqual(1, events(self.ask("status", "1", "--json").stdout)[0]["id"])

    def test_without_a_name_it_is_the_newest_of_all(self):
        self.assertEqual("gamma", events(self.ask("status", "--json").stdout)[0]["name"])

    def test_an_unknown_name_or_number_says_what_there_is(self):
        wrong = self.ask("status", "gamm", code=2).stderr
        self.assertIn('did you mean "gamma"?', wrong)
        self.assertIn("4 (gamma), 3 (alpha), 2 (beta), 1 (alpha)", wrong)
        self.assertIn("4 (gamma)", self.ask("export", "17", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
