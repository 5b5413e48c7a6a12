"""Every command in every broken environment: one line says what, where and what next, the exit code is the right one,
nothing is left behind, and nothing of the user's is replaced.

The commands are those of the help, so a new one fails here until it has a line below.
"""
import concurrent.futures
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
import unittest

from disk_test import SmallDisk, has_small_disks
from environments import ENVIRONMENTS, can_be_nobody, ready, tree
from federation import CAUSEWAY, DEADLINE_S, DIGITS, Federation, run
from help_test import commands

# What each does where all is well, or how far it comes without a federation. {f}: a coordinator's state folder, with
# its daemon stopped; {t}: a token of it; {d}: a folder of the command's own, with my.toml, ok.csv and model.safetensors.
LINES = {
    "demo": "digits-fedavg --data digits={d}/digits.csv.gz --clients 1 --set experiment.rounds=1",
    "coordinator": "--state {d}/federation --listen 127.0.0.1:0 --data digits={d}/digits.csv.gz",
    "join": "{t} --state {d}/node --data digits={d}/digits.csv.gz",
    "token new": "--name a --state {f}",
    "token list": "--state {f}",
    "token revoke": "a --state {f}",
    "node list": "--state {f}",
    "node revoke": "a --state {f}",
    "node log": "--state {d}",
    "ca requests": "--out {d}/requests --state {f}",
    "ca import": "{d}/ok.csv --state {f}",
    "audit show": "--state {f}",
    "audit verify": "--state {f}",
    "experiment init": "{d}/new.toml",
    "experiment validate": "{d}/my.toml",
    "experiment show": "{d}/my.toml",
    "experiment leakage": "digits-gsfl --examples 10 --data digits={d}/digits.csv.gz",
    "experiment submit": "{d}/my.toml --state {f}",
    "experiment list": "--state {f}",
    "experiment status": "--state {f}",
    "experiment watch": "--state {f}",
    "experiment wait": "--state {f}",
    "experiment cancel": "--state {f}",
    "experiment export": "--out {d}/export.safetensors --state {f}",
    "experiment resume": "--state {f}",
    "experiment replay": "--state {f}",
    "experiment explain": "--state {f}",
    "experiment compare": "1 2 --state {f}",
    "experiment predict": "{d}/model.safetensors {d}/digits.csv.gz --label last --out {d}/predictions.csv",
    "experiment evaluate": "{d}/model.safetensors {d}/digits.csv.gz --label last",
    "experiment fields": "",
    "data inspect": "{d}/ok.csv",
    "data split": "{d}/ok.csv --out {d}/parts",
    "simulate": "digits-fedavg --clients 1 --set experiment.rounds=1 --data digits={d}/digits.csv.gz --out {d}/simulated "
                "--transcript {d}/transcript",
    "plan": "{d}/my.toml --examples 100 --step-seconds 0.01 --apply",
    "bench": "commits",
    "doctor": "--listen 127.0.0.1:0",
    "backup": "{d}/copy --state {f}",
    "completion bash": "",
    "completion zsh": "",
    "man": "{d}/man",
}
EXIT_CODES = {0, 1, 2, 3, 4}
PIPE = 141  # as a shell says of SIGPIPE
LOG = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ ")  # a daemon's own log, which is no error's line
ABRUPT = re.compile(r"terminate called|broken: |what\(\)|Assertion|core dumped|Aborted|Segmentation|bug in Causeway", re.I)


class Environments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="causeway-environments-")
        os.chmod(cls.folder, 0o755)
        federation = Federation(clients=1)
        cls.addClassCleanup(federation.close)
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        federation.start_coordinator()
        cls.token = federation.token("late")
        federation.children["coordinator"].stop()
        cls.federation = federation
        cls.template = os.path.join(cls.folder, "template")
        os.mkdir(cls.template)
        with open(os.path.join(cls.template, "ok.csv"), "w", encoding="utf-8") as file:
            file.write("1,2,0\n3,4,1\n5,6,0\n7,8,1\n")
        done = [run("experiment", "init", f"{cls.template}/my.toml"),
                run("simulate", "digits-fedavg", "--clients", 1, "--set", "experiment.rounds=1", "--data",
                    f"digits={DIGITS}", "--out", f"{cls.template}/model.safetensors")]
        shutil.copy(DIGITS, f"{cls.template}/digits.csv.gz")
        for each in done:
            assert each.returncode == 0, each.stderr
        for name in os.listdir(cls.template):
            os.chmod(os.path.join(cls.template, name), 0o644)

    def test_every_command_has_a_line(self):
        self.assertEqual(set(LINES), set(commands()))

    def start(self, command, environment, words, folder):
        variables = {**os.environ, "TMPDIR": os.path.join(folder, "tmp"), **environment.variables}
        variables.pop("CAUSEWAY_STATE", None)
        child = subprocess.Popen([*words, CAUSEWAY, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=variables, cwd=os.path.join(folder, "here"))
        if command[0] == "coordinator":
            self.end_of_daemon(child, os.path.join(folder, "own", "federation", "operator", "address"))
        out, err = child.communicate(timeout=DEADLINE_S)
        return child.returncode, out.decode(), err.decode(errors="replace")

    @staticmethod
    def end_of_daemon(child, started):
        """Its own end, or ours once it has come so far as to write that file."""
        end = time.monotonic() + DEADLINE_S
        while child.poll() is None and not os.path.exists(started) and time.monotonic() < end:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(0.02)
        with contextlib.suppress(ProcessLookupError):
            child.terminate()

    def try_one(self, name, environment, number):
        """What is wrong with one run, or None."""
        folder = os.path.join(self.folder, str(number))
        own = os.path.join(folder, "own")
        os.mkdir(folder)
        os.chmod(folder, 0o755)
        os.mkdir(os.path.join(folder, "here"))
        os.mkdir(os.path.join(folder, "tmp"))
        os.chmod(os.path.join(folder, "here"), 0o777)
        os.chmod(os.path.join(folder, "tmp"), 0o777)
        disk = None
        if environment.setting == "full":
            disk = SmallDisk(own, "512k")
        shutil.copytree(self.template, own, dirs_exist_ok=True)
        if disk:
            disk.fill()
        words = ready(environment, own)
        before = tree(folder)
        state = self.federation.state
        command = [*name.split(), *shlex.split(LINES[name].format(d=own, f=state, t=self.token))]
        code, out, err = self.start(command, environment, words, folder)
        after = tree(folder)
        if disk:
            disk.close()
        shutil.rmtree(folder, ignore_errors=True)
        wrong = self.faults(name, environment, code, err, before, after)
        return f"{name}: {environment.name}: {wrong}\n  exit {code}\n  stderr: {err}  stdout: {out[-300:]}" if wrong else None

    def faults(self, name, environment, code, err, before, after):
        lost = "closed" in environment.name or "stdout" in environment.name or "pipe" in environment.name
        lines = [line for line in err.splitlines() if not LOG.match(line)]
        if code not in EXIT_CODES | ({PIPE} if "pipe" in environment.name else set()):
            return "no exit code of ours"
        if ABRUPT.search(err):
            return "an end that nobody meant"
        silent = "stderr closed" in environment.name or "all three" in environment.name or code == PIPE
        if code != 0 and not silent and len([line for line in lines if line.startswith("error: ")]) != 1:
            return "not one line of error"
        if environment.setting in ("locked", "unreadable") and "no such file" in err:
            return "what may not be read is called missing"
        if environment.setting in ("locked",) and "{d}/" in LINES[name] and code not in (2, 3):
            return "what is not allowed ends with 3"
        changed = [path for path in before if after.get(path) != before[path] and "plan" != name]
        if changed:
            return f"changed: {changed}"
        left = sorted(set(after) - set(before))
        if code != 0 and left and not lost:
            return f"left behind: {left}"
        if [path for path in left if re.search(r"\.causeway-|\.part$|\.tmp$|^tmp/", path)]:
            return f"left half done: {left}"
        return None

    def test_every_command_ends_in_order_in_every_broken_environment(self):
        nobody = can_be_nobody(CAUSEWAY)
        disks = shutil.which("mount") is not None and has_small_disks()
        runs = [(name, environment) for environment in ENVIRONMENTS for name in LINES
                if (nobody or environment.setting not in ("read-only", "unreadable", "locked"))
                and (disks or environment.setting != "full")]
        with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
            found = list(pool.map(lambda each: self.try_one(*each[1], each[0]), enumerate(runs)))
        wrong = [each for each in found if each]
        self.assertEqual([], wrong, f"{len(wrong)} of {len(runs)}\n" + "\n".join(wrong))


if __name__ == "__main__":
    unittest.main()
