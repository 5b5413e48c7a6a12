"""A federation whose authority is elsewhere: every signature by the openssl command, as docs/security.md has it."""
import os
import re
import subprocess
import unittest

from federation import DEADLINE_S, Federation, events, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def documented(title):
    """The commands of the shell block after this heading of docs/security.md."""
    with open(os.path.join(ROOT, "docs", "security.md"), encoding="utf-8") as file:
        text = file.read()
    block = re.search(re.escape(title) + r".*?```sh\n(.*?)```", text, re.S)
    assert block, title
    return block[1]


class Authority(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=2)
        self.addCleanup(self.federation.close)
        self.ca = os.path.join(self.federation.folder, "authority")
        os.mkdir(self.ca)
        self.shell(documented("### The authority's machine"))

    def shell(self, commands, **env):
        done = subprocess.run(["bash", "-euc", commands], cwd=self.ca, capture_output=True, text=True,
                              env={**os.environ, **env}, timeout=DEADLINE_S)
        self.assertEqual(0, done.returncode, commands + done.stderr)

    def sign(self, request):
        """By the authority, whose machine sees nothing but the request."""
        self.shell(documented("### Signing"), REQUEST=request)
        return os.path.join(self.ca, os.path.basename(request).replace(".csr", ".crt"))

    def expect(self, done, code, *words):
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def start(self):
        """From nothing to a coordinator that listens, as a person does it."""
        state = self.federation.state
        first = run("coordinator", "--state", state, "--ca", "external", "--listen", f"127.0.0.1:{self.federation.port}")
        self.expect(first, 4, "elsewhere", "requests/coordinator.csr", "requests/operator.csr", "ca import")
        self.assertFalse(os.path.exists(os.path.join(state, "ca", "ca.key")))
        signed = [self.sign(os.path.join(state, "requests", name + ".csr")) for name in ("coordinator", "operator")]
        self.expect(run("ca", "import", signed[0], "--state", state), 2)  # the authority itself comes first
        done = run("ca", "import", os.path.join(self.ca, "authority.crt"), *signed, "--state", state)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(0, run("ca", "import", os.path.join(self.ca, "authority.crt"), "--state", state).returncode)
        self.federation.start_coordinator()

    def import_requests(self):
        """All that wait: exported, signed elsewhere, imported; their names."""
        folder = os.path.join(self.federation.folder, "out")
        done = self.federation.command("ca", "requests", "--out", folder, "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        names = [event["name"] for event in events(done.stdout)]
        signed = [self.sign(os.path.join(folder, name + ".csr")) for name in names]
        if signed:
            done = self.federation.command("ca", "import", *signed)
            self.assertEqual(0, done.returncode, done.stderr)
        return names

    def test_nodes_join_run_and_are_revoked_under_an_authority_whose_key_is_not_here(self):
        self.start()
        token = self.federation.token("client-1")
        state = os.path.join(self.federation.folder, "client-1")
        waited = run("join", token, "--state", state, "--wait", "0s")
        self.expect(waited, 4, "waits for the federation's authority", "same command")
        self.assertEqual(0, len(os.listdir(state + "/node")) if os.path.exists(state + "/node") else 0)
        self.assertEqual(["client-1"], self.import_requests())
        self.federation.start_client(1, token).event(lambda e: "joined" in e.get("text", ""))

        # One that waits by itself gets its certificate as soon as it is there.
        second = self.federation.start_client(2, self.federation.token("client-2"))
        second.event(lambda e: "signs elsewhere" in e.get("text", ""))
        self.assertEqual(["client-2"], self.import_requests())
        second.event(lambda e: "joined" in e.get("text", ""))
        experiment = self.federation.submit("--set", "experiment.rounds=2")
        self.assertEqual("succeeded", self.federation.finish(experiment)["state"])

        self.assertEqual(0, self.federation.command("node", "revoke", "client-2").returncode)
        self.assertEqual(3, second.process.wait(DEADLINE_S))
        self.federation.children["coordinator"].kill()
        self.federation.start_coordinator()
        self.assertEqual(0, self.federation.command("node", "list").returncode)

    def test_what_does_not_fit_is_refused_with_what_to_do(self):
        self.start()
        token = self.federation.token("client-1")
        self.expect(run("join", token, "--state", os.path.join(self.federation.folder, "c"), "--wait", "0s"), 4)
        other = os.path.join(self.federation.folder, "other")
        os.mkdir(other)
        subprocess.run(["bash", "-euc", documented("### The authority's machine")], cwd=other, check=True,
                       capture_output=True)
        state = self.federation.state
        self.expect(run("ca", "import", os.path.join(other, "authority.crt"), "--state", state), 3, "another authority")
        self.expect(run("ca", "import", os.path.join(self.ca, "authority.key"), "--state", state), 1, "no certificate")
        self.expect(run("ca", "import", os.path.join(self.ca, "nothing.crt"), "--state", state), 2, "nothing.crt")
        coordinator = os.path.join(self.ca, "coordinator.crt")
        with open(coordinator, encoding="utf-8") as file:
            text = file.read()
        cut = os.path.join(self.ca, "cut.crt")
        with open(cut, "w", encoding="utf-8") as file:
            file.write(text[:200])
        self.expect(run("ca", "import", cut, "--state", state), 1, "cut.crt")
        # A certificate that was signed for nobody who waits.
        folder = os.path.join(self.federation.folder, "out")
        self.assertEqual(0, self.federation.command("ca", "requests", "--out", folder).returncode)
        signed = self.sign(os.path.join(folder, "client-1.csr"))
        self.assertEqual(0, self.federation.command("ca", "import", signed).returncode)
        self.expect(self.federation.command("ca", "import", signed), 2, "no request of that key")

    def test_an_operator_enrols_likewise_and_a_folder_keeps_its_kind_of_authority(self):
        self.start()
        alice = os.path.join(self.federation.folder, "alice")
        token = self.federation.token("alice", "--role", "operator")
        self.expect(run("join", token, "--state", alice, "--wait", "0s"), 4)
        self.assertEqual(["alice"], self.import_requests())
        self.assertEqual(0, run("join", token, "--state", alice).returncode)
        self.assertEqual(0, run("node", "list", "--state", alice).returncode)
        own = Federation(clients=1)
        self.addCleanup(own.close)
        own.start_coordinator()
        own.children["coordinator"].stop()
        self.expect(run("coordinator", "--state", own.state, "--ca", "external"), 3, "authority of its own")


if __name__ == "__main__":
    unittest.main()
