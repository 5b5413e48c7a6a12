"""kill -9 of whatever, at moments that nobody chose: it is started again, and the model is the undisturbed run's.

50 kills in .ci/run, 5 in ./check, of the coordinator and the clients alike, while rounds go by.
"""
import shutil
import tempfile
import threading
import unittest

from federation import DIGITS, events, run
from supervised import CLIENTS, LONG, Supervised, seeded, split_digits

SETTINGS = ["--set", "experiment.rounds=40", "--set", "sync.min_clients=3", "--set", "train.local_epochs=2"]
KILLS = 50 if LONG else 5


class RandomKills(unittest.TestCase):
    def test_kills_at_random_moments_never_change_the_model(self):
        chance = seeded(self)
        folder = tempfile.mkdtemp(prefix="causeway-kills-")
        self.addCleanup(shutil.rmtree, folder, True)
        done = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", CLIENTS, *SETTINGS)
        digest = events(done.stdout)[-1]["model_sha256"]
        federation = Supervised(split_digits(folder))
        self.addCleanup(federation.close)
        federation.start_coordinator()
        federation.start_clients()
        kills = number = 0
        while kills < KILLS:
            number += 1
            experiment = federation.submit(f"killed-{number}", *SETTINGS)
            ended = {}
            waiter = threading.Thread(target=lambda: ended.update(federation.finish(experiment)))
            waiter.start()
            while waiter.is_alive():
                waiter.join(chance.uniform(0.02, 0.4))
                if waiter.is_alive() and kills < KILLS:
                    federation.kill(chance.choice(sorted(federation.processes)))
                    kills += 1
            self.assertEqual(("succeeded", digest), (ended.get("state"), ended.get("model_sha256")), federation.logs())


if __name__ == "__main__":
    unittest.main()
