"""The mistakes that people make, for every command and every file that a person writes: what, where, what next.

Tables: (command line or file, exit code, words of the message). 2 is usage or an invalid file, 3 cannot reach or not
allowed, 4 timed out. What holds for every command (a misspelt option, an argument too many, a required one missing, a
state folder that is none) is tried on every command that the help knows, so a new one is covered from its first day.
"""
import os
import re
import shlex
import shutil
import tempfile
import unittest

from federation import Federation, run
from help_test import commands

# Without any daemon. {d}: a folder with ok.csv (2 rows), empty.csv, junk.safetensors, my.toml (valid), wide/ (mode 0755).
COMMANDS = [
    # demo
    ("demo digits-fedvag", 2, ["no such file", "digits-fedavg"]),
    ("demo --clients 0", 2, ["--clients", "1 to 100"]),
    ("demo --clients 3 --set sync.quorum=4", 2, ["--set sync.quorum", "quorum of 4", "--clients 3"]),
    ("demo --clients 2 --set evaluation.patience=500", 2, ["--set evaluation.patience", "never ends a run of"]),
    ("simulate digits-fedavg --clients 2 --set sync.quorum=3", 2, ["--set sync.quorum", "raise min_clients or lower the quorum"]),
    ("simulate digits-fedavg --clients 4 --set sync.cohort=2 --set sync.quorum=3", 2, ["cohort of 2", "sync.quorum"]),
    ("demo --data digits", 2, ["NAME=PATH"]),
    ("demo --data digits={d}/no.csv", 2, ["no.csv"]),
    ("demo --link uplink=2mb", 2, ["2mb", "mbit"]),
    ("demo --link 'uplink=2mbit; client-9: delay=1ms'", 2, ["client-9", "client-1 to client-5"]),
    ("demo --state {d} --data digits={d}/ok.csv", 2, ["not empty", "--state"]),
    # coordinator
    ("coordinator", 2, ["--state is required"]),
    ("coordinator --state {d}/ok.csv", 2, ["is a file", "name a folder"]),
    ("coordinator --state {d}/wide", 3, ["chmod 700"]),
    ("coordinator --state {d}/s1 --listen 127.0.0.1:x", 2, ["127.0.0.1:x"]),
    ("coordinator --state {d}/s1 --http 0.0.0.0:80", 3, ["this machine only", "127.0.0.1:80"]),
    ("coordinator --state {d}/s1 --federation 'a b'", 2, ["--federation", "a b"]),
    ("coordinator --state {d}/s1 --data digits={d}/no.csv", 2, ["no.csv"]),
    ("coordinator --state {d}/s1 --parallel 99", 2, ["--parallel", "1 to 16", "memory", "wait in the queue"]),
    # join
    ("join --state {d}/n1", 2, ["not joined yet", "token new"]),
    ("join nonsense --state {d}/n1", 2, ["token new --name"]),
    ("join causeway-join-1.AAAA --state {d}/n1", 2, ["copy it again"]),
    ("join nonsense --state {d}/n1 --data digits", 2, ["NAME=PATH"]),
    ("join nonsense --state {d}/n1 --reach host-1", 2, ["--reach host-1", "host-1=10.0.0.3:7401"]),
    ("join nonsense --state {d}/n1 --data x={d}/ok.csv --data x={d}/ok.csv", 2, ["given twice"]),
    ("join nonsense --state {d}/n1 --device gpu", 2, ["--device", "cpu"]),
    ("join nonsense --state {d}/n1 --allow all", 2, ["--allow", "split"]),
    ("join nonsense --state {d}/n1 --policy {d}/no.toml", 2, ["no.toml"]),
    ("join nonsense --state {d}/ok.csv", 2, ["is a file"]),
    # token, node, audit: what an operator has to give
    ("token new --state {d}/none", 2, ["--name is required"]),
    ("token new --name a --role king --state {d}/none", 2, ["--role", "operator"]),
    ("token new --name a --expires never --state {d}/none", 2, ["--expires", "30s"]),
    ("token new --name a --expires 24 --state {d}/none", 2, ["--expires", "a unit"]),
    ("node revoke --state {d}/none", 2, ["name is required"]),
    ("node log --state {d}/none", 2, ["no log here"]),
    ("node log --lines 0 --state {d}/none", 2, ["--lines", "1 to 200"]),
    ("audit show --last x --state {d}/none", 2, ["--last", "number", '"x"']),
    ("audit verify --head zz --state {d}/none", 2, ["--head", "64 hexadecimal"]),
    ("audit verify --against {d}/none --state {d}/none", 2, ["--against", "taken part in a round"]),
    # backup
    ("backup --state {d}/none", 2, ["out is required"]),
    ("backup {d}/copy", 2, ["--state is required"]),
    ("backup {d}/copy --state {d}/none", 2, ["no coordinator's state folder", "--state"]),
    # experiment: files
    ("experiment init {d}/my.toml", 2, ["already exists", "name another"]),
    ("experiment init {d}/no/my.toml", 2, ["there is no folder"]),
    ("experiment init {d}/x.toml --shape 8by8", 2, ["--shape", "8x8x1"]),
    ("experiment init {d}/x.toml --set train.bacth=3", 2, ["train.bacth", 'did you mean "batch"']),
    ("experiment init {d}/x.toml --rounds many", 2, ["--rounds", "number"]),
    ("experiment validate", 2, ["file is required"]),
    ("experiment validate {d}/no.toml", 2, ["no such experiment file"]),
    ("experiment validate {d}/ok.csv", 2, ["ok.csv:1:2: error: TOML syntax"]),
    ("experiment validate {d}", 2, ["not a regular file"]),
    ("experiment validate {d}/my.toml --set rounds", 2, ["table.key=value"]),
    ("experiment show digits", 2, ["no such file", "digits-fedavg"]),
    ("experiment show {d}/my.toml --set experiment.rounds=0", 2, ["experiment.rounds", "from 1 to"]),
    ("experiment submit {d}/no.toml --state {d}/none", 2, ["no such experiment file"]),
    ("experiment submit {d}/my.toml", 2, ["--state is required"]),
    ("experiment submit {d}/my.toml --set train.batch=0 --state {d}/none", 2, ["--set train.batch"]),
    ("experiment export --out {d}/no/m --state {d}/none", 2, ["there is no folder", "make it first"]),
    ("experiment export --format onnx --state {d}/none", 2, ["--format", "npz"]),
    ("experiment export --round x --state {d}/none", 2, ["--round", "number"]),
    ("experiment export --best --round 3 --state {d}/none", 2, ["--round excludes --best"]),
    ("experiment wait --timeout soon --state {d}/none", 2, ["--timeout", "30s"]),
    ("experiment predict", 2, ["model is required"]),
    ("experiment predict {d}/junk.safetensors {d}/ok.csv", 1, ["junk.safetensors", "not a safetensors file"]),
    ("experiment predict {d}/no.safetensors {d}/ok.csv", 2, ["no.safetensors"]),
    ("experiment predict {d}/junk.safetensors {d}/ok.csv --out {d}/no/p.csv", 2, ["there is no folder"]),
    ("experiment predict {d}/junk.safetensors {d}/ok.csv --scale x", 2, ["0..16 -> 0..1"]),
    ("experiment evaluate {d}/junk.safetensors", 2, ["data is required"]),
    ("experiment evaluate {d}/junk.safetensors {d}/ok.csv", 1, ["not a safetensors file"]),
    ("experiment evaluate {d}/junk.safetensors {d}/ok.csv --experiment digit", 2, ["digits-fedavg"]),
    # data
    ("data inspect {d}/no.csv", 2, ["no.csv"]),
    ("data inspect {d}/empty.csv", 1, ["empty.csv", "empty"]),
    ("data inspect {d}/ok.csv --shape 3x3", 2, ["3x3", "9 values"]),
    ("data inspect {d}/ok.csv --label patient", 2, ["patient", "last"]),
    ("data inspect {d}/ok.csv --scale x", 2, ["0..16 -> 0..1"]),
    ("data split {d}/ok.csv", 2, ["--out is required"]),
    ("data split nowhere --out {d}/p", 2, ["nowhere", "digits"]),
    ("data split {d}/ok.csv --out {d}/p --parts 10", 2, ["10 parts", "2 examples"]),
    ("data split {d}/ok.csv --out {d}/p --partition dirichlet2", 2, ["dirichlet"]),
    ("data split {d}/ok.csv --out {d}/p --holdout 200%", 2, ["200%"]),
    # tools
    ("simulate", 2, ["file is required"]),
    ("simulate {d}/no.toml", 2, ["no such experiment file"]),
    ("simulate {d}/my.toml --data nowhere", 2, ["NAME=PATH"]),
    ("simulate {d}/my.toml --clients 0", 2, ["--clients"]),
    ("simulate {d}/my.toml --set data.dataset=nowhere", 2, ["--data nowhere=PATH"]),
    ("simulate {d}/my.toml --slow 10", 2, ['"10"', "20ms"]),
    ("simulate {d}/my.toml --link '40% uplink=1mbit'", 2, ["add up to 40 %"]),
    ("plan", 2, ["file is required"]),
    ("plan {d}/no.toml", 2, ["no such experiment file"]),
    ("plan digits-gsfl --data digits={d}/no.csv", 2, ["no.csv"]),
    ("plan digits-gsfl --examples 100 --link up=1mbit", 2, ["uplink="]),
    ("plan digits-gsfl --examples 100 --host-memory much", 2, ["--host-memory", "8GB"]),
    ("plan digits-gsfl --examples 100 --client-memory 1KB --host-memory 1KB --regime gsfl", 3, ["no cut", "memory"]),
    ("plan digits-gsfl --examples 100 --regime fedavg", 2, ["--regime", "splitfed-v1"]),
    ("plan digits-gsfl --examples 100 --apply", 2, ["is an example", "experiment init"]),
    ("plan digits-gsfl --profile {d}/no.toml", 2, ["no.toml"]),
    ("plan digits-gsfl --profile {d}/ok.csv", 2, ["ok.csv:1:", "TOML syntax"]),
    ("plan digits-gsfl --profile {d}/my.toml", 2, ["my.toml:", "[host] or [[client]]"]),
    ("plan digits-gsfl --profile {d}/my.toml --slow 2x", 2, ["leave out --link and --slow"]),
    ("plan digits-gsfl --state {d}/none", 2, ["operator"]),
    ("experiment leakage", 2, ["file is required"]),
    ("experiment leakage digits-gsfl --data digits={d}/no.csv", 2, ["no.csv"]),
    ("experiment leakage digits-gsfl --examples 1", 2, ["--examples", "2 to 2000"]),
    ("experiment leakage digits-gsfl --noise -1", 2, ["--noise"]),
    ("experiment leakage digits-gsfl --model {d}/junk.safetensors", 1, ["not a safetensors file"]),
    ("experiment validate digits-gsfl --set regime.cut=maxpol", 2, ["--set regime.cut", 'did you mean "maxpool"']),
    ("experiment validate digits-gsfl --set regime.groups=9", 2, ["9 groups need at least 9 clients"]),
    ("experiment validate digits-gsfl --set regime.preset=u-shaped", 2, ["u-shaped needs two cuts"]),
    ("experiment validate digits-fedavg --set regime.preset=split", 2, ["[regime] lacks cut"]),
    ("experiment validate digits-fedavg --set regime.preset=split --set regime.cut=1", 2, ["raw inputs", "dense"]),
    ("experiment validate digits-gsfl --set evaluation.where=clients", 2, ["their segment only"]),
    ("experiment validate digits-gsfl --set train.clip_norm=1", 2, ["train.clip_norm"]),
    ("join TOKEN --state {d}/n --wait soon", 2, ["--wait", "soon"]),
    ("bench summs", 2, ["sums"]),
    ("doctor --device cuda:9", 2, ["--device", "cpu"]),
    ("doctor --listen 127.0.0.1:x", 2, ["127.0.0.1:x"]),
    ("completion fish", 2, ["bash, zsh"]),
    ("man {d}/ok.csv", 2, ["is a file"]),
    # words
    ("", 2, ["needs a command", "causeway --help"]),
    ("expreiment list", 2, ['did you mean "experiment"']),
    ("experiment sumbit", 2, ['did you mean "submit"', "causeway experiment --help"]),
    ("node", 2, ["needs a command", "revoke"]),
]

# An experiment file: one line of a valid one replaced, and what is said of it.
EXPERIMENT_FILE = [
    ("rounds = 20", "rouns = 20", [":1", 'unknown key', 'did you mean "rounds"']),
    ("rounds = 20", 'rounds = "20"', ["experiment.rounds must be a whole number", "not a text"]),
    ('dataset = "digits"', "dataset = digits", ["TOML syntax"]),
    ("shape = [8, 8, 1]", "shape = [8, 0]", ["a size in data.shape", "at least 1"]),
    ('layers = ["flatten"', 'layers = ["flaten"', ["flaten", "flatten"]),
    ("[data]", "[date]", ["date", 'did you mean "data"']),
    ("rounds = 20", "rounds = 20\nrounds = 30", ["TOML syntax", "rounds"]),
    ('dataset = "digits"', "", ["[data] lacks dataset", "for example"]),
    ('# preset = "fedavg"', 'cut = "relu"\ngroups = 2', ["regime.cut applies only", '"gsfl"']),
    ('# preset = "fedavg"', 'preset = "gsfl"\ncut = "relu"\ngroups = 2\ngrouping = "tiem"', ["time"]),
    ('# preset = "fedavg"', 'preset = "gsfl"\ncut = "nope"', ['no layer "nope"', "possible: "]),
]

# policy.toml of a node, coordinator.toml: all of the text.
POLICY_FILE = [
    ("min_cohrt = 3\n", ["policy.toml:1:1: error", 'did you mean "min_cohort"']),
    ('min_cohort = "3"\n', ["policy.toml:1:14: error: min_cohort", "whole number"]),
    ('hours = ["20-6"]\n', ["policy.toml:1:10: error: hours"]),
    ("datasets = []\n", ["policy.toml:1:12: error", "leave the key out"]),
    ('regimes = ["fedavgg"]\n', ["policy.toml:1:12: error", 'did you mean "fedavg"']),
    ("allow_split = yes\n", ["policy.toml:1:", "TOML syntax"]),
]
SETTINGS_FILE = [
    ('log_levle = "info"\n', ["coordinator.toml:1:1: error", 'did you mean "log_level"']),
    ('log_level = "loud"\n', ["coordinator.toml:1:13: error", "info"]),
    ("log_level = 3\n", ["coordinator.toml:1:13: error", "a text is needed"]),
    ("log_level = info\n", ["coordinator.toml:1:", "TOML syntax"]),
    ('spool_quota = "20"\n', ["coordinator.toml:1:15: error", "spool_quota: a size of 1 MB or more", "20 GiB"]),
    ("state_quota = 20\n", ["coordinator.toml:1:15: error", "state_quota: a size", "this is"]),
    ('cache_quota = "20 GiB"\n', ["coordinator.toml:1:1: error", "cache_quota"]),
    ('[log]\nlevel = "info"\n', ["coordinator.toml:1:", "log"]),
]

# Against a coordinator with one node, client-1, that holds "digits".
REMOTE = [
    ("experiment status", 2, ["no experiment was submitted yet", "experiment submit"]),
    ("experiment submit digits-fedavg --set data.dataset=digitz", 2, ["digitz", 'did you mean "digits"']),
    ("token new --name 'a b'", 2, ["the node's name must be"]),
    ("token new --name client-1", 3, ["client-1", "node revoke"]),
    ("token new --name x --expires 60d", 2, ["30"]),
    ("node revoke cleint-1", 2, ["cleint-1", "node list"]),
    ("node log cleint-1", 2, ['did you mean "client-1"']),
    ("node log client-1", 3, ["share_log"]),
    ("experiment submit digits-fedavg --set model.init_from=pretrained", 2, ["pretrained", "--model"]),
    ("audit verify --head " + "00" * 32, 1, ["does not hold"]),
]


def required(text):
    """Words that fill what a command's help calls REQUIRED, and its optional positional arguments."""
    words = []
    positionals = re.search(r"^Positionals:\n((?:  .*\n)+)", text, re.M)
    for line in re.findall(r"^  (\S.*)", positionals[1], re.M) if positionals else []:
        words.append("digits-fedavg" if line.startswith("file") else "1")
    for name in re.findall(r"^  (--[\w-]+) \S+ (?:\S+ )?REQUIRED", text, re.M):
        words += [name, "/no/such/folder"]
    return words


TAKES_ANY_NUMBER = ("ca import",)  # a further argument is no mistake there


class Mistakes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="causeway-mistakes-")
        for name, text in (("ok.csv", "1,2,0\n3,4,1\n"), ("empty.csv", ""), ("junk.safetensors", "junk")):
            cls.write(name, text)
        os.mkdir(os.path.join(cls.folder, "wide"))
        os.chmod(os.path.join(cls.folder, "wide"), 0o755)
        assert run("experiment", "init", os.path.join(cls.folder, "my.toml")).returncode == 0

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def write(cls, name, text):
        path = os.path.join(cls.folder, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def expect(self, done, code, words):
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        self.assertRegex(done.stderr, "error: ")
        for word in words:
            self.assertIn(word, done.stderr)

    def test_every_mistake_on_the_command_line(self):
        environment = {"CAUSEWAY_STATE": ""}
        for line, code, words in COMMANDS:
            with self.subTest(line=line):
                self.expect(run(*shlex.split(line.replace("{d}", self.folder)), env=environment), code, words)

    def test_on_every_command_a_misspelt_option_an_argument_too_many_and_a_missing_one(self):
        for name, text in commands().items():
            words, filled = name.split(), required(text)
            with self.subTest(command=name):
                self.expect(run(*words, *filled, "--jsno"), 2, [f"`causeway {name}` has no option --jsno",
                                                               "did you mean --json?", f"next: causeway {name} --help"])
                if name not in TAKES_ANY_NUMBER:
                    self.expect(run(*words, *filled, "surplus"), 2, ["no further argument: surplus"])
                if "REQUIRED" in text:
                    self.expect(run(*words, env={"CAUSEWAY_STATE": ""}), 2, ["is required"])

    def test_on_every_command_of_an_operator_a_folder_that_is_none(self):
        tried = 0
        for name, text in commands().items():
            if "operator's state folder" not in re.sub(r"\s+", " ", text) or name in ("node log", "doctor"):
                continue
            if name in TAKES_ANY_NUMBER:  # of files, which are read first
                continue
            filled = [word if word != "/no/such/folder" else os.path.join(self.folder, "none") for word in required(text)]
            with self.subTest(command=name):
                self.expect(run(*name.split(), *filled), 2, ["no operator identity here", "causeway join TOKEN --state"])
                tried += 1
        self.assertGreater(tried, 8)

    def test_every_mistake_in_an_experiment_file(self):
        with open(os.path.join(self.folder, "my.toml"), encoding="utf-8") as file:
            good = file.read().replace("# rounds = 20", "rounds = 20")
        for old, new, words in EXPERIMENT_FILE:
            with self.subTest(mistake=new):
                self.assertIn(old, good)
                path = self.write("wrong.toml", good.replace(old, new, 1))
                done = run("experiment", "validate", path)
                self.expect(done, 2, words)
                self.assertRegex(done.stderr, r"wrong\.toml(:\d+:\d+)?: error: ")

    def test_every_mistake_in_a_policy_and_in_the_settings(self):
        for text, words in POLICY_FILE:
            with self.subTest(policy=text):
                self.write("node/policy.toml", text)
                self.expect(run("join", "token", "--state", os.path.join(self.folder, "node")), 2, words)
        for text, words in SETTINGS_FILE:
            with self.subTest(settings=text):
                self.write("daemon/coordinator.toml", text)
                self.expect(run("coordinator", "--listen", "127.0.0.1:0", "--state", os.path.join(self.folder, "daemon")),
                            2, words)

    def test_every_mistake_that_the_coordinator_answers(self):
        federation = Federation(clients=1)
        self.addCleanup(federation.close)
        federation.start_coordinator()
        token = federation.token("client-1")
        federation.start_client(1, token).event(lambda e: "joined" in e.get("text", ""))
        for line, code, words in REMOTE:
            with self.subTest(line=line):
                self.expect(federation.command(*shlex.split(line)), code, words)
        self.expect(run("join", token[:-4], "--state", os.path.join(self.folder, "n3")), 2, ["copy it again"])
        self.expect(run("join", token, "--state", os.path.join(self.folder, "n3")), 3, ["was used", "ask for a new one"])
        federation.children["coordinator"].stop()
        self.expect(federation.command("experiment", "list"), 3, ["is `causeway coordinator --state"])
        late = run("join", token, "--state", os.path.join(self.folder, "n4"))
        self.expect(late, 3, [str(federation.port)])

    def test_a_wait_that_is_too_short_ends_with_4(self):
        federation = Federation(clients=1)
        self.addCleanup(federation.close)
        federation.start_coordinator()
        federation.join_clients(1)
        federation.submit("--set", "sync.min_clients=9")
        self.expect(federation.command("experiment", "wait", "--timeout", "1s"), 4, ["has not ended within 1s"])


if __name__ == "__main__":
    unittest.main()
