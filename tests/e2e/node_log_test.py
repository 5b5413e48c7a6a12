"""`node log`: the admin reads what the node did; an operator reads it only where the node's own policy allows it."""
import os
import re
import unittest

from federation import Child, Federation, events, run


class NodeLog(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=2)
        self.addCleanup(self.federation.close)
        self.federation.start_coordinator()

    def join(self, number, policy=""):
        state = os.path.join(self.federation.folder, f"client-{number}")
        os.makedirs(state, mode=0o700)
        with open(os.path.join(state, "policy.toml"), "w", encoding="utf-8") as file:
            file.write(policy)
        self.token = self.federation.token(f"client-{number}")
        self.federation.start_client(number, self.token).event(lambda e: "joined" in e.get("text", ""))
        return state

    def train(self):
        self.federation.finish(self.federation.submit("--set", "experiment.rounds=2", "--set", "sync.min_clients=1"))

    def expect(self, done, code, *words):
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_an_admin_reads_assignments_results_and_bytes_also_of_a_node_that_does_not_run(self):
        state = self.join(1)
        self.train()
        self.federation.children["client-1"].stop()
        done = run("node", "log", "--json", "--state", state)
        self.assertEqual(0, done.returncode, done.stderr)
        lines = events(done.stdout)
        whats = [line["what"] for line in lines]
        self.assertEqual(2, whats.count("trained"), whats)
        for what in ("joined", "assigned", "offered", "committed", "ended"):
            self.assertIn(what, whats)
        assigned = next(line for line in lines if line["what"] == "assigned")
        self.assertEqual(("digits-fedavg", "digits", "operator"),
                         (assigned["name"], assigned["dataset"], assigned["submitted_by"]))
        ended = next(line for line in lines if line["what"] == "ended")
        self.assertGreater(ended["bytes_up"], 2 * 4810 * 4)
        self.assertEqual(sorted(line["n"] for line in lines), [line["n"] for line in lines])
        people = run("node", "log", "--lines", 3, "--state", state).stdout.splitlines()
        self.assertEqual(3, len(people))
        self.assertRegex(people[-1], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  ended +experiment=1")
        with open(os.path.join(state, "log", "node.log"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(0o600, os.stat(file.name).st_mode & 0o777)
        self.assertNotIn(self.token, text)
        self.assertNotIn("PRIVATE", text)

    def test_an_operator_reads_it_only_where_the_policy_allows_and_a_refusal_names_file_and_line(self):
        self.join(1)
        self.join(2, "min_cohort = 1\nshare_log = true\n")
        self.train()
        self.expect(self.federation.command("node", "log", "client-1"), 3, "default policy", "share_log = true")
        done = self.federation.command("node", "log", "client-2", "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("trained", [line.get("what") for line in events(done.stdout)])
        totals = events(done.stdout)[-1]
        self.assertEqual(("node_totals", "client-2", 2), (totals["event"], totals["node"], totals["counts"]["trained"]))
        mine = run("node", "log", "--state", os.path.join(self.federation.folder, "client-1"))
        self.assertRegex(mine.stdout, r"log_refused +by=operator")

    def test_the_policys_operators_bound_who_reads_it(self):
        self.join(1, 'share_log = true\noperators = ["alice"]\n')
        self.expect(self.federation.command("node", "log", "client-1"), 3, "policy.toml:2:1", '"operator" is not allowed')

    def test_follow_goes_on_with_new_lines(self):
        state = self.join(1)
        follow = Child(["node", "log", "--follow", "--json", "--state", state], self.federation.folder, "follow")
        self.addCleanup(follow.stop)
        follow.event(lambda e: e.get("what") == "joined")
        self.train()
        follow.event(lambda e: e.get("what") == "ended")

    def test_an_unknown_an_absent_and_an_unnamed_node_are_told_apart(self):
        state = self.join(1, "share_log = true\n")
        self.expect(self.federation.command("node", "log", "cleint-1"), 2, 'did you mean "client-1"?')
        self.federation.children["client-1"].stop()
        self.expect(self.federation.command("node", "log", "client-1"), 3, "is not connected", "--state DIR")
        self.expect(self.federation.command("node", "log"), 2, "name the node")
        self.expect(run("node", "log", "--state", "/no/such"), 2, "no log here")
        self.assertTrue(re.search("joined", run("node", "log", "--state", state).stdout))


if __name__ == "__main__":
    unittest.main()
