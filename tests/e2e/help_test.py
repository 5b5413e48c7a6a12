"""Every command's help: it fits a terminal of 100 columns, and its example runs as printed."""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from federation import CAUSEWAY, DEADLINE_S, DIGITS, Child, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# The order in which a person comes to need them; `coordinator` and `join` stay, so they are started apart.
ORDER = ["data split", "data inspect", "experiment init", "experiment validate", "experiment show", "experiment fields",
         "experiment leakage", "plan", "simulate", "demo", "bench", "coordinator", "token new", "token list", "token revoke", "token new",
         "join", "node list", "node log", "audit show", "audit verify", "doctor", "backup", "experiment submit",
         "experiment list", "experiment status", "experiment watch", "experiment wait", "experiment export",
         "experiment explain", "experiment replay", "experiment cancel", "experiment resume", "experiment compare",
         "completion bash", "completion zsh", "man", "node revoke"]

# Whose examples need what a machine alone has not, and where they are run instead.
ELSEWHERE = {
    "ca requests": "authority_test: an authority elsewhere", "ca import": "authority_test",
    "experiment predict": "model_test: a file of new examples", "experiment evaluate": "model_test",
}


def commands(words=()):
    """{words of a command: its help}, of all commands that do something."""
    text = run(*words, "--help").stdout
    below = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
    if not below:
        return {" ".join(words): text}
    found = {}
    for name in re.findall(r"^  (\w+)", below[1], re.M):
        found.update(commands((*words, name)))
    return found


def example(text):
    return text.partition("Example:\n")[2].strip()


class Help(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="causeway-help-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.environment = {**os.environ, "HOME": self.folder}
        self.environment["PATH"] = os.path.dirname(CAUSEWAY) + ":" + self.environment["PATH"]

    def shell(self, line):
        return subprocess.run(["bash", "-c", line], cwd=self.folder, env=self.environment, capture_output=True,
                              text=True, timeout=2 * DEADLINE_S, check=False)

    def start(self, line, name):
        """A daemon's example, in its own words, with --json so that the test can follow it."""
        child = Child(["-c", f"cd {self.folder} && exec {line} --json"], self.folder, name, program="bash",
                      env=self.environment)
        self.addCleanup(child.stop)
        return child

    def test_every_help_fits_100_columns_and_has_an_example_and_json(self):
        for words, text in commands().items():
            with self.subTest(command=words):
                self.assertLessEqual(max(map(len, text.splitlines())), 100, text)
                self.assertTrue(example(text).startswith("causeway " + words), text)
                self.assertIn("--json", text)
                self.assertNotRegex(text, r"TEXT:|UINT:")  # a parser's own words
        for group in ("", "token", "node", "experiment", "data"):
            text = run(*group.split(), "--help").stdout
            self.assertLessEqual(max(map(len, text.splitlines())), 100, text)

    def test_every_event_that_a_command_prints_is_documented(self):
        with open(os.path.join(ROOT, "docs", "json.md"), encoding="utf-8") as file:
            documented = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", file.read(), re.M))))
        printed = set()
        for path in glob.glob(os.path.join(ROOT, "cli", "*.cpp")) + glob.glob(os.path.join(ROOT, "client", "*.cpp")):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            printed |= set(re.findall(r'\.set\("event", "(\w+)"\)|object\("(\w+)", ', text))
        self.assertEqual(set(), {one or other for one, other in printed} - documented)

    def test_the_examples_run_as_printed_in_the_order_in_which_a_person_needs_them(self):
        helps = commands()
        self.assertEqual(set(helps), {*ORDER, *ELSEWHERE})
        shutil.copy(DIGITS, self.folder)
        token = ""
        for words in ORDER:
            line = example(helps[words])
            with self.subTest(line=line):
                if words == "coordinator":
                    self.start(line + " --listen 127.0.0.1:0", "coordinator").event(lambda e: e["event"] == "listening")
                elif words == "join":
                    node = self.start(line.replace("TOKEN", token), "node")
                    node.event(lambda e: "joined" in e.get("text", ""))
                elif words == "experiment cancel":  # the newest, which was resumed just now, may have ended: it says so
                    done = self.shell(line)
                    self.assertTrue(done.returncode == 0 or "already over" in done.stderr, done.stderr)
                else:
                    if words == "experiment submit":
                        line += " --set experiment.rounds=3"
                    done = self.shell(line)
                    self.assertEqual(0, done.returncode, line + "\n" + done.stdout + done.stderr)
                    self.assertEqual("", done.stderr)  # a command that works has nothing to say there
                    token = done.stdout.split()[0] if words == "token new" else token


if __name__ == "__main__":
    unittest.main()
