"""Peers that mean harm: strangers, and holders of a valid certificate. The coordinator's memory grows by less than 10 MB,
honest clients are served, and their model is the undisturbed one.

tests/hostile/attacker lies with the real wire library; here are those who do not even keep to the protocol.
"""
import os
import random
import socket
import ssl
import struct
import subprocess
import time
import unittest

from federation import BUILD, DIGITS, Federation, events, run
from supervised import LONG

ATTACKER = os.path.join(BUILD, "tests", "hostile", "attacker")
SETTINGS = ["--set", "experiment.rounds=30", "--set", "sync.min_clients=3"]
MOST_GROWTH_KB = 10 * 1024
STRANGERS = 2000 if LONG else 400
GREETING = b"\xff" + b"\0" * 8 + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + b"\0" * 32
READY = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"


def rss_kb(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


class RawPeer:
    """ZMTP and TLS 1.3 by hand, so that anything can be said inside."""

    def __init__(self, port, folder):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.socket.sendall(GREETING + READY)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols(["causeway/1"])
        context.load_cert_chain(os.path.join(folder, "node.crt"), os.path.join(folder, "node.key"))
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing)
        self.buffer = b""
        self.read_exactly(64)  # the greeting
        self.frame()           # READY
        while True:
            try:
                self.tls.do_handshake()
                self.flush()
                return
            except ssl.SSLWantReadError:
                self.flush()
                self.incoming.write(self.frame())

    def read_exactly(self, size):
        while len(self.buffer) < size:
            piece = self.socket.recv(65536)
            if not piece:
                raise ConnectionError("closed")
            self.buffer += piece
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def frame(self):
        flags = self.read_exactly(1)[0]
        size = struct.unpack(">Q", self.read_exactly(8))[0] if flags & 2 else self.read_exactly(1)[0]
        return self.read_exactly(size)

    def flush(self):
        if sealed := self.outgoing.read():
            self.socket.sendall(b"\x02" + struct.pack(">Q", len(sealed)) + sealed)

    def say(self, bytes_inside):
        for at in range(0, len(bytes_inside), 16384):
            self.tls.write(bytes_inside[at:at + 16384])
        self.flush()

    def closed(self, within=20):
        """Whether the coordinator ends it; waits so many seconds for that."""
        self.socket.settimeout(within)
        try:
            while True:
                self.frame()
        except (ConnectionError, socket.timeout) as why:
            return not isinstance(why, socket.timeout)

    def close(self):
        self.socket.close()


def words(chance):
    """What no message is: giants, depth, noise. Each is u32 length and what follows."""
    deep = struct.pack("<II", 0, 1000) + struct.pack("<Q", 0x0000000100000000 | 3) * 1000
    yield struct.pack("<I", 0xffffffff) + b"x" * 100
    yield struct.pack("<I", 1 << 30) + b"x" * 100_000
    yield struct.pack("<II", 4 + len(deep), len(deep)) + deep
    yield struct.pack("<II", 20, 16) + struct.pack("<IIQ", 0, 1, 1 << 61)
    yield struct.pack("<II", 12, 1 << 28) + b"\0" * 8
    for _ in range(20):
        noise = bytes(chance.randrange(256) for _ in range(chance.randrange(2000)))
        yield struct.pack("<I", len(noise)) + noise
    yield bytes(chance.randrange(256) for _ in range(50_000))


@unittest.skipUnless(os.path.exists(ATTACKER), "built with everything else")
class Hostile(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=3)
        self.addCleanup(self.federation.close)
        self.coordinator = self.federation.start_coordinator()
        self.federation.join_clients(3)
        done = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", 3, *SETTINGS)
        self.digest = events(done.stdout)[-1]["model_sha256"]
        self.finish_honest()  # what a first run allocates is no growth
        self.before = rss_kb(self.coordinator.process)

    def finish_honest(self, *more):
        end = self.federation.finish(self.federation.submit(*SETTINGS, *more))
        self.assertEqual(("succeeded", self.digest), (end["state"], end["model_sha256"]))

    def check_memory(self):
        self.assertLess(rss_kb(self.coordinator.process) - self.before, MOST_GROWTH_KB)

    def attack(self, kind, name="liar"):
        process = subprocess.Popen([ATTACKER, self.federation.token(name), kind], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def end_of(self, attacker):
        said = attacker.communicate(timeout=60)[0]
        self.assertEqual(0, attacker.returncode, said)
        self.check_memory()
        return said

    def test_lies_floods_and_pulls_under_a_valid_certificate_disturb_no_run(self):
        for kind in ("lies", "floods", "bulk"):
            with self.subTest(kind=kind):
                self.before = rss_kb(self.coordinator.process)
                attacker = self.attack(kind, kind)
                self.finish_honest()
                self.end_of(attacker)
        self.finish_honest()

    def test_a_member_whose_every_update_is_wrong_is_refused_each_time_and_changes_no_bit(self):
        attacker = self.attack("member")
        while not any(line.get("node") == "liar" and line.get("state") == "online"
                      for line in events(self.federation.command("node", "list", "--json").stdout)):
            self.assertIsNone(attacker.poll())
        self.finish_honest("--set", "sync.min_clients=4", "--set", "sync.quorum=3")
        said = self.end_of(attacker)
        self.assertIn("30 rounds", said)
        self.assertNotIn("no answer", said)

    def test_thousands_of_half_open_connections_and_slow_drips_are_closed_and_leave_nothing(self):
        peers = []
        chance = random.Random(5)
        for number in range(STRANGERS):
            peer = socket.create_connection(("127.0.0.1", self.federation.port), timeout=20)
            peer.setblocking(False)
            try:
                peer.send([b"", GREETING[:1], GREETING[:chance.randrange(64)], GREETING + READY,
                           GREETING + READY + b"\x02" + struct.pack(">Q", 1 << 61)][number % 5])
            except OSError:
                pass  # shown the door already
            peers.append(peer)
        self.check_memory()
        self.finish_honest()
        closed, end = set(), time.monotonic() + 30
        while len(closed) < STRANGERS and time.monotonic() < end:
            for number, peer in enumerate(peers):
                if number in closed:
                    continue
                try:
                    if not peer.recv(4096):
                        closed.add(number)
                    peer.send(b"\0")  # a byte now and then keeps nobody in
                except BlockingIOError:
                    pass
                except OSError:
                    closed.add(number)
        self.assertEqual(STRANGERS, len(closed))
        for peer in peers:
            peer.close()
        self.finish_honest()
        self.check_memory()

    def test_giants_depth_and_noise_inside_tls_close_the_connection_and_nothing_else(self):
        folder = os.path.join(self.federation.folder, "intruder")
        done = subprocess.Popen([os.path.join(BUILD, "cli", "causeway"), "join", self.federation.token("intruder"), "--state",
                                 folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(done.stdout.close)
        while not os.path.exists(os.path.join(folder, "node", "node.crt")):
            self.assertIsNone(done.poll())
        done.terminate()
        done.wait(20)
        for number, said in enumerate(words(random.Random(9))):
            with self.subTest(number=number):
                peer = RawPeer(self.federation.port, os.path.join(folder, "node"))
                peer.say(said)
                peer.say(b"\0" * 8)
                self.assertTrue(peer.closed(within=5))  # silence would be ended after 10 s
                peer.close()
        self.check_memory()
        self.finish_honest()


if __name__ == "__main__":
    unittest.main()
