"""A straggler does not hold a round beyond its deadline, and a member that is missed ends the experiment, for ever."""
import os
import unittest

from federation import Federation, events

DEADLINE_S = 10


class Deadline(unittest.TestCase):
    def setUp(self):
        self.federation = Federation(clients=2)
        self.addCleanup(self.federation.close)
        self.federation.start_coordinator()

    def test_a_client_that_trains_for_long_is_left_out_at_the_deadline_and_told(self):
        with open(os.path.join(self.federation.folder, "few.csv"), "w", encoding="utf-8") as few:
            few.write("".join(",".join(["1"] * 64 + [str(label)]) + "\n" for label in range(10)))
        os.replace(few.name, os.path.join(self.federation.parts, "part-3.csv"))
        os.system(f"gzip -f {self.federation.parts}/part-3.csv")
        for number in (2, 3):  # client 3 has ten examples, client 2 hundreds
            self.federation.start_client(number, self.federation.token(f"client-{number}"))
            self.federation.children[f"client-{number}"].event(lambda e: "joined" in e.get("text", ""))
        watch = self.federation.watch(self.federation.submit(
            "--set", "experiment.rounds=2", "--set", "sync.min_clients=2", "--set", "sync.quorum=1",
            "--set", f"sync.straggler_deadline={DEADLINE_S}s", "--set", "train.local_epochs=10000",
            "--set", 'model.layers=["flatten","dense 10"]', "--set", "train.batch=1"))
        self.addCleanup(watch.stop)
        first = watch.event(lambda e: e.get("event") == "round", deadline=60)
        self.assertEqual((1, 1), (first["round"], first["clients"]))
        self.assertGreater(first["seconds"], DEADLINE_S - 1)
        self.assertLess(first["seconds"], DEADLINE_S + 1)
        self.federation.children["client-2"].event(lambda e: "left out of round 1" in e.get("text", ""), deadline=10)

    def test_a_required_member_that_is_cut_off_fails_it_everywhere_and_for_ever(self):
        self.federation.join_clients(2)
        experiment = self.federation.submit("--set", "experiment.rounds=5000", "--set", "sync.min_clients=2",
                                            "--set", "sync.quorum=2", "--set", "sync.rejoin=0s",
                                            "--set", "sync.start_timeout=2s")
        watch = self.federation.watch(experiment)
        self.addCleanup(watch.stop)
        watch.event(lambda e: e.get("round") == 3)
        self.federation.children["client-2"].kill()
        end = watch.event(lambda e: e.get("event") == "done", deadline=5)
        self.assertEqual("failed", end["state"])
        # Killed within a round it loses the quorum; between two rounds the next one cannot be drawn.
        self.assertRegex(end["reason"], "quorum_lost|insufficient clients 1/2")
        self.federation.children["client-1"].event(lambda e: "failed" in e.get("text", ""), deadline=5)
        self.federation.start_client(2)
        for _ in range(2):  # also after a restart
            self.assertEqual("failed", self.federation.finish(experiment)["state"])
            listed = events(self.federation.command("experiment", "list", "--json").stdout)
            self.assertEqual({"failed"}, {line["state"] for line in listed})
            self.federation.children["coordinator"].kill()
            self.federation.start_coordinator()


if __name__ == "__main__":
    unittest.main()
