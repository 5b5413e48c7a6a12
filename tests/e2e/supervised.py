"""A federation under a supervisor that starts whatever was killed again, as systemd would; commands are repeated likewise.

The state folder begins as one of the first format, so that a start also migrates a database. `long` tells whether the
whole of a long test is wanted (.ci/run) or a tenth of it (./check).
"""
import os
import random
import re
import sqlite3
import subprocess
import tempfile
import threading
import time

from federation import CAUSEWAY, DIGITS, events, free_port, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEADLINE_S = 60
CLIENTS = 3
MOST_RESTARTS = 1000
LONG = os.environ.get("CAUSEWAY_LONG", "") != ""


def seeded(test):
    """A generator of its own for each run, whose seed is told when the test fails."""
    seed = int(os.environ.get("CAUSEWAY_SEED") or random.SystemRandom().randrange(1 << 32))

    def tell():
        result = getattr(test, "_outcome").result
        failed = [case for case, _ in result.failures + result.errors]
        if any(case is test or getattr(case, "test_case", None) is test for case in failed):
            print(f"repeat with CAUSEWAY_SEED={seed}", flush=True)

    test.addCleanup(tell)
    return random.Random(seed)


def split_digits(folder, clients=CLIENTS):
    parts = os.path.join(folder, "parts")
    done = run("data", "split", f"digits={DIGITS}", "--parts", clients, "--holdout", "20%", "--partition",
               "dirichlet alpha=0.5", "--seed", 7, "--out", parts)
    assert done.returncode == 0, done.stderr
    return parts


def first_format(path):
    """A database as the first format had it, made by the text in the source."""
    with open(os.path.join(ROOT, "coordinator", "schema.cpp"), encoding="utf-8") as file:
        text = re.search(r'format_1 = R"sql\((.*?)\)sql"', file.read(), re.S)[1]
    database = sqlite3.connect(path)
    database.executescript(text + "PRAGMA user_version=1;")
    database.close()


class Supervised:
    def __init__(self, parts, program=CAUSEWAY, env=None, clients=CLIENTS):
        self.folder = tempfile.mkdtemp(prefix="causeway-supervised-")
        self.state = os.path.join(self.folder, "coordinator")
        self.parts, self.program, self.clients = parts, program, clients
        self.environment = {**os.environ, **(env or {})}
        self.address = f"127.0.0.1:{free_port()}"
        self.lock = threading.Lock()
        self.processes, self.threads, self.restarts, self.closing = {}, [], 0, False
        os.mkdir(self.state, 0o700)
        first_format(os.path.join(self.state, "coordinator.db"))

    # ---- processes

    def start(self, name, words, env=None):
        ready = threading.Event()
        thread = threading.Thread(target=self.supervise, args=(name, [self.program, *map(str, words)], ready, env))
        self.threads.append(thread)
        thread.start()
        ready.wait(DEADLINE_S)

    def supervise(self, name, words, ready, env):
        with open(os.path.join(self.folder, name + ".log"), "ab") as log:
            while True:
                with self.lock:
                    if self.closing:
                        return
                    process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                               env={**self.environment, **(env or {})})
                    self.processes[name] = process
                ready.set()
                code = process.wait()
                if code == 0:
                    return
                self.restarts += 1
                assert self.restarts < MOST_RESTARTS, self.logs()

    def kill(self, name):
        with self.lock:
            self.processes[name].kill()

    def start_coordinator(self, env=None):
        self.start("coordinator", ["coordinator", "--state", self.state, "--listen", self.address, "--data",
                                   f"digits={self.parts}/holdout.csv.gz"], env)

    def start_clients(self, envs=None):
        for number in range(1, self.clients + 1):
            name = f"client-{number}"
            token = events(self.command("token", "new", "--json", "--name", name, on_taken=name))[0]["token"]
            self.start(name, ["join", token, "--state", os.path.join(self.folder, name), "--data",
                              f"digits={self.parts}/part-{number}.csv.gz"], (envs or {}).get(name))

    # ---- commands

    def command(self, *words, on_taken=""):
        """Repeated while the coordinator or the command itself is killed; a name taken by a token whose reply was lost
        is freed first, as a person would do it."""
        end = time.monotonic() + DEADLINE_S
        while True:
            done = subprocess.run([self.program, *map(str, words), "--state", self.state], capture_output=True,
                                  text=True, env=self.environment, timeout=DEADLINE_S)
            if done.returncode == 0:
                return done.stdout
            if on_taken and "in use in this federation" in done.stderr:
                self.command("node", "revoke", on_taken)
            assert time.monotonic() < end, f"{words}: {done.stdout}{done.stderr}\n{self.logs()}"

    def submit(self, name, *settings):
        """Once, even if a reply is lost: a submitted experiment is found by its name."""
        end = time.monotonic() + DEADLINE_S
        while True:
            known = events(self.command("experiment", "list", "--json"))
            for line in known:
                if line.get("name") == name:
                    return line.get("experiment", line.get("id"))
            subprocess.run([self.program, "experiment", "submit", "digits-fedavg", "--state", self.state, "--set",
                            f"experiment.name={name}", *settings], capture_output=True, env=self.environment,
                           timeout=DEADLINE_S, check=False)
            assert time.monotonic() < end, self.logs()

    def finish(self, experiment):
        return events(self.command("experiment", "wait", experiment, "--json"))[-1]

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                    text += f"--- {name}\n{file.read()[-1500:]}"
        return text

    def close(self):
        with self.lock:
            self.closing = True
            for process in self.processes.values():
                if process.poll() is None:
                    process.terminate()
        end = time.monotonic() + 10
        for thread in self.threads:
            thread.join(max(0.1, end - time.monotonic()))
        with self.lock:
            for process in self.processes.values():
                if process.poll() is None:
                    process.kill()
        subprocess.run(["rm", "-rf", self.folder], check=False)
