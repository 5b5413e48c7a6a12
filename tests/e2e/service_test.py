"""Daemons as services: readiness, watchdog, the journal's line format, a reload, and a stop within its limit."""
import configparser
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from federation import CAUSEWAY, DEADLINE_S, Federation, free_port, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNITS = {"causeway-coordinator.service": "coordinator", "causeway-node@.service": "join"}


class Manager:
    """What systemd is to a service: a datagram socket that it reports to."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)

    def hear(self, wanted, deadline=DEADLINE_S):
        end = time.monotonic() + deadline
        while True:
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            text = self.socket.recv(4096).decode()
            if wanted in text.split("\n"):
                return text


class Service(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="causeway-service-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.state = os.path.join(self.folder, "state")
        self.log = os.path.join(self.folder, "log")

    def start(self, journal=False, **env):
        """A coordinator with its stderr in self.log, which may pass for the journal."""
        with open(self.log, "ab") as log:
            if journal:
                facts = os.fstat(log.fileno())
                env["JOURNAL_STREAM"] = f"{facts.st_dev}:{facts.st_ino}"
            process = subprocess.Popen([CAUSEWAY, "coordinator", "--state", self.state, "--listen", f"127.0.0.1:{free_port()}"],
                                       stderr=log, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env={**os.environ, **env})
        self.addCleanup(process.wait, 10)
        self.addCleanup(process.kill)
        return process

    def logged(self, wanted, deadline=DEADLINE_S):
        end = time.monotonic() + deadline
        text = ""
        while time.monotonic() < end:
            with open(self.log, encoding="utf-8") as file:
                text = file.read()
            if wanted in text:
                return text
            select_pause()
        raise AssertionError(f"{wanted!r} was not logged within {deadline} s:\n{text}")

    def test_ready_is_said_once_it_listens_the_watchdog_is_fed_by_the_loop_and_a_stop_is_announced(self):
        manager = Manager(self.folder)
        self.addCleanup(manager.socket.close)
        process = self.start(NOTIFY_SOCKET=manager.path, WATCHDOG_USEC="2000000")
        self.assertIn("STATUS=federation causeway on port", manager.hear("READY=1"))
        self.assertEqual(0, run("node", "list", "--state", self.state).returncode)
        for _ in range(3):
            manager.hear("WATCHDOG=1", deadline=5)
        process.send_signal(signal.SIGSTOP)  # a loop that stands still does not feed it
        while True:
            try:
                manager.hear("WATCHDOG=1", deadline=2.5)
            except TimeoutError:
                break
        process.send_signal(signal.SIGCONT)
        manager.hear("WATCHDOG=1", deadline=5)
        process.send_signal(signal.SIGTERM)
        manager.hear("STOPPING=1")
        self.assertEqual(0, process.wait(10))

    def test_another_process_watchdog_is_not_ours_and_an_absent_manager_disturbs_nothing(self):
        process = self.start(NOTIFY_SOCKET=os.path.join(self.folder, "nobody"), WATCHDOG_USEC="100000", WATCHDOG_PID="1")
        self.logged("did not take a message")
        self.assertEqual(0, run("node", "list", "--state", self.state).returncode)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(10))

    def test_lines_for_the_journal_carry_a_priority_and_neither_time_nor_colour(self):
        process = self.start(journal=True)
        self.wait_for_operator()
        text = self.logged("operator connected")
        self.assertTrue(all(line.startswith("<6>") for line in text.splitlines()), text)
        self.assertNotIn("\x1b", text)
        process.terminate()
        self.assertEqual(0, process.wait(10))

    def test_a_journal_that_is_another_stream_changes_nothing(self):
        self.start(JOURNAL_STREAM="1:2")
        self.wait_for_operator()
        self.assertRegex(self.logged("operator connected"), r"(?m)^\d{4}-\d\d-\d\d ")

    def wait_for_operator(self):
        end = time.monotonic() + DEADLINE_S
        while run("node", "list", "--state", self.state).returncode != 0 and time.monotonic() < end:
            select_pause()

    def test_a_reload_changes_the_log_level_and_a_mistake_in_the_file_changes_nothing(self):
        process = self.start()
        self.wait_for_operator()
        self.logged("operator connected")
        settings = os.path.join(self.state, "coordinator.toml")
        write(settings, 'log_level = "loud"\n')
        process.send_signal(signal.SIGHUP)
        self.assertIn("coordinator.toml:1:13: error: log_level", self.logged("nothing was changed"))
        write(settings, 'log_level = "error"\n')
        process.send_signal(signal.SIGHUP)
        end = time.monotonic() + DEADLINE_S  # quiet now: a command adds no line any more
        while time.monotonic() < end:
            before = os.path.getsize(self.log)
            self.assertEqual(0, run("node", "list", "--state", self.state).returncode)
            if os.path.getsize(self.log) == before:
                break
        self.assertLess(time.monotonic(), end)
        self.assertIsNone(process.poll())
        write(settings, "")
        process.send_signal(signal.SIGHUP)
        self.logged("reloaded")

    def test_a_mistake_in_the_settings_keeps_the_daemon_from_starting(self):
        os.makedirs(self.state, mode=0o700)
        write(os.path.join(self.state, "coordinator.toml"), 'log_levle = "info"\n')
        done = run("coordinator", "--state", self.state, "--listen", "127.0.0.1:0")
        self.assertEqual(2, done.returncode)
        self.assertIn('coordinator.toml:1:1: error: unknown key "log_levle"; did you mean "log_level"?', done.stderr)

    def test_sigterm_in_the_middle_of_a_round_ends_everyone_within_ten_seconds_and_the_run_goes_on_afterwards(self):
        federation = Federation(clients=2)
        self.addCleanup(federation.close)
        federation.start_coordinator()
        federation.join_clients(2)
        experiment = federation.submit("--set", "experiment.rounds=4", "--set", "train.local_epochs=60",
                                       "--set", "sync.min_clients=2", "--set", "sync.quorum=1")
        federation.children["client-1"].event(lambda e: "round 2" in e.get("text", ""))
        for child in federation.children.values():
            start = time.monotonic()
            child.signal(signal.SIGTERM)
            self.assertEqual(0, child.process.wait(10), child.errors())
            self.assertLess(time.monotonic() - start, 10)
        federation.start_coordinator()
        for number in (1, 2):
            federation.start_client(number)
        self.assertEqual("succeeded", federation.finish(experiment, deadline=120)["state"])


class Units(unittest.TestCase):
    def unit(self, name):
        parser = configparser.RawConfigParser(strict=False)
        parser.optionxform = str
        parser.read(os.path.join(ROOT, "configs", "systemd", name))
        return parser

    def test_the_units_run_commands_that_exist_and_are_hardened(self):
        for name, command in UNITS.items():
            with self.subTest(unit=name):
                service = self.unit(name)["Service"]
                words = service["ExecStart"].split()
                self.assertEqual(["causeway", command], [os.path.basename(words[0]), words[1]])
                known = run(command, "--help").stdout
                for option in (word for word in words if word.startswith("--")):
                    self.assertIn(option, known)
                self.assertEqual("notify", service["Type"])
                for key in ("NoNewPrivileges", "PrivateTmp", "RestrictNamespaces", "LockPersonality"):
                    self.assertEqual("yes", service[key])
                self.assertEqual("strict", service["ProtectSystem"])
                self.assertEqual("0077", service["UMask"])
                self.assertGreaterEqual(int(service["TimeoutStopSec"]), 10)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
    def test_systemd_finds_no_fault_in_the_units(self):
        folder = tempfile.mkdtemp(prefix="causeway-units-")
        self.addCleanup(shutil.rmtree, folder, True)
        for name in UNITS:
            with open(os.path.join(ROOT, "configs", "systemd", name), encoding="utf-8") as file:
                text = file.read().replace("/usr/local/bin/causeway", CAUSEWAY).replace("man:causeway(1)", "https://example.org")
            path = write(os.path.join(folder, name.replace("@", "@lab-a")), text)
            done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, timeout=60, check=False)
            faults = [line for line in done.stderr.splitlines() if os.path.basename(path) in line and "causeway" in line]
            self.assertEqual([], faults, done.stderr)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def select_pause():
    """A short wait between looks at a file, which nothing announces."""
    import select
    select.select([], [], [], 0.05)


if __name__ == "__main__":
    unittest.main()
