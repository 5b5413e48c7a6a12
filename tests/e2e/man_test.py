"""Man pages: made from the same source as --help and completion, so that all three know every command and option."""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from federation import run
from help_test import ROOT, commands


def plain(roff):
    return roff.replace("\\-", "-").replace("\\&", "")


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="causeway-man-")
        done = run("man", cls.folder)
        assert done.returncode == 0, done.stderr
        cls.pages = {}
        for path in glob.glob(os.path.join(cls.folder, "*.1")):
            with open(path, encoding="utf-8") as file:
                cls.pages[os.path.basename(path)[:-2]] = plain(file.read())
        cls.scripts = {shell: run("completion", shell).stdout for shell in ("bash", "zsh")}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def offered(self, shell, words):
        """The line of the completion script that offers what may follow these words."""
        return re.search(rf"^        '{words}'\) (?:words|lines)=(.*) ;;$", self.scripts[shell], re.M)[1]

    def test_every_command_and_every_option_of_the_help_is_in_the_pages_and_in_both_completions(self):
        helps = commands()
        self.assertGreater(len(helps), 20)
        for words, text in helps.items():
            page = self.pages["causeway-" + words.replace(" ", "-")]
            self.assertIn(f"causeway {words}", self.pages["causeway"])
            options = re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.M)
            self.assertIn("--json", options)
            for option in options:
                with self.subTest(command=words, option=option):
                    self.assertIn(f"\\fB{option}\\fR", page)
                    for shell in self.scripts:
                        self.assertRegex(self.offered(shell, " " + words), rf"{option}\b")
            example = text.partition("Example:\n")[2].strip()
            self.assertIn(example, page)

    def test_the_page_that_the_services_name_exists(self):
        for path in glob.glob(os.path.join(ROOT, "configs", "systemd", "*.service")):
            with open(path, encoding="utf-8") as file:
                for name in re.findall(r"man:([\w-]+)\(1\)", file.read()):
                    self.assertIn(name, self.pages)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_the_formatter_finds_no_fault(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", *glob.glob(os.path.join(self.folder, "*.1"))],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr))


if __name__ == "__main__":
    unittest.main()
