"""Who may not come in, and who may: each stranger is refused with its own code and what to do, and one identity is one
node. Certificates are forged with the authority's own key and the openssl command, so only the rule itself can refuse.
"""
import os
import shutil
import subprocess
import unittest

from federation import DEADLINE_S, Child, Federation, events, run

STARTS = 100
CONFIG = """\
[ca]
default_ca = own
[own]
new_certs_dir = .
database = index.txt
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
[node]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
subjectAltName = {names}
"""


class Strangers(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=3)
        self.addCleanup(self.federation.close)
        self.federation.start_coordinator()

    def at(self, *parts):
        return os.path.join(self.federation.folder, *parts)

    def enrol(self, name, *more):
        """A node's state folder as it is after the first start; the node does not run."""
        node = Child(["join", self.federation.token(name, *more), "--json", "--state", self.at(name)],
                     self.federation.folder, name)
        node.event(lambda e: "joined" in e.get("text", ""))
        node.stop()
        return self.at(name)

    def forge(self, folder, names, begin="20200101000000Z", end="20400101000000Z", authority=None):
        """Puts another certificate for the same key into the folder, signed by the coordinator's authority."""
        node, desk = os.path.join(folder, "node"), os.path.join(folder, "desk")
        authority = authority or os.path.join(self.federation.state, "ca")
        os.makedirs(desk, exist_ok=True)
        for name, text in (("config", CONFIG.format(names=names)), ("index.txt", "")):
            with open(os.path.join(desk, name), "w", encoding="utf-8") as file:
                file.write(text)
        for words in (["req", "-new", "-key", f"{node}/node.key", "-subj", "/CN=forged", "-config", "config", "-out",
                       "csr"],
                      ["ca", "-batch", "-config", "config", "-notext", "-extensions", "node", "-cert",
                       f"{authority}/ca.crt", "-keyfile", f"{authority}/ca.key", "-in", "csr", "-startdate", begin,
                       "-enddate", end, "-out", f"{node}/node.crt"]):
            done = subprocess.run(["openssl", *words], cwd=desk, capture_output=True, text=True, timeout=DEADLINE_S,
                                  check=False)
            self.assertEqual(0, done.returncode, done.stderr)
        shutil.rmtree(desk)

    def coordinator_log(self):
        with open(self.federation.children["coordinator"].log, encoding="utf-8") as file:
            return file.read()

    def expect_refusal(self, folder, wanted, told, remedy):
        """The coordinator's log has the exact code; the node has the one that it was told, and one line with the remedy."""
        before = len(self.coordinator_log())
        done = run("join", "--json", "--state", folder, deadline=30)
        self.assertIn(done.returncode, (2, 3), done.stderr)
        self.assertEqual(told, events(done.stdout)[-1]["code"], done.stdout)
        said = done.stderr.strip()
        self.assertEqual(1, len(said.splitlines()), said)
        self.assertRegex(said, remedy)
        if wanted:
            self.assertIn(wanted, self.coordinator_log()[before:])
        self.assertNotIn("connected from", self.coordinator_log()[before:])

    def test_each_certificate_that_is_not_right_is_refused_with_its_code_and_what_to_do(self):
        good = "URI:causeway://causeway/client/mallory"
        folder = self.enrol("mallory")
        other = Federation(clients=1)
        self.addCleanup(other.close)
        other.start_coordinator()
        # What the coordinator's log says (none where the node does not get that far), what the node is told, its remedy.
        for wanted, told, remedy, names, forgery in (
                ("certificate_expired", "certificate_expired", "join again", good, {"end": "20210101000000Z"}),
                ("certificate_not_yet_valid", "bad_certificate", "clocks", good, {"begin": "20390101000000Z"}),
                ("", "wrong_federation", "token", "URI:causeway://elsewhere/client/mallory", {}),
                ("wrong_role", "wrong_role", "token", "URI:causeway://causeway/coordinator/mallory", {}),
                ("", "bad_identity", "join again", "URI:causeway://causeway/client/mal/lory", {}),
                ("", "bad_identity", "join again", "DNS:mallory", {}),
                ("", "bad_identity", "join again", good + ",URI:causeway://causeway/operator/mallory", {}),
                ("unknown_ca", "unknown_ca", "join", good, {"authority": os.path.join(other.state, "ca")})):
            with self.subTest(told=told, names=names):
                self.forge(folder, names, **forgery)
                self.expect_refusal(folder, wanted, told, remedy)
        self.forge(folder, good)  # and it was none of the forger's mistakes that was refused
        node = Child(["join", "--json", "--state", folder], self.federation.folder, "again")
        self.addCleanup(node.stop)
        node.event(lambda e: "joined" in e.get("text", ""))

    def test_a_certificate_that_its_node_signed_itself_and_one_of_another_federation_are_refused(self):
        folder = self.enrol("mallory")
        done = subprocess.run(["openssl", "req", "-new", "-x509", "-key", f"{folder}/node/node.key", "-subj", "/CN=m", "-out",
                               f"{folder}/node/node.crt", "-days", "30", "-addext",
                               "subjectAltName=URI:causeway://causeway/client/mallory"], capture_output=True, text=True,
                              timeout=DEADLINE_S, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        self.expect_refusal(folder, "self_signed", "unknown_ca", "join")

        # A node of one federation at the door of another: neither believes the other.
        other = Federation(clients=1)
        self.addCleanup(other.close)
        other.start_coordinator()
        token = other.token("mallory")
        strange = self.at("strange")
        node = Child(["join", token, "--json", "--state", strange], self.federation.folder, "strange")
        node.event(lambda e: "joined" in e.get("text", ""))
        node.stop()
        shutil.copy(os.path.join(folder, "coordinators"), strange)
        self.expect_refusal(strange, "", "unknown_ca", "join with a token of this federation")

    def test_a_token_with_another_authoritys_fingerprint_is_not_spent_and_its_secret_not_said(self):
        other = Federation(clients=1)
        self.addCleanup(other.close)
        other.start_coordinator("--advertise", f"127.0.0.1:{self.federation.port}")  # says that it is where ours is
        token = other.token("lab-a")
        done = run("join", token, "--state", self.at("lab-a"))
        self.assertEqual(3, done.returncode, done.stderr)
        self.assertIn("unknown_ca", done.stdout + done.stderr)
        self.assertIn("ask for a new token", done.stdout + done.stderr)
        left = other.command("token", "list", "--json")
        self.assertEqual(["lab-a"], [line["name"] for line in events(left.stdout)])

    def test_a_second_process_of_an_identity_is_refused_and_the_first_keeps_its_task(self):
        self.federation.join_clients(3)
        rounds = 20
        experiment = self.federation.submit("--set", f"experiment.rounds={rounds}", "--set", "sync.min_clients=3", "--set",
                                            "sync.quorum=3")
        watch = self.federation.watch(experiment)
        self.addCleanup(watch.stop)
        watch.event(lambda e: e.get("round") == 1)
        self.expect_in_use()
        end = self.federation.finish(experiment)
        self.assertEqual("succeeded", end["state"])
        last = watch.event(lambda e: e.get("round") == rounds)
        self.assertEqual(3, last["clients"])
        self.assertIsNone(self.federation.children["client-1"].process.poll())

    def expect_in_use(self):
        copied = self.at("copied")
        # Its identity, not the rounds that it is at: those files come and go.
        shutil.copytree(self.at("client-1"), copied, ignore=shutil.ignore_patterns("experiments"))
        done = run("join", "--json", "--state", copied, "--data", f"digits={self.federation.parts}/part-1.csv.gz")
        self.assertEqual(3, done.returncode, done.stderr)
        self.assertEqual("identity_in_use", events(done.stdout)[-1]["code"])
        self.assertIn("stop it first", done.stderr)
        # The same folder is refused before anybody is asked.
        again = run("join", "--json", "--state", self.at("client-1"))
        self.assertEqual(3, again.returncode, again.stderr)
        self.assertIn("another live process", again.stderr)

    def test_a_node_killed_and_started_again_is_accepted_every_time(self):
        self.federation.join_clients(1)
        node = self.federation.children["client-1"]
        for number in range(STARTS):
            with self.subTest(number=number):
                node.kill()
                node.process.stdout.close()
                node = self.federation.start_client(1)
                node.event(lambda e: "joined" in e.get("text", ""), deadline=5)


if __name__ == "__main__":
    unittest.main()
