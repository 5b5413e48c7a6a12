"""A slow, long, lossy line between two network namespaces, as a process (root): what TCP really does on such a line.

    python3 tests/e2e/tun_link.py NEAR FAR --rate 20mbit --delay 50ms --loss 1% [--jitter 5ms] [--queue 200ms] [--seed 7]

A TUN device stands in each namespace, 10.78.0.1 in NEAR and 10.78.0.2 in FAR, and packets go through this process. A
direction is a token bucket (`--rate`; `--back` is from NEAR to FAR), then a delay; what would wait longer than `--queue`
for the bucket is dropped, as a router does it, and of the rest `--loss` is, by a seeded draw. Jitter delays packets and
never puts one before another. It says "up" when packets go through; on stdin `down` makes the line swallow all packets
without a word to anybody, `up` ends that; at the end of stdin it says what went each way and ends.

The kernel here has no netem. One thread; 20 Mbit/s take a tenth of a core.
"""
import argparse
import collections
import ctypes
import fcntl
import json
import os
import random
import re
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
ADDRESSES = ["10.78.0.1", "10.78.0.2"]
LARGEST_PACKET = 65536
MOST_AT_ONCE = 64  # packets, before the other direction has its turn


def scaled(text, units):
    number, unit = re.fullmatch(r"([0-9.]+)([a-z%]+)", text).groups()
    return float(number) * units[unit]


def seconds(text):
    return scaled(text, {"us": 1e-6, "ms": 1e-3, "s": 1.0})


def bytes_per_second(text):
    return scaled(text, {"kbit": 125.0, "mbit": 125e3, "gbit": 125e6})


def open_tun(namespace, address, peer):
    """A point-to-point device in that namespace; the descriptor works from any."""
    with open(f"/run/netns/{namespace}", encoding="ascii") as there:
        if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"line0", IFF_TUN | IFF_NO_PI))
    for words in (f"addr add {address} peer {peer} dev line0", "link set line0 up", "link set lo up"):
        subprocess.run(["ip", *words.split()], check=True)
    return tun


class Way:
    """One direction: when a packet that comes now is through, if it ever is."""

    def __init__(self, rate, options, seed):
        self.rate, self.options, self.chance = rate, options, random.Random(seed)
        self.free = self.last = 0.0
        self.waiting = collections.deque()
        self.seen = collections.Counter(packets=0, bytes=0, lost=0, dropped=0)

    def take(self, now, packet):
        start = max(self.free, now)
        if start - now > self.options.queue:
            self.seen["dropped"] += 1
            return
        self.free = start + len(packet) / self.rate
        if self.chance.random() < self.options.loss:
            self.seen["lost"] += 1
            return
        due = self.free + self.options.delay + self.chance.random() * self.options.jitter
        self.last = max(self.last, due)
        self.waiting.append((self.last, packet))

    def give(self, now, tun):
        while self.waiting and self.waiting[0][0] <= now:
            packet = self.waiting.popleft()[1]
            try:
                os.write(tun, packet)
                self.seen.update(packets=1, bytes=len(packet))
            except BlockingIOError:
                self.seen["dropped"] += 1


def carry(tuns, ways):
    """Until the end of stdin. ways[0] leads from tuns[0] to tuns[1]."""
    up = True
    while True:
        dues = [way.waiting[0][0] for way in ways if way.waiting]
        patience = max(0.0, min(dues) - time.monotonic()) if dues else None
        readable = select.select([*tuns, sys.stdin.fileno()], [], [], patience)[0]
        if sys.stdin.fileno() in readable:
            words = os.read(sys.stdin.fileno(), 4096).split()
            if not words:
                return
            up = words[-1] == b"up"
            print(words[-1].decode(), flush=True)
        for number, way in enumerate(ways):
            for _ in range(MOST_AT_ONCE if tuns[number] in readable else 0):
                try:
                    packet = os.read(tuns[number], LARGEST_PACKET)
                except BlockingIOError:
                    break
                if up:
                    way.take(time.monotonic(), packet)
            way.give(time.monotonic(), tuns[1 - number])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("namespaces", nargs=2)
    parser.add_argument("--rate", type=bytes_per_second, required=True)
    parser.add_argument("--back", type=bytes_per_second)
    parser.add_argument("--delay", type=seconds, default=0.0)
    parser.add_argument("--loss", type=lambda text: scaled(text, {"%": 0.01}), default=0.0)
    parser.add_argument("--jitter", type=seconds, default=0.0)
    parser.add_argument("--queue", type=seconds, default=0.2)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    tuns = [open_tun(name, ADDRESSES[i], ADDRESSES[1 - i]) for i, name in enumerate(options.namespaces)]
    ways = [Way(options.back or options.rate, options, f"{options.seed} out"),
            Way(options.rate, options, f"{options.seed} in")]
    print("up", flush=True)
    carry(tuns, ways)
    print(json.dumps({"near_to_far": ways[0].seen, "far_to_near": ways[1].seen}), flush=True)


if __name__ == "__main__":
    main()
