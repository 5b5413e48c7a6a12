"""`--http`: health and metrics for this machine's monitoring, read-only, loopback only, gone when the loop stands still."""
import contextlib
import http.client
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import unittest

from federation import Federation, free_port, run


class HttpCase(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=2)
        self.addCleanup(self.federation.close)
        self.port = free_port()

    def start(self):
        return self.federation.start_coordinator("--http", f"127.0.0.1:{self.port}")

    def ask(self, path, method="GET", host=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=host is not None)
            if host is not None:
                connection.putheader("Host", host)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def metrics(self):
        status, text = self.ask("/metrics")
        self.assertEqual(200, status)
        return {name: float(value) for name, value in re.findall(r"(?m)^(causeway\S+) (\S+)$", text)}


class Http(HttpCase):
    def test_metrics_follow_a_run(self):
        self.start()
        self.assertEqual((200, "ok\n"), self.ask("/healthz"))
        before = self.metrics()
        self.assertEqual(0, before['causeway_sessions{role="client"}'])
        self.federation.join_clients(2)
        self.federation.finish(self.federation.submit("--set", "experiment.rounds=3"))
        after = self.metrics()
        self.assertEqual(2, after['causeway_sessions{role="client"}'])
        self.assertEqual(1, after['causeway_experiments{state="succeeded"}'])
        self.assertEqual(3, after["causeway_rounds_committed_total"])
        for counter in ("causeway_received_bytes_total", "causeway_sent_bytes_total", "causeway_store_flushes_total"):
            self.assertGreater(after[counter], before[counter])

    def test_it_is_read_only_and_answers_no_other_name(self):
        self.start()
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            self.assertEqual(405, self.ask("/metrics", method)[0], method)
        self.assertEqual(404, self.ask("/state")[0])
        for host in ("attacker.example", "127.attacker.example", "", "10.0.0.1"):
            self.assertEqual(403, self.ask("/metrics", host=host)[0], host)
        self.assertEqual(200, self.ask("/metrics", host=f"localhost:{self.port}")[0])

    def test_a_public_address_is_refused(self):
        done = run("coordinator", "--state", os.path.join(self.federation.folder, "other"), "--listen", "127.0.0.1:0",
                   "--http", "0.0.0.0:9400")
        self.assertEqual(3, done.returncode)
        self.assertIn("127.0.0.1:9400", done.stderr)

    def test_without_the_option_nothing_listens(self):
        self.assertEqual(0, self.federation.start_coordinator().listening["http_port"])
        with self.assertRaises(OSError):
            self.ask("/healthz")

    def test_a_stop_is_not_held_up_by_an_open_connection(self):
        child = self.start()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        self.addCleanup(connection.close)
        connection.connect()  # and says nothing
        child.signal(signal.SIGTERM)
        self.assertEqual(0, child.process.wait(10))


# Opens 4,300 connections, or as many as it may, and keeps them; says after each fifth of them that it has.
HOLDER = """
import resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
many = min(4300, hard - 100)
resource.setrlimit(resource.RLIMIT_NOFILE, (many + 100, hard))
held = []
for fifth in range(5):
    for _ in range(many // 5):
        held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20))
        try:
            held[-1].sendall(b"GET /healthz HTTP/1.1\\r\\n")
        except ConnectionError:
            pass
    print("held", flush=True)
sys.stdin.read()
"""


class HttpUnderAttack(HttpCase):
    """Programs of this machine that hold, drip or flood: memory and descriptors stay, health and nodes are served."""

    MOST_GROWTH = 5_000_000  # bytes; 64 connections hold half a megabyte
    PROBE_S = 5              # an honest prober's patience

    def setUp(self):
        super().setUp()
        self.child = self.start()
        self.before = self.resident()
        self.open_before = self.descriptors()
        self.held = contextlib.ExitStack()
        self.addCleanup(self.held.close)

    def resident(self):
        with open(f"/proc/{self.child.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.child.process.pid}/fd"))

    def connect(self, saying=b""):
        peer = self.held.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=20))
        with contextlib.suppress(ConnectionError):
            peer.sendall(saying)
        return peer

    def assert_well(self):
        """An honest prober is answered, and nothing has grown that should not."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.PROBE_S)) as prober:
            prober.request("GET", "/healthz")
            self.assertEqual(b"ok\n", prober.getresponse().read())
        self.assertLess(self.resident() - self.before, self.MOST_GROWTH)
        self.assertLess(self.descriptors() - self.open_before, 80)

    def flood(self, first, block, times):
        """Sends until the server has had enough."""
        peer = self.connect(first)
        try:
            for _ in range(times):
                peer.sendall(block)
        except ConnectionError:
            return
        self.fail("all of it was taken")

    def test_bytes_without_a_newline_are_cut_off(self):
        self.flood(b"", b"A" * 1_000_000, 600)
        self.assert_well()

    def test_a_field_and_fields_without_end_are_cut_off(self):
        self.flood(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ", b"A" * 1_000_000, 600)
        self.flood(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", b"X-Header: 1\r\n" * 80_000, 600)
        self.assert_well()

    def test_a_body_without_end_is_cut_off(self):
        for announced in (b"Content-Length: 1000000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n", b"\r\n"):
            self.flood(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + announced, b"A" * 1_000_000, 600)
        self.assert_well()

    def test_thousands_of_connections_lock_nobody_out(self):
        holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(self.port)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.communicate)
        for _ in range(5):
            self.assertEqual("held\n", holder.stdout.readline())
            self.assert_well()
        self.federation.join_clients(2)  # whose connections need descriptors too
        self.assertEqual("succeeded", self.federation.finish(
            self.federation.submit("--set", "experiment.rounds=2"))["state"])

    def test_health_is_answered_beside_those_that_drip(self):
        for _ in range(100):
            self.connect(b"GET /hea")
        stop = threading.Event()
        drippers = [self.connect() for _ in range(3)]

        def drip():
            while not stop.wait(0.05):
                for peer in list(drippers):
                    try:
                        peer.sendall(b"G")
                    except OSError:
                        drippers.remove(peer)

        thread = threading.Thread(target=drip)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(stop.set)
        for _ in range(20):
            self.assert_well()
        self.assertEqual(408, self.status_of(self.connect(b"GET /healthz HTTP/1.1\r\nX: ")))

    def status_of(self, peer):
        heard = b""
        with contextlib.suppress(ConnectionError):
            while block := peer.recv(65536):
                heard += block
        return int(heard.split()[1]) if heard else None

    def test_other_protocols_and_halves_of_requests_are_closed(self):
        for said, status in ((b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400), (b"PRI * HTTP/2.0\r\n\r\n", 505),
                             (b"\0\0\0\0", 400), (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000, 200)):
            self.assertEqual(status, self.status_of(self.connect(said)), said[:20])
        for said, status in ((b"GET /healthz HTTP/1.1\r\n", None),
                             (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200)):
            peer = self.connect(said)
            peer.shutdown(socket.SHUT_WR)
            self.assertEqual(status, self.status_of(peer))
        self.assert_well()

    def test_answers_that_nobody_reads_are_not_kept(self):
        for _ in range(300):
            self.connect(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assert_well()


if __name__ == "__main__":
    unittest.main()
