"""Shell completion: made from the commands themselves, and understood by the shells."""
import os
import shutil
import subprocess
import tempfile
import unittest

from federation import run


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="causeway-completion-")
        cls.scripts = {}
        for shell in ("bash", "zsh"):
            done = run("completion", shell)
            assert done.returncode == 0, done.stderr
            cls.scripts[shell] = os.path.join(cls.folder, shell)
            with open(cls.scripts[shell], "w", encoding="utf-8") as file:
                file.write(done.stdout)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def offered(self, *words):
        """What bash offers for the last of the words."""
        line = " ".join(f"'{word}'" for word in ("causeway", *words))
        script = f"source {self.scripts['bash']}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; compopt() {{ :; }}; " \
                 "_causeway; printf '%s\\n' \"${COMPREPLY[@]}\""
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=20, check=True, cwd=self.folder)
        self.assertEqual("", done.stderr)
        return done.stdout.split()

    def test_commands_subcommands_and_options_are_offered(self):
        self.assertIn("coordinator", self.offered(""))
        self.assertEqual(["doctor"], self.offered("doc"))
        self.assertIn("submit", self.offered("experiment", ""))
        self.assertNotIn("coordinator", self.offered("experiment", ""))
        self.assertEqual(["--state"], self.offered("experiment", "submit", "--sta"))
        self.assertEqual(["--share-labels", "--share-statistics"], self.offered("join", "TOKEN", "--share"))

    def test_values_are_offered_where_they_are_known(self):
        self.assertEqual({"client", "host", "aggregator", "operator"}, set(self.offered("token", "new", "--role", "")))
        os.makedirs(os.path.join(self.folder, "federation"), exist_ok=True)
        self.assertEqual(["federation"], self.offered("coordinator", "--state", "fed"))

    def test_every_command_of_the_help_is_in_both_scripts(self):
        text = run("--help").stdout
        commands = [line.split()[0] for line in text[text.index("Subcommands:"):].splitlines()[1:] if line.startswith("  ")]
        self.assertGreater(len(commands), 8)
        for path in self.scripts.values():
            with open(path, encoding="utf-8") as file:
                script = file.read()
            for command in commands:
                self.assertIn(f"' {command}'", script)

    def test_the_shells_accept_the_scripts(self):
        for shell, path in self.scripts.items():
            if shutil.which(shell):
                done = subprocess.run([shell, "-n", path], capture_output=True, text=True, timeout=20, check=False)
                self.assertEqual((0, ""), (done.returncode, done.stderr), shell)


if __name__ == "__main__":
    unittest.main()
