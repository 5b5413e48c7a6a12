#!/usr/bin/env python3
"""What a host's groups take, measured: real processes, the host's peak beside what it had at rest, and the formula.

    tests/bench/host_memory.py --causeway build/cli/causeway [--groups 1,2,4,6] [--width 2048]

A coordinator, a host and twelve clients on loopback train a network whose last layers, all at the host, have some 34 MB
(width 2048), with momentum. For each group count the host is started anew; its resident memory is read at rest, and its
peak after a round. The formula is the plan's (split/segment_memory.h): M x ((segment + momentum) x 2, gradients, and
values of a batch), and once four segments with momentum. Rows are made up here; nothing is downloaded.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import tempfile

CLIENTS = 12
EXPERIMENT = """
[experiment]
name = "memory"
seed = 7
rounds = 1
[data]
dataset = "rows"
label = "last"
shape = [64]
[model]
layers = ["dense 64", "relu", "dense {width}", "relu", "dense {width}", "relu", "dense {width}", "relu", "dense 10"]
[train]
optimizer = {{ kind = "sgd", learning_rate = 0.01, momentum = 0.9 }}
batch = 32
[regime]
preset = "gsfl"
cut = "relu"
groups = {groups}
[sync]
min_clients = {clients}
[evaluation]
where = "none"
"""


class Process:
    """One of ours, with --json; its lines are read as they are wanted."""

    def __init__(self, *words):
        self.child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def wait_for(self, wanted):
        for line in self.child.stdout:
            if line.startswith("{") and wanted(json.loads(line)):
                return json.loads(line)
        raise SystemExit("a process ended before it was ready")

    def memory(self, field):
        for line in pathlib.Path(f"/proc/{self.child.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return 1024 * int(line.split()[1])
        raise SystemExit(f"no {field} in /proc")

    def stop(self):
        self.child.terminate()
        self.child.communicate(timeout=30)


class Federation:
    def __init__(self, causeway, folder):
        self.causeway, self.folder, self.children = causeway, folder, []
        self.state = folder / "coordinator"

    def start(self, *words):
        process = Process(self.causeway, *words)
        self.children.append(process)
        return process

    def ask(self, *words):
        done = subprocess.run([self.causeway, *words, "--json", "--state", self.state], capture_output=True, text=True,
                              check=False)
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if not events or (done.returncode and words[1] != "wait"):
            raise SystemExit(done.stdout + done.stderr)
        return events[-1]

    def join(self, name, role, *more):
        token = self.ask("token", "new", "--name", name, "--role", role)["token"]
        node = self.start("join", token, "--json", "--state", self.folder / name, "--allow", "split", *more)
        node.wait_for(lambda event: "joined" in event.get("text", ""))
        return node

    def open(self, rows):
        coordinator = self.start("coordinator", "--json", "--state", self.state, "--listen", "127.0.0.1:0")
        coordinator.wait_for(lambda event: event.get("event") == "listening")
        for number in range(1, CLIENTS + 1):
            self.join(f"client-{number}", "client", "--data", f"rows={rows}")

    def close(self):
        for child in self.children:
            child.stop()


def measure(causeway, width, groups):
    """Bytes: at rest, at the peak."""
    with tempfile.TemporaryDirectory(prefix="causeway-host-memory-") as name:
        folder = pathlib.Path(name)
        rows = folder / "rows.csv"
        draw = random.Random(7)
        rows.write_text("".join(",".join(str(draw.randrange(17)) for _ in range(64)) + f",{draw.randrange(10)}\n"
                                for _ in range(96)))
        file = folder / "experiment.toml"
        file.write_text(EXPERIMENT.format(width=width, groups=groups, clients=CLIENTS))
        federation = Federation(causeway, folder)
        try:
            federation.open(rows)
            host = federation.join("host-1", "host")
            rest = host.memory("VmRSS")
            experiment = federation.ask("experiment", "submit", str(file))["experiment"]
            end = federation.ask("experiment", "wait", str(experiment))
            if end["state"] != "succeeded":
                raise SystemExit(f"it ended as {end['state']}: {end['reason']}")
            return rest, host.memory("VmHWM")
        finally:
            federation.close()


def formula(groups, width, batch=32):
    """Bytes: the host's layers after the first relu, for each group and, while a turn begins or ends, once."""
    boundaries = [64, width, width, width, width, width, width, 10]
    parameters = 64 * width + width + 2 * (width * width + width) + width * 10 + 10
    return groups * (4 * parameters * (2 * 2 + 1) + 2 * 4 * batch * sum(boundaries)) + 4 * 4 * parameters * 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--causeway", required=True)
    parser.add_argument("--groups", default="1,2,4,6")
    parser.add_argument("--width", type=int, default=2048)
    options = parser.parse_args()
    print("| groups | at rest, MB | peak, MB | peak less rest | formula | ratio |\n|---|---|---|---|---|---|")
    for groups in map(int, options.groups.split(",")):
        rest, peak = measure(os.path.abspath(options.causeway), options.width, groups)
        expected = formula(groups, options.width)
        print(f"| {groups} | {rest / 1e6:.0f} | {peak / 1e6:.0f} | {(peak - rest) / 1e6:.0f} | {expected / 1e6:.0f} "
              f"| {(peak - rest) / expected:.2f} |", flush=True)


if __name__ == "__main__":
    main()
