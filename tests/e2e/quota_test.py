"""Quotas on disks: what is reached is a pause with its reason, never an end, and with room the same model is reached."""
import http.client
import os
import re
import signal
import socket
import threading
import time
import unittest

from federation import DIGITS, Federation, events, free_port, run

# A model and updates of about 5 MB: larger than what stays in memory.
LARGE = ["--set", 'model.layers=["flatten", "dense 17000", "relu", "dense 10"]', "--set", "experiment.rounds=3", "--set",
         "sync.min_clients=2", "--set", "train.batch=256"]


RATE = 2e6  # bytes a second of each connection: an update takes seconds, so that two of one round must overlap


class SlowLine:
    """Between nodes and the coordinator: what nodes send takes its time, each connection by itself."""

    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.tick = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return  # closed: the test is over
            for source, sink, rate in ((near, far, RATE), (far, near, 0)):
                threading.Thread(target=self.forward, args=(source, sink, rate), daemon=True).start()

    def forward(self, source, sink, rate):
        try:
            while piece := source.recv(32768):
                sink.sendall(piece)
                if rate:
                    self.tick.wait(len(piece) / rate)
        except OSError:
            pass
        for end in (source, sink):
            end.close()


class Quota(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=2)
        self.addCleanup(self.federation.close)
        self.http = free_port()

    def set_quota(self, folder, file, **quotas):
        path = os.path.join(self.federation.folder, folder, file)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "w", encoding="utf-8") as settings:
            settings.writelines(f'{key} = "{value}"\n' for key, value in quotas.items())

    def start(self, *more):
        self.federation.start_coordinator("--http", f"127.0.0.1:{self.http}", *more)
        self.federation.join_clients(2)

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.http, timeout=20)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        return {name: float(value) for name, value in re.findall(r"(?m)^(causeway\S+) (\S+)$", text)}

    def until(self, holds):
        end = time.monotonic() + 60
        while not (found := holds()):
            self.assertLess(time.monotonic(), end, "it did not come to that")
        return found

    def status(self, experiment):
        done = self.federation.command("experiment", "status", experiment, "--json")
        return events(done.stdout)[0]

    def paused(self, experiment):
        status = self.status(experiment)
        return status if status["state"] == "paused" else None

    def check_end(self, experiment):
        end = self.federation.finish(experiment, deadline=120)
        self.assertEqual("succeeded", end["state"], end)
        done = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", 2, *LARGE, deadline=120)
        self.assertEqual(events(done.stdout)[-1]["model_sha256"], end["model_sha256"])

    def doctor(self, folder, result):
        done = run("doctor", "--json", "--state", os.path.join(self.federation.folder, folder))
        found = [e for e in events(done.stdout) if e.get("check") == "quota" and e["result"] == result]
        self.assertTrue(found, done.stdout)
        return " ".join(e["what"] for e in found)

    def test_models_that_do_not_fit_pause_the_run_until_the_quota_is_raised(self):
        self.set_quota("coordinator", "coordinator.toml", state_quota="14 MB")
        self.start()
        experiment = self.federation.submit(*LARGE)
        status = self.until(lambda: self.paused(experiment))
        self.assertIn("state_full", status["reason"])
        self.assertIn("state_quota = 14.0 MB", status["reason"])
        self.assertIn("coordinator.toml", status["reason"])
        metrics = self.until(lambda: (m := self.metrics()) and m["causeway_state_bytes"] > 10e6 and m)
        self.assertEqual(14e6, metrics["causeway_state_quota_bytes"])
        self.assertEqual(1, metrics['causeway_experiments{state="paused"}'])
        self.set_quota("coordinator", "coordinator.toml", state_quota="11 MB")
        self.assertIn("state_quota = 11.0 MB", self.doctor("coordinator", "warn"))

        self.set_quota("coordinator", "coordinator.toml", state_quota="100 MB")
        self.federation.children["coordinator"].signal(signal.SIGHUP)
        self.check_end(experiment)
        self.assertIn("state_quota = 100 MB", self.doctor("coordinator", "ok"))

    def test_an_update_that_does_not_fit_into_the_spool_pauses_the_run_and_two_that_do_take_turns(self):
        self.set_quota("coordinator", "coordinator.toml", spool_quota="2 MB")
        line = SlowLine(self.federation.port)
        self.addCleanup(line.listener.close)
        self.start("--advertise", f"127.0.0.1:{line.port}")
        experiment = self.federation.submit(*LARGE)
        status = self.until(lambda: self.paused(experiment))
        self.assertIn("spool_full", status["reason"])
        self.assertIn("spool_quota = 2.00 MB", status["reason"])
        self.assertEqual(2e6, self.metrics()["causeway_spool_quota_bytes"])

        self.set_quota("coordinator", "coordinator.toml", spool_quota="7 MB")  # one at a time
        self.federation.children["coordinator"].signal(signal.SIGHUP)
        seen = []
        self.until(lambda: self.status(experiment)["state"] == "running")
        while self.status(experiment)["state"] == "running":
            seen.append(self.metrics()["causeway_spool_bytes"])
        # Both offer within a second and each takes more than two: without turns there would be two at once.
        self.assertGreater(max(seen), 4e6)
        self.assertLessEqual(max(seen), 7e6)
        self.check_end(experiment)
        self.assertEqual([], os.listdir(os.path.join(self.federation.state, "spool")))
        self.assertEqual(0, self.metrics()["causeway_spool_bytes"])

    def test_a_node_whose_quota_is_too_small_for_the_model_says_so_and_takes_part_once_it_is_raised(self):
        self.set_quota("client-1", "node.toml", cache_quota="4 MB")
        self.start()
        experiment = self.federation.submit(*LARGE)
        node = self.federation.children["client-1"]
        said = node.event(lambda e: "cache_quota" in e.get("text", ""))["text"]
        self.assertIn("more than cache_quota = 4.00 MB", said)
        self.assertIn("node.toml", said)
        self.assertEqual("running", self.status(experiment)["state"])
        self.set_quota("client-1", "node.toml", cache_quota="8 MB")  # one model, never two
        node.signal(signal.SIGHUP)
        self.check_end(experiment)
        held = sum(os.path.getsize(os.path.join(folder, file)) for part in ("cache", "downloads")
                   for folder, _, files in os.walk(os.path.join(self.federation.folder, "client-1", part)) for file in files)
        self.assertLessEqual(held, 8e6)
        self.doctor("client-1", "ok")


if __name__ == "__main__":
    unittest.main()
