"""What people get wrong: each mistake gives what, where, what next, and the right exit code."""
import os
import shutil
import socket
import tempfile
import unittest

from federation import Child, Federation, free_port, run

FIVE_MISTAKES = """\
[experiment]
name = "broken"
rounds = "many"

[data]
dataset = "digits"
shape = [8, 8, 1]

[model]
layers = ["flatten", "dens 64", "dense 10"]

[train]
bacth = 32
local_epochs = 0
optimizer = { kind = "sgd", learning_rate = -1 }
"""

# (command, exit code, words of the message)
TABLE = [
    (["nonsense"], 2, ["nonsense", "experiment", "causeway --help"]),
    ([], 2, ["experiment", "causeway --help"]),
    (["experiment", "sumbit"], 2, ['did you mean "submit"', "causeway experiment --help"]),
    (["experiment"], 2, ["submit", "causeway experiment --help"]),
    (["demo", "--bogus"], 2, ["--bogus", "causeway demo --help"]),
    (["demo", "digits-fedvag"], 2, ["digits-fedavg"]),
    (["demo", "--clients", "0"], 2, ["--clients"]),
    (["demo", "--set", "train.batch=0"], 2, ["train.batch"]),
    (["demo", "--set", "train.bacth=1"], 2, ["train.bacth", 'did you mean "batch"']),
    (["demo", "--set", "data.dataset=nowhere"], 2, ["nowhere", "--data nowhere=PATH"]),
    (["demo", "--data", "digits"], 2, ["NAME=PATH"]),
    (["demo", "--data", "digits=/no/such/file"], 2, ["/no/such/file"]),
    (["demo", "--data", "digist=docs/examples/patients.csv"], 2, ["did you mean --data digits="]),
    (["simulate", "digits-fedavg", "--data", "nope=docs/examples/patients.csv"], 2, ["nope", "digits"]),
    (["simulate", "digits-fedavg", "--set", "data.shape=[3]"], 2, ["shape"]),
    (["experiment", "validate", "/no/such.toml"], 2, ["/no/such.toml"]),
    (["experiment", "validate", "digits-fedavg", "--set", "rounds"], 2, ["rounds"]),
    (["experiment", "submit", "digits-fedavg"], 2, ["--state"]),
    (["experiment", "list", "--state", "/no/such/state"], 2, ["causeway coordinator"]),
    (["token", "new", "--state", "/no/such/state", "--name", "a"], 2, ["causeway coordinator"]),
    (["token", "new", "--state", "/no/such/state", "--name", "a", "--role", "king"], 2, ["--role", "operator"]),
    (["node", "revoke", "--state", "/no/such/state"], 2, ["name"]),
    (["node", "revoke", "a"], 2, ["--state"]),
    (["node", "revoke", "a", "--state", "/no/such/state"], 2, ["causeway coordinator", "causeway join TOKEN"]),
    (["audit"], 2, []),
    (["audit", "show", "--state", "/no/such/state"], 2, ["causeway coordinator"]),
    (["audit", "verify", "--state", "/no/such/state", "--head"], 2, ["--head"]),
    (["data", "inspect", "/no/such/file"], 2, ["/no/such/file"]),
    (["data", "split", "nowhere", "--out", "/tmp/x"], 2, ["nowhere", "digits"]),
    (["coordinator", "--state", "/no/such/state", "--listen", "127.0.0.1:x"], 2, ["127.0.0.1:x"]),
    (["bench", "summs"], 2, ["sums"]),
]


# What people get wrong in a manifest: lines of it, words of the message.
MANIFESTS = [
    ('label = "outcome"', ["m.toml:1:1", "file: missing"]),
    ('file = "patient.csv"', ["m.toml:1:8", 'did you mean "patients.csv"']),
    ('file = "patients.csv"\nlabel = "outcom"', ["m.toml:2:9", "did you mean 'outcome'"]),
    ('file = "patients.csv"\nlabel = "outcome"\nfeatures = ["agee"]\nclases = ["home"]',
     ["m.toml:3:13", "did you mean 'age'", "m.toml:4:1", 'did you mean "classes"']),
    ('file = "../patients.csv"', ["m.toml:1:8", "leads out of the manifest's folder"]),
    ('file = "patients.csv"\nlabel = "outcome"\nfeatures = ["age"]\nclasses = ["hom", "ward", "intensive"]',
     ["column 2", "did you mean 'hom'"]),
    ('file = "patients.csv"\nsplit = { holdout = 0.2 }', ["m.toml:2:21", "split.holdout"]),
]


class BadInput(unittest.TestCase):
    def test_every_mistake_of_a_manifest_says_where_and_what_next(self):
        shutil.copy(os.path.join("docs", "examples", "patients.csv"), self.folder)
        for text, words in MANIFESTS:
            with self.subTest(manifest=text):
                self.expect(run("data", "inspect", self.path("m.toml", text + "\n")), 2, *words)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="causeway-bad-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def expect(self, done, code, *words):
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_every_wrong_command_says_what_and_what_next(self):
        for arguments, code, words in TABLE:
            with self.subTest(arguments=arguments):
                self.expect(run(*arguments), code, *words)

    def test_five_mistakes_give_five_messages_with_their_places(self):
        path = self.path("broken.toml", FIVE_MISTAKES)
        done = run("experiment", "validate", path)
        lines = [line for line in done.stderr.splitlines() if ": error: " in line]
        self.assertEqual(2, done.returncode)
        self.assertEqual(5, len(lines), done.stderr)
        for place in (":3:", ":10:", ":13:", ":14:", ":15:"):
            self.assertTrue(any(line.startswith(path + place) for line in lines), (place, done.stderr))

    def test_a_dataset_with_a_label_out_of_range_or_missing_values_is_named_with_its_row(self):
        path = self.path("bad.csv", "1,2,0\n3,x,1\n")
        self.expect(run("data", "inspect", path, "--label", "last"), 1, "bad.csv", "2")
        many = self.path("labels.csv", "".join(f"{i},{i},{i}\n" for i in range(30)))
        done = run("simulate", "digits-fedavg", "--data", f"digits={many}", "--clients", 2, "--set", "data.shape=[2]",
                   "--set", "data.scale=none", "--set", "data.partition.kind=iid")
        self.assertNotEqual(0, done.returncode)
        self.assertIn("label", done.stdout + done.stderr)

    def test_a_busy_port_and_a_state_folder_in_use_are_refused_and_lose_nothing(self):
        state = self.path("state")
        first = Child(["coordinator", "--json", "--state", state, "--listen", f"127.0.0.1:{free_port()}"], self.folder, "first")
        self.addCleanup(first.stop)
        port = first.event(lambda e: e.get("event") == "listening")["port"]
        self.expect(run("coordinator", "--state", state, "--listen", "127.0.0.1:0"), 3, "another live process")
        other = self.path("other")
        self.expect(run("coordinator", "--state", other, "--listen", f"127.0.0.1:{port}"), 1, str(port))
        self.assertEqual(0, run("node", "list", "--state", state).returncode)

    def test_an_unreachable_coordinator_is_named(self):
        federation = Federation(clients=2)
        self.addCleanup(federation.close)
        federation.start_coordinator().stop()
        self.expect(federation.command("experiment", "list"), 3, "causeway coordinator --state")

    def test_a_node_without_a_token_or_with_a_bad_one_is_told_what_to_do(self):
        self.expect(run("join", "--state", self.path("node")), 2, "token new")
        self.expect(run("join", "nonsense", "--state", self.path("node2")), 2, "token")

    def test_an_experiment_on_an_unknown_dataset_fails_at_submit(self):
        federation = Federation(clients=2)
        self.addCleanup(federation.close)
        federation.start_coordinator()
        federation.join_clients(2)
        done = federation.command("experiment", "submit", "digits-fedavg", "--set", "data.dataset=digitz")
        self.expect(done, 2, "digitz", "digits")

    def test_too_few_clients_end_at_the_start_timeout(self):
        federation = Federation(clients=2)
        self.addCleanup(federation.close)
        federation.start_coordinator()
        federation.join_clients(1)
        experiment = federation.submit("--set", "sync.min_clients=2", "--set", "sync.start_timeout=3s")
        done = federation.command("experiment", "wait", experiment)
        self.assertEqual(1, done.returncode)
        self.assertIn("insufficient clients 1/2", done.stdout)
        self.assertEqual("succeeded", federation.finish(federation.submit("--set", "experiment.rounds=2"))["state"])

    def test_a_plaintext_peer_gets_nothing_and_disturbs_nobody(self):
        federation = Federation(clients=2)
        self.addCleanup(federation.close)
        federation.start_coordinator()
        federation.join_clients(2)
        with socket.create_connection(("127.0.0.1", federation.port), timeout=20) as peer:
            peer.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
            answer = b""
            try:
                while piece := peer.recv(4096):
                    answer += piece
            except ConnectionError:
                pass
            self.assertLess(len(answer), 128)  # at most ZeroMQ's own greeting
        self.assertEqual("succeeded", federation.finish(federation.submit("--set", "experiment.rounds=2"))["state"])


if __name__ == "__main__":
    unittest.main()
