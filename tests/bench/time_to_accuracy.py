#!/usr/bin/env python3
"""Where a regime wins and where it does not: time to accuracy of federated, split, SplitFed and GSFL training.

    tests/bench/time_to_accuracy.py --causeway build/cli/causeway --digits digits.csv.gz [--svg docs/time_to_accuracy.svg]

`causeway simulate` trains each regime for real, which says how accurate every round's model is; `causeway plan` says how
long one round takes over given links and clients. Their product is the time to an accuracy, without waiting for it.
tests/bench/split_links.py shows how near the plan's times are to measured ones.
"""
import argparse

from commands import events

CLIENTS = 12
ROUNDS = 30
RATES = (0.02, 0.05)  # each regime with the one that serves it better
SMALL = None  # the example's own: 38,000 parameters, 1 KiB an example across the cut
WIDE = 'model.layers=["conv 8 3x3", "relu", "maxpool 2", "flatten", "dense 1024", "relu", "dense 512", "relu", "dense 10"]'
SCENES = [
    ("small network, 2/8 Mbit/s", SMALL, "uplink=2mbit,downlink=8mbit,delay=10ms", "1x"),
    ("wide network, 2/8 Mbit/s", WIDE, "uplink=2mbit,downlink=8mbit,delay=10ms", "1x"),
    ("wide network, 100 Mbit/s, clients 30x slower", WIDE, "uplink=100mbit,downlink=100mbit,delay=2ms", "30x"),
    ("wide network, 100 Mbit/s", WIDE, "uplink=100mbit,downlink=100mbit,delay=2ms", "1x"),
]
REGIMES = [("federated", "fedavg", 0), ("split", "split", 1), ("gsfl 3", "gsfl", 3), ("gsfl 6", "gsfl", 6),
           ("splitfed-v1", "splitfed-v1", CLIENTS), ("splitfed-v2", "splitfed-v2", CLIENTS)]
LEVELS = (0.90, 0.95)
COLOURS = ["#444444", "#c0392b", "#1f77b4", "#17becf", "#2ca02c", "#9467bd"]


def common(options, model):
    words = ["--clients", str(CLIENTS), "--data", f"digits={options.digits}", "--json",
             "--set", f"sync.min_clients={CLIENTS}", "--set", f"experiment.rounds={ROUNDS}"]
    return words + (["--set", model] if model else [])


def accuracies(options, model, preset, groups):
    words = ["--set", f"regime.preset={preset}"]
    if preset == "gsfl":
        words += ["--set", f"regime.groups={groups}"]
    curves = []
    for rate in RATES:
        rates = ["--set", f'train.optimizer={{kind="sgd",learning_rate={rate},momentum=0.9}}']
        found = events([options.causeway, "simulate", "digits-gsfl", *common(options, model), *words, *rates])
        curves.append([event["accuracy"] for event in found if event["event"] == "round"])
    return max(curves, key=lambda curve: curve[-1])


def round_seconds(options, model, link, slow):
    """By regime and group count, at the first pool."""
    found = events([options.causeway, "plan", "digits-gsfl", *common(options, model), "--link", link, "--slow", slow,
                    "--step-seconds", str(options.step_seconds)])
    return {(event["regime"], event["groups"]): event["seconds"] for event in found
            if event["event"] == "plan" and event["cut"] in (None, "maxpool")}


def time_to(curve, level, seconds):
    for number, accuracy in enumerate(curve, 1):
        if accuracy >= level:
            return number * seconds
    return None


def picture(scenes):
    """Small multiples: accuracy over time, a logarithmic axis, each regime a line with its name at its end."""
    import math
    width, height, left, top, gap = 560, 300, 56, 34, 60
    parts = []
    for place, (title, lines) in enumerate(scenes):
        x0, y0 = left + (place % 2) * (width + gap), top + (place // 2) * (height + gap + 20)
        times = [time for _, points in lines for time, _ in points]
        low, high = math.log10(min(times)), math.log10(max(times))
        across = lambda t: x0 + (math.log10(t) - low) / (high - low) * (width - 90)
        up = lambda a: y0 + height - a * height
        parts.append(f'<text x="{x0}" y="{y0 - 12}" class="t">{title}</text>')
        for level in (0, 0.25, 0.5, 0.75, 1):
            parts.append(f'<line x1="{x0}" x2="{x0 + width - 90}" y1="{up(level):.1f}" y2="{up(level):.1f}" class="g"/>'
                         f'<text x="{x0 - 8}" y="{up(level) + 4:.1f}" class="a" text-anchor="end">{level:.0%}</text>')
        for power in range(math.ceil(low), math.floor(high) + 1):
            parts.append(f'<line x1="{across(10 ** power):.1f}" x2="{across(10 ** power):.1f}" y1="{y0}" y2="{y0 + height}" '
                         f'class="g"/><text x="{across(10 ** power):.1f}" y="{y0 + height + 18}" class="a" '
                         f'text-anchor="middle">{10 ** power:g} s</text>')
        for (name, points), colour in zip(lines, COLOURS):
            path = " ".join(f"{across(t):.1f},{up(a):.1f}" for t, a in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for row, ((name, _), colour) in enumerate(zip(lines, COLOURS)):
            parts.append(f'<text x="{x0 + width - 82}" y="{y0 + 14 + 18 * row}" class="a" fill="{colour}">{name}</text>')
    total_width = 2 * (width + gap) + left
    total_height = top + ((len(scenes) + 1) // 2) * (height + gap + 20)
    style = ".t{font:600 15px sans-serif}.a{font:12px sans-serif}.g{stroke:#dddddd}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{total_width}" height="{total_height}" '
            f'viewBox="0 0 {total_width} {total_height}"><style>{style}</style><rect width="100%" height="100%" '
            f'fill="white"/>{"".join(parts)}</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--causeway", required=True)
    parser.add_argument("--digits", required=True)
    parser.add_argument("--svg")
    parser.add_argument("--step-seconds", type=float, default=0.002, help="one batch, all layers, on the host's machine")
    options = parser.parse_args()
    trained = {}
    scenes = []
    for title, model, link, slow in SCENES:
        seconds = round_seconds(options, model, link, slow)
        print(f"\n{title}\n{'regime':<12} {'s a round':>10} {'to 90 %':>10} {'to 95 %':>10} {'after ' + str(ROUNDS):>9}")
        lines = []
        for name, preset, groups in REGIMES:
            if (model, name) not in trained:
                trained[model, name] = accuracies(options, model, preset, groups)
            curve = trained[model, name]
            each = seconds["federated" if preset == "fedavg" else preset, groups]
            reached = [f"{time:.1f} s" if (time := time_to(curve, level, each)) else "-" for level in LEVELS]
            print(f"{name:<12} {each:10.2f} {reached[0]:>10} {reached[1]:>10} {curve[-1]:>9.2%}", flush=True)
            lines.append((name, [(number * each, accuracy) for number, accuracy in enumerate(curve, 1)]))
        scenes.append((title, lines))
    if options.svg:
        with open(options.svg, "w", encoding="utf-8") as file:
            file.write(picture(scenes))


if __name__ == "__main__":
    main()
