"""Planning a split as a person does it: a table to read, a choice written into the file, and what each cut lets out."""
import os
import tempfile
import unittest

from federation import DIGITS, Federation, events, run
from help_test import ROOT
from relays_test import RelayFederation

DATA = ("--data", f"digits={DIGITS}")


def plan(*arguments):
    return run("plan", *arguments, deadline=120)


class Plan(unittest.TestCase):
    def test_every_cut_and_group_count_is_priced_and_the_fastest_that_fits_is_chosen(self):
        slow = ("--link", "uplink=20mbit,downlink=80mbit,delay=2ms", "--slow", "30x", "--step-seconds", "0.02")
        done = plan("digits-gsfl", *DATA, "--clients", 6, *slow, "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        lines = events(done.stdout)
        rows = [e for e in lines if e["event"] == "plan"]
        self.assertEqual(1 + 8 * (6 + 1), len(rows))  # and splitfed-v2
        self.assertEqual({"federated", "split", "gsfl", "splitfed-v1", "splitfed-v2"}, {r["regime"] for r in rows})
        self.assertEqual({None, "conv", "relu", "maxpool", "conv:2", "relu:2", "flatten", "dense", "relu:3"},
                         {r["cut"] for r in rows})
        for row in rows:
            self.assertGreater(row["seconds"], 0)
            self.assertGreater(row["bytes_up"], 0)
            self.assertEqual(row["regime"] == "federated", row["host_memory"] == 0)
        self.assertEqual(min(r["seconds"] for r in rows), lines[-1]["seconds"])
        self.assertEqual(("planned", 0.02), (lines[-1]["event"], round(lines[-1]["step_seconds"], 9)))
        self.assertEqual(1, sum(r["chosen"] for r in rows))
        self.assertNotEqual("federated", lines[-1]["regime"])  # at 30 times the time, a host is worth its bytes

        memory = sorted(r["host_memory"] for r in rows)[len(rows) // 2]
        bounded = events(plan("digits-gsfl", *DATA, "--clients", 6, *slow, "--host-memory", f"{memory}B",
                              "--json").stdout)
        self.assertLessEqual(bounded[-1]["host_memory"], memory)
        self.assertTrue(any(not r["fits"] for r in bounded[:-1]))

        people = plan("digits-gsfl", *DATA, "--clients", 40, *slow)
        self.assertEqual(0, people.returncode, people.stderr)
        self.assertLessEqual(max(map(len, people.stdout.splitlines())), 100, people.stdout)
        self.assertIn("splitfed-v2", people.stdout)
        self.assertIn("chosen: preset = ", people.stdout)

    def test_apply_writes_the_choice_and_keeps_the_comments(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.toml")
            with open(os.path.join(ROOT, "configs", "examples", "digits-gsfl.toml"), encoding="utf-8") as file:
                before = file.read().replace("min_clients = 5", "min_clients = 6  # all of us")
            with open(path, "w", encoding="utf-8") as file:
                file.write(before)
            done = plan(path, *DATA, "--clients", 6, "--regime", "split", "--apply", "--json")
            self.assertEqual(0, done.returncode, done.stderr + done.stdout)
            chosen = events(done.stdout)[-1]
            with open(path, encoding="utf-8") as file:
                after = file.read()
            self.assertIn('preset = "split"', after)
            self.assertIn(f'cut    = "{chosen["cut"]}"', after)
            self.assertNotIn("groups =", after)
            comments = [line.partition("#")[2] for line in before.splitlines() if "groups =" not in line]
            self.assertEqual(comments, [line.partition("#")[2] for line in after.splitlines()])
            self.assertEqual(0, run("experiment", "validate", path).returncode)

    def test_a_profile_and_a_running_coordinator_say_who_is_planned_for(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "clients.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write('[host]\nmemory = "1GB"\n[[client]]\nname = "north"\nuplink = "2mbit"\nspeed = "5x"\n'
                           'examples = 40\n[[client]]\nname = "south"\nuplink = "20mbit"\nexamples = 90\n')
            done = plan("digits-gsfl", "--profile", path, "--json")
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertEqual({0, 1, 2}, {e["groups"] for e in events(done.stdout)})
        federation = Federation()
        self.addCleanup(federation.close)
        federation.start_coordinator()
        missing = plan("digits-gsfl", "--state", federation.state)
        self.assertEqual(2, missing.returncode)
        self.assertIn('declares the dataset "digits"', missing.stderr)
        federation.join_clients(3)
        done = plan("digits-gsfl", "--state", federation.state, "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual({0, 1, 2, 3}, {e["groups"] for e in events(done.stdout) if e["event"] == "plan"})
        nodes = {e["node"]: e for e in events(done.stdout) if e["event"] == "plan_node"}
        self.assertEqual({"client-1", "client-2", "client-3"}, set(nodes))
        for node in nodes.values():
            self.assertIn("speed", node["assumed"])
            self.assertEqual((12.5e6, 12.5e6, 1), (node["uplink"], node["downlink"], node["slowness"]))

    def test_a_federation_that_has_worked_is_planned_for_as_it_was_measured(self):
        federation = RelayFederation(clients=3)
        self.addCleanup(federation.close)
        federation.start_coordinator()
        for number in (1, 2, 3):
            slow = ("--slow", "30x") if number == 2 else ()
            federation.start_client(number, federation.token(f"client-{number}"), ("--allow", "split", *slow))
            federation.children[f"client-{number}"].event(lambda e: "joined" in e.get("text", ""))
        federation.join_host(1, "--memory", "500MB")
        whole = federation.command("experiment", "submit", "digits-fedavg", "--json", "--set", "experiment.rounds=2",
                                   "--set", "sync.min_clients=3")  # segments of the digits are too small for a rate
        for experiment in (events(whole.stdout)[0]["experiment"], federation.submit()):
            self.assertEqual("succeeded", federation.finish(experiment)["state"])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.toml")
            with open(os.path.join(ROOT, "configs", "examples", "digits-gsfl.toml"), encoding="utf-8") as file:
                before = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(before)
            done = plan(path, "--state", federation.state, "--set", "sync.min_clients=3", "--regime", "split", "--apply",
                        "--json")
            self.assertEqual(0, done.returncode, done.stderr + done.stdout)
            with open(path, encoding="utf-8") as file:
                self.assertIn('preset = "split"', file.read())
        nodes = {e["node"]: e for e in events(done.stdout) if e["event"] == "plan_node"}
        for node in nodes.values():
            self.assertLessEqual(set(node["assumed"]), {"delay"}, node)  # the first beat that asks is 2 s after joining
            self.assertGreater(node["uplink"], 0)
        others = max(nodes["client-1"]["slowness"], nodes["client-3"]["slowness"])
        self.assertGreater(nodes["client-2"]["slowness"], 3 * others)


class Leakage(unittest.TestCase):
    def test_deeper_cuts_and_noise_let_out_less_and_one_seed_gives_one_answer(self):
        command = ("experiment", "leakage", "digits-gsfl", *DATA, "--examples", 200, "--noise", 1, "--json")
        done = run(*command, deadline=120)
        self.assertEqual(0, done.returncode, done.stderr)
        cuts = events(done.stdout)
        self.assertEqual(["maxpool"], [c["cut"] for c in cuts if c["chosen"]])
        for cut in cuts:
            self.assertEqual(200, cut["examples"])
            self.assertTrue(0 <= cut["chance"] < cut["correlation"] <= 1, cut)
            self.assertLess(cut["noisy"], cut["correlation"])
        by_name = {c["cut"]: c for c in cuts}
        self.assertGreater(by_name["conv"]["correlation"], 0.9)  # linear, and as wide as the input
        self.assertLess(by_name["relu:3"]["correlation"], by_name["conv"]["correlation"])
        self.assertEqual(cuts, events(run(*command, deadline=120).stdout))

    def test_a_trained_model_is_measured_and_another_network_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "m.safetensors")
            trained = run("simulate", "digits-fedavg", *DATA, "--set", "experiment.rounds=2", "--out", model, deadline=120)
            self.assertEqual(0, trained.returncode, trained.stderr)
            initial = events(run("experiment", "leakage", "digits-fedavg", *DATA, "--examples", 100, "--json").stdout)
            after = events(run("experiment", "leakage", "digits-fedavg", *DATA, "--examples", 100, "--json",
                               "--model", model).stdout)
            self.assertEqual(["dense", "relu"], [c["cut"] for c in after])
            self.assertNotEqual(initial[0]["correlation"], after[0]["correlation"])
            other = run("experiment", "leakage", "digits-gsfl", *DATA, "--model", model)
            self.assertEqual(2, other.returncode)
            self.assertIn("another network", other.stderr)


if __name__ == "__main__":
    unittest.main()
