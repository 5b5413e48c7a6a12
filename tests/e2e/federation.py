"""A federation of real processes for the end-to-end tests: start, kill, restart, ask. Deadlines everywhere, no sleeps.

Polling waits on a pipe or a process with a time-out, so a test is as fast as the thing it waits for.
"""
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BUILD = os.environ.get("CAUSEWAY_BUILD_DIR", os.path.join(os.getcwd(), "build"))
CAUSEWAY = os.path.join(BUILD, "cli", "causeway")
DIGITS = os.path.join(BUILD, "data", "digits.csv.gz")
DEADLINE_S = 60


def run(*arguments, deadline=DEADLINE_S, stdin="", env=None, prefix=()):
    """One command to its end: CompletedProcess with text output."""
    return subprocess.run([*prefix, CAUSEWAY, *map(str, arguments)], capture_output=True, text=True, input=stdin,
                          timeout=deadline, env={**os.environ, **(env or {})})


def events(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Child:
    """A long-running command whose stdout lines are read with deadlines; stderr goes to a file."""

    def __init__(self, arguments, folder, name, prefix=(), program=CAUSEWAY, env=None):
        self.log = os.path.join(folder, name + ".log")
        self.arguments = [*prefix, program, *map(str, arguments)]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE, stderr=log,
                                            stdin=subprocess.DEVNULL, env=env)
        self.buffer = b""

    def line(self, deadline=DEADLINE_S):
        """The next line of stdout, or None at its end."""
        end = time.monotonic() + deadline
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise TimeoutError(f"{self.arguments} said nothing more within {deadline} s\n{self.errors()}")
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                return None
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def event(self, wanted, deadline=DEADLINE_S):
        """The next JSON object for which `wanted` holds."""
        end = time.monotonic() + deadline
        while True:
            line = self.line(max(0.01, end - time.monotonic()))
            if line is None:
                raise AssertionError(f"{self.arguments} ended without it\n{self.errors()}")
            if line.startswith("{"):
                value = json.loads(line)
                if wanted(value):
                    return value

    def errors(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait(DEADLINE_S)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        self.process.stdout.close()
        return self.process.returncode


class Federation:
    """A coordinator and clients on loopback with the digits divided among them, as the demo does it.

    With `line` (long_line.py) the coordinator and the commands are at its near end, the clients at its far end.
    """

    def __init__(self, clients=3, port=None, seed=7, holdout="20%", partition="dirichlet alpha=0.5", line=None):
        self.host = line.address if line else "127.0.0.1"
        self.near, self.far = (line.near, line.far) if line else ((), ())
        self.folder = tempfile.mkdtemp(prefix="causeway-e2e-")
        self.state = os.path.join(self.folder, "coordinator")
        self.port = port or free_port()
        self.children = {}
        self.parts = os.path.join(self.folder, "parts")
        done = run("data", "split", f"digits={DIGITS}", "--parts", clients, "--holdout", holdout, "--partition", partition,
                   "--seed", seed, "--out", self.parts)
        assert done.returncode == 0, done.stderr

    def launch_coordinator(self, *more):
        """Without waiting until it listens."""
        child = Child(["coordinator", "--json", "--state", self.state, "--listen", f"{self.host}:{self.port}",
                       "--data", f"digits={self.parts}/holdout.csv.gz", *more], self.folder, "coordinator", self.near)
        self.children["coordinator"] = child
        return child

    def start_coordinator(self, *more):
        child = self.launch_coordinator(*more)
        child.listening = child.event(lambda e: e.get("event") == "listening")
        return child

    def token(self, name, *more):
        done = self.command("token", "new", "--json", "--name", name, *more)
        assert done.returncode == 0, done.stderr
        return events(done.stdout)[0]["token"]

    def start_client(self, number, token=""):
        """Client `number` from 1; enrols with `token`, or goes on with what it has."""
        name = f"client-{number}"
        words = ["join", *([token] if token else []), "--json", "--state", os.path.join(self.folder, name),
                 "--data", f"digits={self.parts}/part-{number}.csv.gz"]
        self.children[name] = Child(words, self.folder, name, self.far)
        return self.children[name]

    def join_clients(self, count):
        for number in range(1, count + 1):
            self.start_client(number, self.token(f"client-{number}"))
        for number in range(1, count + 1):
            self.children[f"client-{number}"].event(lambda e: "joined" in e.get("text", ""))

    def command(self, *arguments, **options):
        return run(*arguments, "--state", self.state, prefix=self.near, **options)

    def submit(self, *arguments):
        done = self.command("experiment", "submit", "digits-fedavg", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        return events(done.stdout)[0]["experiment"]

    def watch(self, experiment):
        return Child(["experiment", "watch", experiment, "--json", "--state", self.state], self.folder, "watch", self.near)

    def finish(self, experiment, deadline=DEADLINE_S):
        """Waits for the end; the `done` event."""
        done = self.command("experiment", "wait", experiment, "--json", deadline=deadline)
        last = events(done.stdout)[-1]
        if "state" not in last:
            raise AssertionError(f"wait ended without an end: {done.stdout}\n{done.stderr}")
        return last

    def close(self):
        for child in self.children.values():
            child.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


__all__ = ["Child", "Federation", "run", "events", "free_port", "signal", "CAUSEWAY", "DIGITS", "DEADLINE_S"]
