"""Rules of security that no other test looks at from outside: what lies on the disk and who may read it, where a
coordinator listens and what a token says, and that what a person types reaches the daemon and nothing else.
docs/testing.md has the list of all rules with their tests.
"""
import base64
import os
import re
import shutil
import socket
import stat
import struct
import unittest

from federation import Child, Federation, events, run
from by_hand_test import TwoMachines, root

SECRETS = {"ca.key", "node.key", "join.key", "lock"}


def read_token(text):
    """The fields of a token: (addresses, authority's hash, federation, role, name, secret, expiry)."""
    packed = text.split(".", 1)[1]
    data = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))[3:]
    at = 0

    def take(form):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)[0]
        at += struct.calcsize("<" + form)
        return value

    def text_field():
        return take(f"{take('I')}s").decode()

    addresses = [(text_field(), take("H")) for _ in range(take("B"))]
    key = take("32s")
    return addresses, key, text_field(), text_field(), text_field(), take("32s"), take("q")


def files_below(folder):
    for path, folders, files in os.walk(folder):
        for name in folders + files:
            yield os.path.join(path, name)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


class Security(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=1)
        self.addCleanup(self.federation.close)

    def at(self, *parts):
        return os.path.join(self.federation.folder, *parts)

    def expect(self, done, code, *words):
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_folders_are_0700_and_keys_0600_whatever_the_umask_and_only_their_owners_machine_has_them(self):
        before = os.umask(0)
        self.addCleanup(os.umask, before)
        self.federation.start_coordinator()
        self.federation.join_clients(1)
        self.assertEqual(0, run("join", self.federation.token("alice", "--role", "operator"), "--state",
                                self.at("alice")).returncode)
        for state in (self.federation.state, self.at("client-1"), self.at("alice")):
            self.assertEqual(0o700, mode(state), state)
            for path in files_below(state):
                with self.subTest(path=path):
                    if os.path.isdir(path):
                        self.assertEqual(0o700, mode(path))
                    elif os.path.basename(path) in SECRETS:
                        self.assertEqual(0o600, mode(path))
        keys = {os.path.relpath(path, self.federation.folder) for path in files_below(self.federation.folder)
                if path.endswith(".key")}
        self.assertEqual({"coordinator/ca/ca.key", "coordinator/coordinator/node.key", "coordinator/operator/node.key",
                          "client-1/node/node.key", "alice/operator/node.key"}, keys)
        for path in files_below(self.federation.folder):  # no copy of a key under another name, nor in the database
            if os.path.isfile(path) and not path.endswith(".key"):
                with open(path, "rb") as file:
                    self.assertNotIn(b"PRIVATE KEY", file.read(), path)

    def test_a_folder_or_key_that_others_can_read_is_refused_with_the_command_that_mends_it(self):
        self.federation.start_coordinator()
        self.federation.join_clients(1)
        for child in self.federation.children.values():
            child.stop()
        coordinator = ["coordinator", "--listen", "127.0.0.1:0", "--state", self.federation.state]
        node = ["join", "--state", self.at("client-1")]
        operator = ["node", "list", "--state", self.federation.state]
        state = self.federation.state
        for command, path, wide in ((coordinator, state, 0o750), (coordinator, f"{state}/ca/ca.key", 0o640),
                                    (coordinator, f"{state}/coordinator/node.key", 0o604),
                                    (coordinator, f"{state}/operator/node.key", 0o644),
                                    (operator, f"{state}/operator/node.key", 0o644),
                                    (node, self.at("client-1"), 0o755),
                                    (node, self.at("client-1", "node", "node.key"), 0o660)):
            with self.subTest(command=command[0], path=path):
                right = mode(path)
                os.chmod(path, wide)
                self.expect(run(*command, deadline=20), 3, path, f"chmod {right:o} {path}")
                os.chmod(path, right)
        self.federation.start_coordinator()
        self.federation.start_client(1).event(lambda e: "joined" in e.get("text", ""))

    def test_a_state_folder_has_one_process_for_as_long_as_it_lives(self):
        self.federation.start_coordinator()
        self.federation.join_clients(1)
        for words in (["coordinator", "--listen", "127.0.0.1:0", "--state", self.federation.state],
                      ["join", "--state", self.at("client-1")]):
            self.expect(run(*words), 3, "another live process")
        for name in ("coordinator", "client-1"):
            self.federation.children[name].kill()  # a lock of the dead is none
        self.federation.start_coordinator()
        self.federation.start_client(1).event(lambda e: "joined" in e.get("text", ""))

    def test_commands_find_the_operator_by_the_environment_and_ask_the_daemon_never_the_database(self):
        self.federation.start_coordinator()
        environment = {"CAUSEWAY_STATE": self.federation.state}
        self.assertEqual(0, run("node", "list", env=environment).returncode)
        alone = self.at("alone")
        os.mkdir(alone, 0o700)
        shutil.copytree(self.at("coordinator", "operator"), os.path.join(alone, "operator"))
        self.assertEqual(0, run("node", "list", "--state", alone).returncode)  # there is no database in there
        self.federation.children["coordinator"].stop()
        for words in (["node", "list"], ["experiment", "list"], ["audit", "show"], ["token", "new", "--name", "x"],
                      ["experiment", "submit", "digits-fedavg"]):
            with self.subTest(words=words):
                self.expect(run(*words, env=environment), 3, "causeway coordinator --state")

    def test_a_token_is_an_address_the_authoritys_hash_a_role_a_name_a_secret_and_a_time(self):
        self.federation.start_coordinator()
        token = self.federation.token("lab-a", "--role", "host", "--expires", "2h")
        addresses, key, federation, role, name, secret, expires = read_token(token)
        self.assertEqual([("127.0.0.1", self.federation.port)], addresses)
        self.assertEqual(("causeway", "host", "lab-a"), (federation, role, name))
        self.assertEqual((32, 32), (len(key), len(secret)))
        self.assertNotEqual(secret, read_token(self.federation.token("lab-b"))[5])
        listed = events(self.federation.command("token", "list", "--json").stdout)
        self.assertEqual(expires, next(line["expires_unix_s"] for line in listed if line["name"] == "lab-a"))
        for path in files_below(self.federation.state):
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    self.assertNotIn(secret, file.read(), path)

    def test_without_options_it_listens_everywhere_at_7400_and_a_token_carries_every_global_address(self):
        machines = TwoMachines()
        self.addCleanup(machines.close)
        if not machines.real:
            self.skipTest("needs root and network namespaces")
        self.assertTrue(root("ip", "-n", machines.prefix[-1], "link", "set", "lo", "up"))
        inside = Child(["coordinator", "--json", "--state", self.federation.state], self.federation.folder, "inside",
                       prefix=machines.prefix)
        self.addCleanup(inside.stop)
        self.assertEqual(7400, inside.event(lambda e: e.get("event") == "listening")["port"])
        token = Child(["token", "new", "--json", "--name", "lab-a", "--state", self.federation.state],
                      self.federation.folder, "token", prefix=machines.prefix)
        self.addCleanup(token.stop)
        addresses = read_token(token.event(lambda e: "token" in e)["token"])[0]
        self.assertIn(("10.77.7.2", 7400), addresses)
        self.assertFalse([host for host, _ in addresses if host.startswith(("127.", "::1", "fe80"))], addresses)
        with socket.create_connection(("10.77.7.2", 7400), timeout=20):  # from the other machine
            pass

    def test_every_rule_in_the_documentation_names_a_test_that_exists(self):
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with open(os.path.join(here, "..", "docs", "testing.md"), encoding="utf-8") as file:
            rules = re.findall(r"(?m)^\| .* \| ((?!tests/)\S+_test\.\w+) \| (.*) \|$", file.read())
        self.assertGreater(len(rules), 40)
        for where, words in rules:
            with self.subTest(words=words):
                with open(os.path.join(here, where), encoding="utf-8") as file:
                    named = re.findall(r'TEST_CASE\(\s*"([^"]*)"|def (test_\w+)', file.read())
                self.assertTrue(any(words in name for pair in named for name in pair), (where, words))

    def test_one_port_is_open_and_no_other(self):
        coordinator = self.federation.start_coordinator()
        folder = f"/proc/{coordinator.process.pid}/fd"
        sockets = [os.readlink(os.path.join(folder, number)) for number in os.listdir(folder)]
        numbers = {match[1] for link in sockets if (match := re.match(r"socket:\[(\d+)\]", link))}
        listening = set()
        for table in ("tcp", "tcp6"):
            with open(f"/proc/{coordinator.process.pid}/net/{table}", encoding="ascii") as file:
                for line in list(file)[1:]:
                    fields = line.split()
                    if fields[3] == "0A" and fields[9] in numbers:
                        listening.add(int(fields[1].rsplit(":", 1)[1], 16))
        self.assertEqual({self.federation.port}, listening)


if __name__ == "__main__":
    unittest.main()
