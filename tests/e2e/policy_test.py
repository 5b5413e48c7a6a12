"""A node's own rules: what it refuses is refused with the file and line, and told to the operator."""
import os
import unittest

from federation import Child, Federation, events, run


class Policy(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=2)
        self.addCleanup(self.federation.close)

    def write_policy(self, number, text):
        folder = os.path.join(self.federation.folder, f"client-{number}")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(os.path.join(folder, "policy.toml"), "w", encoding="utf-8") as file:
            file.write(text)

    def test_a_refused_assignment_names_the_rule_to_the_node_and_to_the_operator(self):
        self.write_policy(1, "# at least three of us\nmin_cohort = 3\n")
        self.federation.start_coordinator()
        self.federation.join_clients(2)
        node = self.federation.children["client-1"]
        experiment = self.federation.submit("--set", "experiment.rounds=2", "--set", "sync.min_clients=2", "--set", "sync.quorum=2")
        told = node.event(lambda e: "declined" in e.get("text", ""))["text"]
        self.assertIn("policy.toml:2:1: min_cohort: the round has 2 members", told)
        done = self.federation.finish(experiment)
        self.assertEqual("failed", done["state"])
        self.assertIn("policy.toml:2:1", done["reason"])
        self.assertNotIn(self.federation.folder, done["reason"])

    def test_one_node_that_refuses_leaves_the_others_to_go_on(self):
        self.write_policy(1, 'operators = ["somebody-else"]\n')
        self.federation.start_coordinator()
        self.federation.join_clients(2)
        experiment = self.federation.submit("--set", "experiment.rounds=2", "--set", "sync.min_clients=1", "--set", "sync.quorum=1")
        watch = self.federation.watch(experiment)
        self.addCleanup(watch.stop)
        self.federation.children["client-1"].event(lambda e: "declined" in e.get("text", ""))
        self.assertEqual(1, watch.event(lambda e: e.get("event") == "round")["clients"])
        self.assertEqual("succeeded", self.federation.finish(experiment)["state"])

    def test_join_prints_the_policy_in_force(self):
        self.write_policy(1, 'datasets = ["digits"]\n')
        self.federation.start_coordinator()
        words = ["join", self.federation.token("client-1"), "--json", "--allow", "split", "--state",
                 os.path.join(self.federation.folder, "client-1")]
        node = Child(words, self.federation.folder, "client-1")
        self.federation.children["client-1"] = node
        policy = node.event(lambda e: e.get("event") == "policy")
        self.assertEqual(["digits"], policy["datasets"])
        self.assertTrue(policy["allow_split"])
        self.assertIsNone(policy["hours"])

    def test_a_mistake_in_the_policy_keeps_the_node_from_enrolling(self):
        self.write_policy(1, 'dataset = ["digits"]\nmin_cohort = 0\n')
        self.federation.start_coordinator()
        folder = os.path.join(self.federation.folder, "client-1")
        done = run("join", self.federation.token("client-1"), "--state", folder, "--json")
        self.assertEqual(2, done.returncode)
        self.assertIn(f'{folder}/policy.toml:1:1: error: unknown key "dataset"; did you mean "datasets"?', done.stderr)
        self.assertIn(f"{folder}/policy.toml:2:14: error: min_cohort", done.stderr)
        self.assertEqual("bad_policy", events(done.stdout)[-1]["code"])
        self.assertFalse(os.path.exists(os.path.join(folder, "node")))


if __name__ == "__main__":
    unittest.main()
