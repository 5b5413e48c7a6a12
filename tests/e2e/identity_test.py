"""Who belongs to the federation: revocation in the middle of a run, several operators, the audit log."""
import json
import os
import shutil
import time
import unittest

from federation import DEADLINE_S, Federation, events, run


class Identity(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=3)
        self.federation.start_coordinator()
        self.addCleanup(self.federation.close)

    def at(self, name):
        return os.path.join(self.federation.folder, name)

    def nodes(self):
        done = self.federation.command("node", "list", "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        return {node["node"]: node for node in events(done.stdout)}

    def audit(self):
        done = self.federation.command("audit", "show", "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        return [line["entry"] for line in events(done.stdout)]

    def expect(self, done, code, *words):
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def make_operator(self, name):
        state = self.at(name)
        done = run("join", self.federation.token(name, "--role", "operator"), "--json", "--state", state)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual({"event": "enrolled", "name": name, "role": "operator", "federation": "causeway"},
                         events(done.stdout)[-1])
        return state

    def test_a_node_revoked_in_the_middle_of_a_run_is_out_at_once_and_for_good_and_the_others_go_on(self):
        self.federation.join_clients(3)
        experiment = self.federation.submit("--set", "experiment.rounds=60", "--set", "sync.min_clients=2", "--set",
                                            "sync.quorum=1")
        watch = self.federation.watch(experiment)
        self.addCleanup(watch.stop)
        watch.event(lambda e: e.get("round") == 2)
        self.assertEqual(0, self.federation.command("node", "revoke", "client-2").returncode)
        revoked = self.federation.children["client-2"]
        self.assertEqual(3, revoked.process.wait(DEADLINE_S))  # told, and ended by itself
        self.assertIn("revoked", revoked.errors())
        end = self.federation.finish(experiment, deadline=120)
        self.assertEqual("succeeded", end["state"])
        last = watch.event(lambda e: e.get("round") == 60)
        self.assertEqual(2, last["clients"])

        again = self.federation.start_client(2)
        self.assertEqual(3, again.process.wait(DEADLINE_S))
        self.assertIn("revoked", again.errors())
        self.assertEqual("revoked", self.nodes()["client-2"]["state"])
        self.assertEqual("online", self.nodes()["client-1"]["state"])
        self.expect(self.federation.command("node", "revoke", "client-2"), 2, "client-2", "node list")
        self.federation.children["coordinator"].kill()
        self.federation.start_coordinator()  # what is revoked stays so
        again = self.federation.start_client(2)
        self.assertEqual(3, again.process.wait(DEADLINE_S))

        lines = self.audit()
        for wanted in ({"event": "token.new", "node": "client-2", "by": "operator"},
                       {"event": "node.enrolled", "node": "client-2", "role": "client"},
                       {"event": "experiment.submitted", "by": "operator"},
                       {"event": "node.revoked", "node": "client-2", "by": "operator"},
                       {"event": "session.refused", "node": "client-2", "code": "revoked"},
                       {"event": "experiment.ended", "state": "succeeded"}):
            self.assertTrue(any(wanted.items() <= line.items() for line in lines), (wanted, lines))

    def test_a_revoked_name_comes_back_with_a_new_token_and_folder(self):
        self.federation.join_clients(1)
        old = self.federation.children["client-1"]
        self.assertEqual(0, self.federation.command("node", "revoke", "client-1").returncode)
        self.assertEqual(3, old.process.wait(DEADLINE_S))
        os.rename(self.at("client-1"), self.at("client-1-revoked"))
        self.federation.start_client(1, self.federation.token("client-1")).event(lambda e: "joined" in e.get("text", ""))
        self.assertEqual("online", self.nodes()["client-1"]["state"])

    def test_operators_of_their_own_machines_work_side_by_side_are_listed_and_revocable(self):
        self.federation.join_clients(2)
        alice, bob = self.make_operator("alice"), self.make_operator("bob")
        self.assertEqual("operator", self.nodes()["alice"]["role"])
        self.assertEqual("operator", self.nodes()["operator"]["role"])
        done = run("experiment", "submit", "digits-fedavg", "--json", "--set", "experiment.rounds=2", "--state", alice)
        self.assertEqual(0, done.returncode, done.stderr)
        experiment = events(done.stdout)[0]["experiment"]
        self.assertEqual(0, run("experiment", "wait", experiment, "--state", bob).returncode)
        model = self.at("model.safetensors")
        self.assertEqual(0, run("experiment", "export", "--out", model, "--state", bob).returncode)
        self.assertTrue(any(line["event"] == "experiment.submitted" and line["by"] == "alice" for line in self.audit()))
        self.assertEqual(0, run("join", "--state", alice).returncode)  # enrolled already: says so and ends

        self.expect(run("node", "revoke", "alice", "--state", alice), 3, "itself")
        self.assertEqual(0, run("node", "revoke", "alice", "--state", bob).returncode)
        self.expect(run("experiment", "list", "--state", alice), 3, "revoked")
        self.assertEqual(0, run("node", "revoke", "operator", "--state", bob).returncode)  # the first one, too
        self.expect(self.federation.command("node", "list"), 3, "revoked")
        self.assertEqual(0, run("node", "list", "--state", bob).returncode)

    def test_an_audit_log_verifies_against_a_head_noted_earlier_and_not_against_another(self):
        self.make_operator("alice")
        done = self.federation.command("audit", "verify", "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        noted = events(done.stdout)[0]
        self.assertGreaterEqual(noted["lines"], 2)
        self.make_operator("bob")
        self.assertEqual(0, self.federation.command("audit", "verify", "--head", noted["head"]).returncode)
        self.expect(self.federation.command("audit", "verify", "--head", "00" * 32), 1, "since that was noted")
        shown = self.federation.command("audit", "show", "--last", 1)
        self.assertIn("node.enrolled", shown.stdout)
        self.assertIn("node=bob", shown.stdout)

    def test_a_log_that_was_cut_verifies_by_itself_and_is_told_by_the_heads_that_a_node_has_seen(self):
        self.federation.join_clients(1)
        self.federation.children["coordinator"].stop()
        older = self.at("older")
        shutil.copytree(self.federation.state, older)
        self.federation.start_coordinator()
        self.federation.children["client-1"].event(lambda e: "joined" in e.get("text", ""))
        self.federation.token("somebody")  # a line that every head of the rounds below covers
        first = self.federation.submit("--set", "experiment.rounds=2", "--set", "sync.min_clients=1")
        self.assertEqual("succeeded", self.federation.finish(first)["state"])
        against = ["audit", "verify", "--against", self.at("client-1")]
        done = self.federation.command(*against)
        self.assertEqual(0, done.returncode, done.stderr)
        with open(os.path.join(self.at("client-1"), "audit_heads"), encoding="utf-8") as file:
            known = json.load(file)
        self.assertEqual("causeway", known["federation"])
        hashes = [line["hash"] for line in events(self.federation.command("audit", "show", "--json").stdout)]
        self.assertLessEqual(set(known["heads"]), set(hashes))

        self.federation.children["coordinator"].stop()
        shutil.rmtree(self.federation.state)
        shutil.move(older, self.federation.state)  # all of it, so that nothing in the folder contradicts the log
        self.federation.start_coordinator()
        self.assertEqual(0, self.federation.command("audit", "verify").returncode)  # a good chain in itself
        self.expect(self.federation.command(*against), 1, "does not hold the line with hash", known["heads"][0])

        # Neither is it forgotten when the log has grown again and the node has heard of that.
        self.federation.children["client-1"].event(lambda e: "joined" in e.get("text", ""))
        second = self.federation.submit("--set", "experiment.rounds=2", "--set", "sync.min_clients=1")
        self.assertEqual("succeeded", self.federation.finish(second)["state"])
        self.expect(self.federation.command(*against), 1, "does not hold the line with hash", known["heads"][0])
        self.expect(self.federation.command("audit", "verify", "--against", self.at("parts")), 2, "no heads")

    def test_a_token_is_read_from_stdin_works_once_and_not_after_its_time(self):
        token = self.federation.token("alice", "--role", "operator")
        self.assertEqual(0, run("join", "-", "--state", self.at("alice"), stdin=token + "\n").returncode)
        self.expect(run("join", "-", "--state", self.at("mallory"), stdin=token + "\n"), 3, "was used by another node")
        self.expect(run("join", "-", "--state", self.at("nobody")), 2, "no token came on stdin")
        self.expect(self.federation.command("token", "new", "--name", "alice"), 3, "node revoke alice")
        late = self.federation.token("bob", "--expires", "1s")
        end = time.time() + 3
        while time.time() < end:  # by the coordinator's clock, which is this one
            self.federation.command("node", "list")
        self.expect(run("join", late, "--state", self.at("bob")), 3, "has expired", "new one")
        self.assertTrue(any(line["event"] == "enrolment.refused" and line["code"] == "token_used"
                            for line in self.audit()))


if __name__ == "__main__":
    unittest.main()
