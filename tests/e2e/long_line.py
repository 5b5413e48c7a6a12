"""Two network namespaces joined by tun_link.py, for tests: the coordinator's side is near, the nodes' far."""
import json
import os
import subprocess
import sys

import tun_link


def root(*words):
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


class LongLine:
    """`works` is False where this user or kernel cannot have it; `why` says what is missing."""

    def __init__(self, *options):
        self.names = [f"causeway-{end}-{os.getpid()}" for end in ("near", "far")]
        self.near, self.far = (["ip", "netns", "exec", name] for name in self.names)
        self.address = tun_link.ADDRESSES[0]
        self.process = None
        self.why = self.make(options)
        self.works = not self.why

    def make(self, options):
        if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
            return "needs root and /dev/net/tun"
        if not all(root("ip", "netns", "add", name) for name in self.names):
            return "no network namespaces here"
        self.process = subprocess.Popen([sys.executable, tun_link.__file__, *self.names, *options], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = self.process.stdout.readline()
        return "" if said == "up\n" else f"no such line here: {self.process.stderr.read()[-500:]}"

    def say(self, word):
        """`down`: every packet is swallowed from now on; `up`."""
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == word + "\n"

    def use(self, congestion_control):
        """Of connections that are opened from now on. False where the kernel has no such."""
        return all(root(*at, "sysctl", "-w", f"net.ipv4.tcp_congestion_control={congestion_control}")
                   for at in (self.near, self.far))

    def close(self):
        """What went through each way, by tun_link.py's count."""
        said = ""
        if self.process is not None:
            said = self.process.communicate(timeout=60)[0]
        for name in self.names:
            root("ip", "netns", "del", name)
        return json.loads(said) if said else {}
