"""Split learning and its groups with real processes: hosts and clients that are killed, missing or not allowed to."""
import contextlib
import gzip
import json
import os
import sqlite3
import unittest

from federation import Child, Federation, events, free_port, run, DIGITS

SETTINGS = ["--set", "experiment.rounds=4", "--set", "sync.min_clients=3", "--set", "sync.quorum=100%"]


class RelayFederation(Federation):
    def start_client(self, number, token="", allow=("--allow", "split")):
        name = f"client-{number}"
        words = ["join", *([token] if token else []), "--json", "--state", os.path.join(self.folder, name),
                 "--data", f"digits={self.parts}/part-{number}.csv.gz", *allow]
        self.children[name] = Child(words, self.folder, name, self.far)
        return self.children[name]

    def histogram(self, number):
        """How often each label occurs in a client's own file."""
        with gzip.open(f"{self.parts}/part-{number}.csv.gz", "rt") as file:
            labels = [int(line.split(",")[-1]) for line in file if not line.startswith("#")]
        return [labels.count(label) for label in range(10)]

    def start_host(self, number, token="", *more):
        name = f"host-{number}"
        words = ["join", *([token] if token else []), "--json", "--state", os.path.join(self.folder, name),
                 "--allow", "split", "--listen", f"{self.host}:0", *more]
        self.children[name] = Child(words, self.folder, name, self.near)
        return self.children[name]

    def join_host(self, number=1, *more):
        host = self.start_host(number, self.token(f"host-{number}", "--role", "host"), *more)
        host.event(lambda e: "joined" in e.get("text", ""))

    def submit(self, *arguments):
        done = self.command("experiment", "submit", "digits-gsfl", "--json", *SETTINGS, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return events(done.stdout)[0]["experiment"]

    def decisions(self, experiment, kind):
        """The details of the decision log's lines of that kind, in their order. Ends the coordinator, whose it is."""
        self.children["coordinator"].stop()
        with contextlib.closing(sqlite3.connect(os.path.join(self.state, "coordinator.db"))) as store:
            lines = store.execute("SELECT detail FROM decisions WHERE experiment = ? AND kind = ? ORDER BY round",
                                  (experiment, kind))
            return [json.loads(detail) for (detail,) in lines]

    def replayed(self, experiment):
        done = self.command("experiment", "replay", experiment, "--json", "--data", f"digits={DIGITS}", deadline=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return [e for e in events(done.stdout) if e.get("event") == "replayed"]


def undisturbed(*more):
    done = run("simulate", "digits-gsfl", "--json", "--data", f"digits={DIGITS}", "--clients", 3, *SETTINGS, *more,
               deadline=120)
    return events(done.stdout)[-1]["model_sha256"]


class Relays(unittest.TestCase):
    def setUp(self):
        self.federation = RelayFederation(clients=3)
        self.addCleanup(self.federation.close)
        self.federation.start_coordinator()

    def start(self, hosts=1):
        self.federation.join_clients(3)
        for number in range(1, hosts + 1):
            self.federation.join_host(number)

    def after_round(self, experiment, number, kill):
        watch = self.federation.watch(experiment)
        watch.event(lambda e: e.get("round") == number)
        kill()
        watch.stop()

    def check_end(self, experiment, *more):
        end = self.federation.finish(experiment, deadline=120)
        self.assertEqual("succeeded", end["state"], end)
        self.assertEqual(undisturbed(*more), end["model_sha256"])
        self.assertTrue(all(round["same"] for round in self.federation.replayed(experiment)))

    def test_real_processes_the_virtual_clock_and_a_replay_reach_one_model_in_every_regime(self):
        self.start()
        regimes = {"gsfl": [], "split": ["--set", "regime.preset=split"],
                   "splitfed-v1": ["--set", "regime.preset=splitfed-v1"],
                   "splitfed-v2": ["--set", "regime.preset=splitfed-v2"],
                   "gsfl with an overlap": ["--set", "regime.overlap=2"],
                   "u-shaped": ["--set", "regime.preset=u-shaped", "--set", 'regime.cut=["maxpool", "relu:2"]']}
        for name, more in regimes.items():
            with self.subTest(name):
                self.check_end(self.federation.submit(*more), *more)

    def test_a_slowed_client_is_measured_as_slow_and_changes_the_groups_and_no_bit_of_a_relay(self):
        for number in (1, 2, 3):
            slow = ("--slow", "40x") if number == 2 else ()
            self.federation.start_client(number, self.federation.token(f"client-{number}"), ("--allow", "split", *slow))
            self.federation.children[f"client-{number}"].event(lambda e: "joined" in e.get("text", ""))
        self.federation.join_host()
        more = ("--set", "regime.regroup=every-round", "--set", "regime.groups=2")
        experiment = self.federation.submit(*more)
        self.assertEqual("succeeded", self.federation.finish(experiment, deadline=120)["state"])
        self.assertTrue(all(round["same"] for round in self.federation.replayed(experiment)))
        one = ("--set", "regime.preset=split")
        self.check_end(self.federation.submit(*one), *one)
        for made in self.federation.decisions(experiment, "groups")[1:]:
            self.assertEqual("client-2", max(made["seconds"], key=made["seconds"].get), made)
            self.assertIn(["client-2"], made["groups"])  # the others' turns together take less

    def test_a_client_killed_in_its_turn_comes_back_and_its_turn_begins_anew(self):
        self.start()
        experiment = self.federation.submit()

        def kill():
            self.federation.children["client-2"].kill()
            self.federation.start_client(2)
        self.after_round(experiment, 1, kill)
        self.check_end(experiment)

    def test_a_host_killed_comes_back_and_its_groups_go_on_from_their_last_hand_over(self):
        self.start()
        experiment = self.federation.submit()

        def kill():
            self.federation.children["host-1"].kill()
            self.federation.start_host(1)
        self.after_round(experiment, 1, kill)
        self.check_end(experiment)

    def test_of_clients_that_are_together_a_client_and_then_the_host_are_killed_and_the_model_is_the_same(self):
        self.start()
        more = ["--set", "regime.preset=splitfed-v2", "--set", "regime.overlap=1"]
        experiment = self.federation.submit(*more)

        def kill_both():
            self.federation.children["client-2"].kill()
            self.federation.start_client(2)
            self.federation.children["host-1"].kill()
            self.federation.start_host(1)
        self.after_round(experiment, 1, kill_both)
        self.check_end(experiment, *more)

    def test_a_host_that_stays_away_hands_its_groups_to_another(self):
        self.start(hosts=2)
        experiment = self.federation.submit("--set", "sync.rejoin=1s")
        self.after_round(experiment, 1, self.federation.children["host-1"].kill)
        self.check_end(experiment)

    def test_the_coordinator_killed_goes_on_from_the_last_hand_over(self):
        self.start()
        experiment = self.federation.submit()

        def kill():
            self.federation.children["coordinator"].kill()
            self.federation.start_coordinator()
        self.after_round(experiment, 2, kill)
        self.check_end(experiment)

    def test_nodes_that_cannot_reach_each_other_stream_through_the_coordinator_to_the_same_model(self):
        self.federation.join_clients(3)
        self.federation.join_host(1, "--advertise", f"127.0.0.1:{free_port()}")  # nobody listens there
        self.check_end(self.federation.submit())

    def test_noise_on_what_clients_send_is_drawn_again_by_the_simulator_and_a_replay(self):
        self.start()
        more = ("--set", "regime.smash_noise=0.5")
        self.assertNotEqual(undisturbed(), undisturbed(*more))
        self.check_end(self.federation.submit(*more), *more)

    def test_groups_wait_for_hosts_with_room_and_without_room_the_reason_has_the_numbers(self):
        self.federation.join_clients(3)
        self.federation.join_host(1, "--memory", "3MB")  # room for one group of 1.01 MB, and what is needed once
        more = ("--set", "regime.groups=2", "--set", "sync.start_timeout=2s")
        end = self.federation.finish(self.federation.submit(*more))
        self.assertEqual("failed", end["state"])
        for words in ("insufficient host memory for 2 groups of 1.01 MB", "1.22 MB once", "host-1 has 3.00 MB",
                      "join --memory"):
            self.assertIn(words, end["reason"])
        self.federation.join_host(2, "--memory", "3MB")
        experiment = self.federation.submit(*more)
        self.check_end(experiment, *more)
        self.assertEqual({"host-1", "host-2"}, set(self.federation.decisions(experiment, "groups")[0]["hosts"]))

    def test_groups_by_labels_rest_on_what_policies_share_and_who_shares_nothing_is_named(self):
        for number in (1, 2, 3):
            share = ("--share-labels",) if number < 3 else ()
            self.federation.start_client(number, self.federation.token(f"client-{number}"), ("--allow", "split", *share))
            self.federation.children[f"client-{number}"].event(lambda e: "joined" in e.get("text", ""))
        self.federation.join_host()
        more = ("--set", "regime.grouping=labels", "--set", "regime.groups=2")
        experiment = self.federation.submit(*more)
        self.assertEqual("succeeded", self.federation.finish(experiment)["state"])
        told = events(self.federation.command("experiment", "explain", experiment, "--json").stdout)
        self.assertEqual([("client-3", [1])], [(e["node"], e["rounds"]) for e in told if e["about"] == "labels"])
        self.federation.children["client-3"].stop()
        self.federation.start_client(3, allow=("--allow", "split", "--share-labels"))
        self.federation.children["client-3"].event(lambda e: "joined" in e.get("text", ""))
        shared = self.federation.submit(*more)
        self.check_end(shared, *more)
        first, second = (self.federation.decisions(e, "groups")[0] for e in (experiment, shared))
        self.assertEqual((["client-3"], []), (first["without_labels"], second["without_labels"]))
        self.assertEqual({f"client-{n}": self.federation.histogram(n) for n in (1, 2, 3)}, second["labels"])

    def test_a_client_without_allow_split_is_not_drawn_and_the_reason_says_so(self):
        for number in (1, 2, 3):
            allow = ("--allow", "split") if number < 3 else ()
            self.federation.start_client(number, self.federation.token(f"client-{number}"), allow)
            self.federation.children[f"client-{number}"].event(lambda e: "joined" in e.get("text", ""))
        self.federation.join_host()
        end = self.federation.finish(self.federation.submit("--set", "sync.start_timeout=2s"))
        self.assertEqual("failed", end["state"])
        self.assertIn("insufficient clients 2/3", end["reason"])
        self.assertIn("--allow split", end["reason"])

    def test_without_a_host_it_ends_with_the_reason_and_what_to_do(self):
        self.federation.join_clients(3)
        end = self.federation.finish(self.federation.submit("--set", "sync.start_timeout=2s"))
        self.assertEqual("failed", end["state"])
        self.assertIn("insufficient hosts 0/1", end["reason"])

    def test_a_cut_that_would_send_the_raw_inputs_is_refused_when_it_is_submitted(self):
        for cut, words in (("flatten", "raw inputs"), ("0", "without a layer")):
            with self.subTest(cut):
                done = self.federation.command("experiment", "submit", "digits-gsfl", "--set", f"regime.cut={cut}",
                                               "--set", 'model.layers=["flatten", "dense 16", "relu", "dense 10"]')
                self.assertEqual(2, done.returncode)
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
