"""What a person sees at a terminal: colours, a bar redrawn in place, no line wider than the terminal, no noise."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
import unittest

from federation import CAUSEWAY, DEADLINE_S, DIGITS, Federation, run


def at_terminal(*arguments, columns=100, env=None, typed="", cwd=None):
    """(exit code, all that came to a terminal of that width)."""
    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen([CAUSEWAY, *map(str, arguments)], stdin=far, stdout=far, stderr=far,
                               env={**os.environ, **(env or {})}, cwd=cwd)
    os.write(near, typed.encode())
    os.close(far)
    seen = b""
    try:
        while piece := os.read(near, 65536):
            seen += piece
    except OSError:  # the last writer has closed its end
        pass
    os.close(near)
    return process.wait(DEADLINE_S), seen.decode()


def frames(text):
    """Every line as it stood at one time: what is erased counts too."""
    plain = re.sub(r"\x1b\[\d*m", "", text)
    return [frame for line in plain.replace("\r\n", "\n").split("\n") for frame in line.split("\r\x1b[K")]


class Terminal(unittest.TestCase):
    def demo(self, *more, **options):
        code, text = at_terminal("demo", "digits-fedavg", "--data", f"digits={DIGITS}", "--set", "experiment.rounds=4",
                                 "--clients", 3, *more, **options)
        self.assertEqual(0, code, text)
        return text

    def test_the_demo_draws_a_bar_below_its_rounds_and_takes_it_away(self):
        text = self.demo()
        bars = [frame for frame in frames(text) if re.match(r"\[#+-*\] +\d+ %  round \d of 4  ETA \d+m?s$", frame)]
        self.assertEqual([25, 50, 75, 100], [int(re.search(r"(\d+) %", bar)[1]) for bar in bars], text)
        last = [line.rpartition("\r\x1b[K")[2] for line in text.replace("\r\n", "\n").split("\n")]
        self.assertFalse([line for line in last if "[#" in line], text)  # erased: only the rounds' lines stay
        self.assertIn("\x1b[32msucceeded", text)
        rows = [line for line in frames(text) if re.match(r" +\d/4 ", line)]
        self.assertEqual(4, len(rows), text)
        header = next(line for line in frames(text) if "clients" in line and "ETA" in line and "%" not in line)
        self.assertEqual({len(header)}, set(map(len, rows)))  # aligned

    def test_a_long_round_shows_whose_updates_are_in(self):
        text = self.demo("--set", "train.local_epochs=1500", "--set", "experiment.rounds=1")
        self.assertRegex("\n".join(frames(text)), r"\[-+\] +0 %  round 1: \d/3 updates  ETA -")

    def test_every_frame_fits_the_terminal(self):
        for columns in (100, 90):
            text = self.demo(columns=columns)
            for frame in frames(text):
                if not frame.startswith(("    /", "model", "logs")):  # paths are as long as they are
                    self.assertLessEqual(len(frame), columns, frame)

    def test_init_asks_takes_what_is_valid_asks_again_for_what_is_not_and_writes_a_file_that_validates(self):
        with tempfile.TemporaryDirectory() as folder:
            typed = "heart\nheart-2026\n16xx\n16\n\n\n2\n30\n\n"
            code, text = at_terminal("experiment", "init", "my.toml", typed=typed, cwd=folder)
            self.assertEqual(0, code, text)
            self.assertIn("The experiment's name [my-experiment]: ", text)
            self.assertIn("data.shape", text)  # the slip was named before the question came again
            path = os.path.join(folder, "my.toml")
            self.assertEqual(0, run("experiment", "validate", path).returncode)
            with open(path, encoding="utf-8") as file:
                written = file.read()
            for line in ('name = "heart"', 'dataset = "heart-2026"', "shape = [16]", 'label = "last"', "rounds = 30",
                         'layers = ["flatten", "dense 64", "relu", "dense 2"]'):
                self.assertIn("\n" + line + "\n", written)
            code, text = at_terminal("experiment", "init", "other.toml", typed="x\n\x04", cwd=folder)
            self.assertEqual(2, code, text)
            self.assertIn("stdin ended", text)
            self.assertFalse(os.path.exists(os.path.join(folder, "other.toml")))

    def test_tables_and_logs_fit_100_columns_and_keep_what_matters(self):
        federation = Federation(clients=1)
        self.addCleanup(federation.close)
        federation.start_coordinator()
        federation.join_clients(1)
        long_name = "a-rather-long-name-of-an-experiment-that-somebody-chose-in-2026"
        federation.finish(federation.submit("--set", "experiment.rounds=2", "--set", "sync.min_clients=1", "--set",
                                            f"experiment.name={long_name}"))
        federation.finish(federation.submit("--set", "sync.min_clients=5", "--set", "sync.start_timeout=1s"))
        node = os.path.join(federation.folder, "client-1")
        for words, wanted in (("node list", "digits ("), ("audit show", "experiment.ended"),
                              ("experiment list", "insufficient clients 1/5"), ("experiment status 1", "succeeded"),
                              ("experiment watch 1", "ETA"), ("experiment wait 2", "insufficient")):
            self.check_width(words.split() + ["--state", federation.state], wanted)
        self.check_width(["node", "log", "--state", node], "name=a-rather-long")
        self.check_width(["data", "inspect", DIGITS, "--label", "last"], "10 classes")
        self.check_width(["experiment", "show", "digits-fedavg"], "learning_rate")

    def check_width(self, words, wanted):
        with self.subTest(words=words):
            text = at_terminal(*words)[1]
            self.assertIn(wanted, text)
            for frame in frames(text):
                if not frame.startswith("next: "):  # a command to copy is as long as its paths
                    self.assertLessEqual(len(frame), 100, frame)

    def test_no_colours_where_they_are_not_wanted(self):
        self.assertNotIn("\x1b[32m", self.demo(env={"NO_COLOR": "1"}))

    def test_a_pipe_gets_plain_lines(self):
        done = run("demo", "digits-fedavg", "--data", f"digits={DIGITS}", "--set", "experiment.rounds=2", "--clients", 2)
        self.assertEqual("", done.stderr)
        self.assertNotIn("\x1b", done.stdout)
        self.assertNotIn("\r", done.stdout)


if __name__ == "__main__":
    unittest.main()
