"""`causeway doctor`: each fault of a machine or a state folder is found, explained, and says how it is mended."""
import os
import socket
import subprocess
import tempfile
import unittest

from federation import CAUSEWAY, DEADLINE_S, Federation, events, free_port, run


def checks(done):
    """Result by check; the worst where a check has several lines."""
    order = ["ok", "warn", "fail"]
    found = {}
    for event in events(done.stdout):
        if event["event"] == "check":
            found[event["check"]] = max(found.get(event["check"], "ok"), event["result"], key=order.index)
    return found


class Doctor(unittest.TestCase):
    def doctor(self, *arguments):
        return run("doctor", "--json", "--listen", f"127.0.0.1:{free_port()}", *arguments)

    def test_a_machine_without_a_state_folder_is_looked_at(self):
        done = self.doctor()
        found = checks(done)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertEqual({"device", "descriptors", "memory", "clock", "clock_service", "disk", "port"}, set(found))
        self.assertEqual("ok", found["device"])
        last = events(done.stdout)[-1]
        self.assertEqual(("checked", 0), (last["event"], last["fail"]))

    def test_people_read_what_why_and_how_to_mend(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            done = run("doctor", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stdout, r"fail  port .*in use\n +why: .*\n +mend: .*--listen")

    def test_too_few_descriptors_fail(self):
        done = subprocess.run(["sh", "-c", f'ulimit -n 100; exec "{CAUSEWAY}" doctor --json --listen 127.0.0.1:{free_port()}'],
                              capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        self.assertEqual(1, done.returncode)
        self.assertEqual("fail", checks(done)["descriptors"])

    def test_a_folder_that_is_absent_or_empty_is_told_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual("fail", checks(self.doctor("--state", os.path.join(folder, "none")))["state"])
            self.assertEqual("warn", checks(self.doctor("--state", folder))["state"])

    def test_a_live_federation_is_well_and_a_stopped_one_says_what_is_missing(self):
        federation = Federation(clients=1)
        self.addCleanup(federation.close)
        federation.start_coordinator()
        federation.join_clients(1)
        node = os.path.join(federation.folder, "client-1")
        alice = os.path.join(federation.folder, "alice")
        self.assertEqual(0, run("join", federation.token("alice", "--role", "operator"), "--state", alice).returncode)
        for state in (federation.state, node, alice):
            with self.subTest(state=state):
                done = self.doctor("--state", state)
                self.assertEqual(0, done.returncode, done.stdout)
                found = checks(done)
                for check in ("modes", "lock", "authority", "certificate", "clock", "coordinator"):
                    self.assertEqual("ok", found[check], done.stdout)
        self.assertEqual("succeeded", federation.finish(federation.submit(
            "--set", "experiment.rounds=2", "--set", "sync.min_clients=1"))["state"])  # nobody was disturbed

        federation.command("node", "revoke", "client-1")
        federation.command("node", "revoke", "alice")
        for state in (node, alice):  # refused before a word is said, and not for want of a coordinator
            done = self.doctor("--state", state)
            self.assertEqual("fail", checks(done)["coordinator"], done.stdout)
            self.assertIn("is revoked", done.stdout)
            self.assertIn("token new", done.stdout)
        self.assertEqual("ok", checks(self.doctor("--state", federation.state))["coordinator"])

        federation.children["coordinator"].stop()
        done = self.doctor("--state", node)
        self.assertEqual(1, done.returncode)
        self.assertEqual("fail", checks(done)["coordinator"])
        self.assertIn(str(federation.port), done.stdout)
        self.assertEqual("ok", checks(self.doctor("--state", federation.state))["port"])

        os.chmod(os.path.join(node, "node", "node.key"), 0o644)
        with open(os.path.join(node, "policy.toml"), "w", encoding="utf-8") as file:
            file.write("hours = 3\n")
        found = checks(self.doctor("--state", node))
        self.assertEqual(("fail", "fail", "fail"), (found["modes"], found["certificate"], found["policy"]))


if __name__ == "__main__":
    unittest.main()
