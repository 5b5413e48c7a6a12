"""A coordinator that is stopped for longer than each of its deadlines: on going on it hears everybody first, and the run
has the undisturbed run's bits. A node that is stopped does not hold it against the coordinator either."""
import os
import signal
import unittest

from federation import Child, Federation, events, run, DIGITS
from long_line import LongLine
from relays_test import RelayFederation

DEADLINE_S, STOP_S = 3, 5
STRICT = ["--set", f"sync.straggler_deadline={DEADLINE_S}s", "--set", "sync.rejoin=0s", "--set", "sync.quorum=100%",
          "--set", f"sync.start_timeout={DEADLINE_S}s"]
SLOW = "30x"  # a round takes one second, so that there is something to stop in


class SlowFederation(RelayFederation):
    def start_client(self, number, token="", allow=("--allow", "split")):
        name = f"client-{number}"
        words = ["join", *([token] if token else []), "--json", "--state", os.path.join(self.folder, name), "--slow",
                 SLOW, "--data", f"digits={self.parts}/part-{number}.csv.gz", *allow]
        self.children[name] = Child(words, self.folder, name, self.far)
        return self.children[name]


class Stalls(unittest.TestCase):
    stop_s = STOP_S

    def submit(self, preset, *more):
        done = self.federation.command("experiment", "submit", preset, "--json", *more)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return events(done.stdout)[0]["experiment"]

    def wait_until(self, experiment, holds):
        for _ in range(600):  # each asks a process, which takes its time
            status = events(self.federation.command("experiment", "status", experiment, "--json").stdout)[-1]
            if holds(status):
                return
        self.fail(f"never so: {status}")

    def stop(self, name, meanwhile=lambda: None):
        """Stopped for so long, and heard of nothing meanwhile."""
        child = self.federation.children[name]
        child.signal(signal.SIGSTOP)
        self.addCleanup(child.signal, signal.SIGCONT)
        meanwhile()
        with self.assertRaises(TimeoutError):
            child.event(lambda e: False, deadline=self.stop_s)
        child.signal(signal.SIGCONT)

    def require_undisturbed(self, experiment, preset, *settings):
        end = self.federation.finish(experiment, deadline=120)
        self.assertEqual("succeeded", end["state"], end)
        done = run("simulate", preset, "--json", "--data", f"digits={DIGITS}", "--clients", 2, *settings, deadline=120)
        self.assertEqual(events(done.stdout)[-1]["model_sha256"], end["model_sha256"], done.stderr)
        told = events(self.federation.command("experiment", "explain", experiment, "--json").stdout)
        self.assertFalse([line for line in told if "straggler_deadline" in str(line) or "silent" in str(line)], told)

    def federated(self, holds, *more, preset="digits-fedavg", name="coordinator"):
        settings = [*STRICT, "--set", "sync.min_clients=2", "--set", "experiment.rounds=3", *more]
        self.federation.join_clients(2)
        experiment = self.submit(preset, *settings)
        self.wait_until(experiment, holds)
        self.stop(name)
        self.require_undisturbed(experiment, preset, *settings)


class Stall(Stalls):
    def setUp(self):
        self.federation = SlowFederation(clients=2)
        self.addCleanup(self.federation.close)
        self.federation.start_coordinator()

    def test_while_it_waits_for_members_that_come_meanwhile(self):
        settings = [*STRICT, "--set", "sync.min_clients=2", "--set", "experiment.rounds=2"]
        self.federation.start_client(1, self.federation.token("client-1"))
        token = self.federation.token("client-2")
        self.federation.children["client-1"].event(lambda e: "joined" in e.get("text", ""))
        experiment = self.submit("digits-fedavg", *settings)
        self.stop("coordinator", lambda: self.federation.start_client(2, token))
        self.require_undisturbed(experiment, "digits-fedavg", *settings)

    def test_while_members_train(self):
        self.federated(lambda s: any(m["state"] == "working" and m["step"] > 0 for m in s.get("members", [])))

    def test_while_clients_evaluate(self):
        self.federated(lambda s: s["round"] > 0, "--set", "evaluation.where=clients", "--set", "evaluation.patience=2")

    def test_while_relays_have_their_turns(self):
        settings = [*STRICT, "--set", "sync.min_clients=2", "--set", "experiment.rounds=3"]
        self.federation.join_clients(2)
        self.federation.join_host()
        experiment = self.submit("digits-gsfl", *settings)
        self.wait_until(experiment, lambda s: any(m["state"] == "working" and m["step"] > 0 for m in s.get("members", [])))
        self.stop("coordinator")
        self.require_undisturbed(experiment, "digits-gsfl", *settings)

    def test_a_stopped_node_goes_on_where_its_place_is_kept(self):
        settings = ["--set", "sync.rejoin=60s", "--set", "sync.straggler_deadline=60s", "--set", "sync.quorum=100%", "--set", "sync.min_clients=2",
                    "--set", "experiment.rounds=3"]
        self.federation.join_clients(2)
        experiment = self.submit("digits-fedavg", *settings)
        self.wait_until(experiment, lambda s: any(m["state"] == "working" and m["step"] > 0 for m in s.get("members", [])))
        self.stop("client-2")
        self.require_undisturbed(experiment, "digits-fedavg", *settings)


class SlowLine(Stalls):
    """Updates that take seconds to come, over a line of its own."""
    def setUp(self):
        line = LongLine("--rate", "4mbit", "--back", "1gbit", "--delay", "1ms")
        self.addCleanup(line.close)
        if not line.works:
            self.skipTest(line.why)
        self.federation = Federation(clients=2, line=line)
        self.addCleanup(self.federation.close)
        self.federation.start_coordinator()

    def test_while_updates_are_pulled(self):
        wide = ["--set", 'model.layers=["flatten","dense 2000","relu","dense 10"]', "--set", "train.local_epochs=1",
                "--set", f"sync.straggler_deadline={2 * DEADLINE_S}s"]
        self.stop_s = 3 * DEADLINE_S
        self.federated(lambda s: any(m["state"] == "uploading" for m in s.get("members", [])), *wide)


if __name__ == "__main__":
    unittest.main()
