#!/usr/bin/env python3
"""Split learning and GSFL over slow links: real processes, each client behind a shaping proxy, beside the cost model.

    tests/bench/split_links.py --causeway build/cli/causeway --mnist FOLDER [--groups 1,2,3,4,6,12] [--examples 2000]

FOLDER holds images-idx3-ubyte.gz and labels-idx1-ubyte.gz. For every group count one demo of 12 clients is run with
uplinks of 2 Mbit/s and downlinks of 8 Mbit/s; the second round is what counts, since the first has also to find the
nodes. `causeway plan` says what the cost model expects of the same file. Most of the time is waiting for links: about
four minutes with the default, whatever the machine.
"""
import argparse
import gzip
import pathlib
import struct
import tempfile

from commands import events

EXPERIMENT = """
[experiment]
name = "links"
seed = 7
rounds = 2
[data]
dataset = "mnist"
shape = [28, 28, 1]
scale = "0..255 -> 0..1"
holdout = "{holdout}"
partition = {{ kind = "iid" }}
[model]
layers = ["conv 8 3x3", "relu", "maxpool 2", "conv 16 3x3", "relu", "maxpool 2", "flatten", "dense 64", "relu", "dense 10"]
loss = "cross-entropy"
[train]
optimizer = {{ kind = "sgd", learning_rate = 0.05, momentum = 0.9 }}
batch = 16
[regime]
preset = "gsfl"
cut = "maxpool"
groups = 2
[sync]
min_clients = {clients}
"""


def cut_idx(source, target, count):
    """The first `count` items of an IDX file, whatever their size."""
    with gzip.open(source) as file:
        magic = file.read(4)
        extents = struct.unpack(f">{magic[3]}I", file.read(4 * magic[3]))
        item = 1
        for extent in extents[1:]:
            item *= extent
        body = file.read(count * item)
    target.write_bytes(magic + struct.pack(f">{len(extents)}I", count, *extents[1:]) + body)


def regime(groups, clients):
    if groups == 1:
        return ["--set", "regime.preset=split"]
    return ["--set", "regime.preset=gsfl", "--set", f"regime.groups={min(groups, clients)}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--causeway", required=True)
    parser.add_argument("--mnist", required=True, type=pathlib.Path)
    parser.add_argument("--groups", default="1,2,3,4,6,12")
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--examples", type=int, default=2000, help="trained on in a round, all clients together")
    parser.add_argument("--link", default="uplink=2mbit,downlink=8mbit,delay=10ms")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        held_out = 500
        for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"):
            cut_idx(options.mnist / f"{kind}.gz", folder / f"mnist-{kind}", options.examples + held_out)
        file = folder / "links.toml"
        file.write_text(EXPERIMENT.format(clients=options.clients, holdout=f"{100 * held_out // (options.examples + held_out)}%"))
        common = ["--clients", str(options.clients), "--link", options.link, "--data",
                  f"mnist={folder / 'mnist-images-idx3-ubyte'}", "--json"]
        plan = {}
        for event in events([options.causeway, "plan", file, "--examples", str(-(-options.examples // options.clients)), *common]):
            if event["event"] == "plan" and event["cut"] == "maxpool" and event["regime"] != "splitfed-v2":
                plan[event["groups"]] = event["seconds"]
        print(f"{options.clients} clients, {options.examples} examples a round, {options.link}\n")
        print("groups   seconds a round   cost model   ratio   x split learning   accuracy after 2 rounds")
        split = None
        for groups in map(int, options.groups.split(",")):
            rounds = [event for event in events([options.causeway, "demo", file, *common, *regime(groups, options.clients)])
                      if event["event"] == "round"]
            seconds = rounds[-1]["seconds"]
            split = split or seconds
            print(f"{groups:6} {seconds:17.2f} {plan[groups]:12.2f} {seconds / plan[groups]:7.3f} {split / seconds:18.2f}"
                  f" {rounds[-1].get('accuracy', float('nan')):25.4f}", flush=True)


if __name__ == "__main__":
    main()
