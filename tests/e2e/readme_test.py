"""The README as a newcomer reads it: every command as printed, in order, in a clean folder, each saying what comes next.

Daemons (coordinator, join with a node's token) are started and left running; TOKEN is what the token command before it
printed. As root everything happens in a network namespace of its own, so that port 7400 is free as on a new machine.
"""
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from by_hand_test import root
from federation import CAUSEWAY, DEADLINE_S, Child
from help_test import ROOT

# Not run here, and why.
EXCLUDED = {
    "git clone REPOSITORY causeway && cd causeway": "this is that clone",
    "./quickstart": "it builds what is tested here; `causeway demo`, which it ends with, is demo_test.py",
    "./check": "it is what runs this test",
}
# Words that a command's output must have: what comes next, or what the README promises of it.
NEXT = {
    "data split": "causeway join TOKEN",
    "coordinator": "causeway token new",
    "join": "causeway experiment submit",
    "experiment submit": "causeway experiment",
    "experiment export": "causeway experiment predict",
    "experiment init": "causeway experiment validate",
    "experiment validate": "causeway simulate",
    "experiment evaluate": "accuracy",
    "node list": "lab-b",
    "node log": "committed",
    "experiment wait": "succeeded",
}
NAMESPACE = f"causeway-readme-{os.getpid()}"


def readme_commands():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        blocks = re.findall(r"(?:^    .*\n)+", file.read(), re.M)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [re.sub(r"\s{2,}#.*", "", line) for line in lines if re.match(r"causeway |\./|git ", line)]


class Newcomer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="causeway-readme-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.environment = {"HOME": self.folder, "LANG": "C.UTF-8",
                            "PATH": os.path.dirname(CAUSEWAY) + ":/usr/sbin:/usr/bin:/sbin:/bin"}
        self.prefix = []
        if os.geteuid() == 0 and shutil.which("ip") and root("ip", "netns", "add", NAMESPACE):
            self.addCleanup(root, "ip", "netns", "del", NAMESPACE)
            self.prefix = ["ip", "netns", "exec", NAMESPACE]
            self.assertTrue(root(*self.prefix, "ip", "link", "set", "lo", "up"))
        elif not port_is_free(7400):
            self.skipTest("port 7400 is taken, and only root can make a network of its own")
        self.token = ""

    def words_of(self, line):
        """`experiment submit`, `coordinator`: the command's name."""
        words = line.split()[1:]
        return " ".join(words[:2]) if words[0] in ("data", "token", "experiment", "node", "audit") else words[0]

    def daemon(self, line):
        child = Child(["-c", f"cd {shlex.quote(self.folder)} && exec {line}"], self.folder, "daemon", prefix=self.prefix,
                      program="bash", env=self.environment)
        self.addCleanup(child.stop)
        return child

    def run_line(self, line):
        if line.startswith("causeway coordinator"):
            child, seen = self.daemon(line), ""
            while NEXT["coordinator"] not in seen:
                seen += child.line()
            return
        if line.startswith("causeway join") and "--data" in line:
            child, seen = self.daemon(line), ""
            while not re.search(r"^joined ", seen, re.M):
                seen += child.line() + "\n"
            self.assertIn(NEXT["join"], seen)
            return
        done = subprocess.run([*self.prefix, "bash", "-c", line], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * DEADLINE_S, check=False)
        self.assertEqual(0, done.returncode, line + "\n" + done.stdout + done.stderr)
        self.assertEqual("", done.stderr, line)
        name = self.words_of(line)
        self.assertIn("node list" if name == "join" else NEXT.get(name, ""), done.stdout, line)
        if name == "token new":
            self.token = done.stdout.split()[0]

    def test_every_command_of_the_readme_runs_as_printed_in_its_order(self):
        lines = readme_commands()
        self.assertGreater(len(lines), 20)
        for line in lines:
            if line in EXCLUDED:
                script = line.split()[0]
                self.assertTrue(script == "git" or os.access(os.path.join(ROOT, script), os.X_OK), line)
                continue
            self.run_line(re.sub(r"\bTOKEN\b", self.token, line))
        for name in ("model.safetensors", "predictions.csv", "my.toml"):
            self.assertGreater(os.path.getsize(os.path.join(self.folder, name)), 0)

    def test_what_it_links_to_exists(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            for target in re.findall(r"\]\(([^)#]+)\)", file.read()):
                self.assertTrue(os.path.exists(os.path.join(ROOT, target)), target)


def port_is_free(port):
    import socket
    with socket.socket(socket.AF_INET6) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("::", port))
        except OSError:
            return False
    return True


if __name__ == "__main__":
    unittest.main()
