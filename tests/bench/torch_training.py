"""The networks of `causeway bench training` on both sides, Causeway and PyTorch, in alternating runs of one command.

    /usr/bin/python3 tests/bench/torch_training.py [--causeway build/cli/causeway] [--threads 2] [--rounds 3] [ROW...]

A row is mlp, cnn or resnet; without --causeway only PyTorch's side runs. Needs python3-torch (says so when it is
missing). Each side runs in a process of its own per row and round, so that its peak memory is its own; PyTorch with and
without channels last. The least of all rounds counts, because other work on the machine can only add. Prints both
sides, the ratio, and the load at the beginning: above 0.3 the figures are not worth keeping.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import time

LINE = "{:<12}{:>14}{:>14}{:>8}{:>16}{:>16}"


def import_torch():
    global torch, nn
    try:
        import torch
        from torch import nn
    except ImportError:
        sys.exit("skipped: python3-torch is not installed (or this is not the Python that has it: /usr/bin/python3)")


def block(inputs, outputs, stride):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.main = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs),
                                      nn.ReLU(inplace=True), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
                                      nn.BatchNorm2d(outputs))
            same = inputs == outputs and stride == 1
            self.shortcut = nn.Identity() if same else nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            return torch.relu_(self.main(x) + self.shortcut(x))

    return Block()


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))


def resnet():
    parts, inputs = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)], 64
    for outputs, stride in [(64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)]:
        parts.append(block(inputs, outputs, stride))
        inputs = outputs
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


# the network, its input, the momentum, and how many steps are timed
CASES = {"mlp": (mlp, (128, 784), 0.9, 300), "cnn": (cnn, (64, 1, 28, 28), 0.0, 100),
         "resnet": (resnet, (64, 3, 32, 32), 0.9, 5)}


def least_step(name, channels_last):
    make, shape, momentum, steps = CASES[name]
    torch.manual_seed(1)
    model, x, y = make(), torch.randn(*shape), torch.randint(0, 10, (shape[0],))
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=momentum)
    least = float("inf")
    for step in range(steps + 1):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        least = min(least, time.perf_counter() - begin) if step else least
    return 1e3 * least


def torch_alone(name, channels_last, threads):
    """One measurement, as JSON: what the child process prints."""
    import_torch()
    torch.set_num_threads(threads)
    ms = least_step(name, channels_last)
    print(json.dumps({"ms": ms, "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def run_torch(name, threads):
    layouts = ["plain", "last"] if len(CASES[name][1]) == 4 else ["plain"]
    found = []
    for layout in layouts:
        out = subprocess.run([sys.executable, __file__, "--alone", layout, "--threads", str(threads), name],
                             stdout=subprocess.PIPE, check=True, text=True).stdout
        found.append(json.loads(out))
    return min(found, key=lambda one: one["ms"])


def run_causeway(program, name, threads):
    """Every row of this network: f32, and bf16 and Winograd's convolutions where there are."""
    out = subprocess.run([program, "bench", "training", "--rows", name, "--threads", str(threads), "--json"],
                         stdout=subprocess.PIPE, check=True, text=True).stdout
    rows = [json.loads(line) for line in out.splitlines()]
    found = {}
    for row in rows:
        if row.get("what", "").startswith(name):
            kind = next((kind for kind in ("bf16", "winograd") if f" {kind}," in row["what"]), "f32")
            found.setdefault(kind, {})["mib" if row["unit"] == "MiB" else "ms"] = row["value"]
    return found


def least(a, b):
    return b if a is None else {key: min(a[key], b[key]) for key in a}


def compare(name, options):
    theirs, ours = None, {}
    for _ in range(options.rounds):
        if options.causeway:
            for kind, one in run_causeway(options.causeway, name, options.threads).items():
                ours[kind] = least(ours.get(kind), one)
        theirs = least(theirs, run_torch(name, options.threads))
    for kind, one in ours.items():
        print(LINE.format(f"{name} {kind}", f"{one['ms']:.2f} ms", f"{theirs['ms']:.2f} ms",
                          f"{one['ms'] / theirs['ms']:.2f}", f"{one['mib']:.0f} MiB", f"{theirs['mib']:.0f} MiB"),
              flush=True)
    if not ours:
        print(LINE.format(name, "", f"{theirs['ms']:.2f} ms", "", "", f"{theirs['mib']:.0f} MiB"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--causeway", help="the executable, to run both sides")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--alone", choices=["plain", "last"], help=argparse.SUPPRESS)
    parser.add_argument("rows", nargs="*", default=list(CASES), metavar="ROW")
    options = parser.parse_args()
    if options.alone:
        return torch_alone(options.rows[0], options.alone == "last", options.threads)
    import_torch()
    print(f"{options.threads} threads, {options.rounds} rounds, load {os.getloadavg()[0]:.2f}, torch {torch.__version__}")
    print(LINE.format("row", "Causeway", "PyTorch", "ratio", "peak", "peak"))
    for name in options.rows:
        compare(name, options)


main()
