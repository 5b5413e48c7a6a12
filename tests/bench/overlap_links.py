#!/usr/bin/env python3
"""What an overlap of client and host gains over slow links: real processes beside the cost model's bound.

    tests/bench/overlap_links.py --causeway build/cli/causeway --digits build/data/digits.csv.gz

For every overlap one demo of split learning with four clients is run, each behind a shaping proxy; the rounds after the
first count, since that one has also to find the nodes. `causeway plan` says what the cost model expects of the same
file: its computing is measured on this machine at rest, so run nothing beside it. Under two minutes with the default.
"""
import argparse
import statistics

from commands import events


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--causeway", required=True)
    parser.add_argument("--digits", required=True)
    parser.add_argument("--overlaps", default="0,1,2,4")
    parser.add_argument("--preset", default="split")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--link", default="uplink=20mbit,downlink=20mbit,delay=20ms")
    options = parser.parse_args()
    print(f"{options.clients} clients, {options.preset}, {options.link}\n")
    print("overlap   seconds a round   cost model   share of its bound   accuracy")
    for overlap in map(int, options.overlaps.split(",")):
        common = ["digits-gsfl", "--clients", str(options.clients), "--link", options.link, "--data",
                  f"digits={options.digits}", "--json"]
        for setting in (f"experiment.rounds={options.rounds}", f"regime.preset={options.preset}",
                        f"regime.overlap={overlap}", "data.partition.kind=iid",
                        f"sync.min_clients={options.clients}"):
            common += ["--set", setting]
        plan = [event["seconds"] for event in events([options.causeway, "plan", *common])
                if event["event"] == "plan" and event["cut"] == "maxpool" and event["regime"] == options.preset]
        rounds = [event for event in events([options.causeway, "demo", *common]) if event["event"] == "round"]
        seconds = statistics.median(event["seconds"] for event in rounds[1:])
        print(f"{overlap:7} {seconds:17.2f} {plan[0]:12.2f} {100 * plan[0] / seconds:19.1f}%"
              f" {rounds[-1].get('accuracy', float('nan')):11.4f}", flush=True)


if __name__ == "__main__":
    main()
