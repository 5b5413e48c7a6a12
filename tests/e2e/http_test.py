"""`--http`: health and metrics for this machine's monitoring, read-only, loopback only, gone when the loop stands still."""
import http.client
import os
import re
import signal
import unittest

from federation import Federation, free_port, run


class Http(unittest.TestCase):
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


if __name__ == "__main__":
    unittest.main()
