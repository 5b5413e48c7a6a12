"""The style's rules as tests: a rule that is not checked is a wish.

Include order of the folders, third-party headers in one place, file and function length, banned calls, one mutex.
"""
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# What a folder may include besides itself (docs/architecture.md draws it).
BELOW = {
    "common": [],
    "kernels": ["common"],
    "model": ["kernels"],
    "data": ["common"],
    "wire": ["common"],
    "compression": ["kernels"],
    "aggregation": ["compression"],
    "split": ["model", "compression"],
    "geo": ["model", "compression", "aggregation"],
    "configs": ["model", "data", "aggregation", "split", "geo"],
    "coordinator": ["configs", "wire"],
    "client": ["configs", "wire"],
    "simulation": ["coordinator", "client"],
    "cli": ["simulation"],
}
# Each third-party header stays in one folder.
HOME = {
    "zmq": "wire", "capnp/": "wire", "kj/": "wire", "openssl/ssl": "wire", "openssl/x509": "wire", "sqlite3": "coordinator",
    "oneapi/": "kernels", "dnnl": "kernels", "hwy/": "kernels", "cuda": "kernels", "toml++": "configs",
    "CLI/": "cli", "spdlog": "common", "nlohmann": "common", "zlib": "data", "png.h": "data", "jpeglib": "data",
    "utf8proc": "data",
}
# In pure folders nothing may read a clock, sleep, print or draw unkeyed numbers.
BANNED = {
    r"\bsleep_for\b|\bsleep_until\b|\busleep\b": [],
    r"[^_\w:.>]s?rand\(\)|\brandom_device\b|\bmt19937\b": [],
    r"system_clock::now|steady_clock::now|high_resolution_clock": [],
    r"[^_\wfn]printf\(": ["cli"],
    r"\bnew [A-Z]\w*[({]": [],
    r"std::(mutex|recursive_mutex|shared_mutex|condition_variable)\b": ["common/queue.h"],
}
LONGEST_FILE = 500
LONGEST_FUNCTION = 70


def sources():
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cpp", "*.cu"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout.split()
    return [path for path in listed if os.path.exists(os.path.join(ROOT, path))]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def reachable(folder):
    seen, todo = {folder}, [folder]
    while todo:
        for below in BELOW[todo.pop()]:
            if below not in seen:
                seen.add(below)
                todo.append(below)
    return seen


def code_lines(text):
    """Lines with comments and texts blanked, so that words in them do not count."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    return [re.sub(r"//.*", "", line) for line in text.split("\n")]


def long_functions(path):
    """A function body opens at indent 0 or 4 with `) ... {` and closes with `}` at the same indent."""
    found, start = [], None
    for number, line in enumerate(code_lines(read(path)), 1):
        opening = re.match(r"( {0,4})[\w:~<>\[\]&*(,=].*\)( const)?( noexcept)?( override)?( ->.*)?( :.*)? \{$", line)
        if start is None and opening and not re.match(r"\s*(if|for|while|switch|namespace|struct|class)\b", line):
            start = (number, opening[1])
        elif start is not None and re.match(start[1] + r"\}", line):
            if number - start[0] > LONGEST_FUNCTION:
                found.append(f"{path}:{start[0]}: a function of {number - start[0]} lines")
            start = None
    return found


def unnamed_names(text):
    """What a source file declares in its unnamed namespaces, at their outermost level."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    text = re.sub(r"//(?! namespace)[^\n]*", "", text)
    names = set()
    for region in re.findall(r"^namespace \{\n(.*?)^\}  // namespace$", text, flags=re.S | re.M):
        for line in region.split("\n"):
            kind = re.match(r"(?:template <.*?>\s*)?(?:struct|class|enum class|enum|union) (\w+)\s*(?:final )?(?:[:{]|$)", line)
            alias = re.match(r"using (\w+)\s*=", line)
            if kind or alias:
                names.add((kind or alias)[1])
            elif line and line[0] not in " }#/)" and not re.match(r"using|template|namespace|static_assert|TEST_CASE", line):
                head = re.sub(r"<[^()]*>|\[\[.*?\]\]", "", line)
                declared = re.search(r"(\w+)\s*[(={\[;]", head)
                names |= {declared[1]} if declared else set()
    return names


class Tidy(unittest.TestCase):
    def check(self, faults):
        self.assertEqual([], faults, "\n" + "\n".join(faults))

    def product(self):
        return [path for path in sources() if path.split("/")[0] in BELOW]

    def test_a_folder_includes_only_folders_below_it(self):
        faults = []
        for path in self.product():
            allowed = reachable(path.split("/")[0])
            for name in re.findall(r'#include "([^"]+)"', read(path)):
                if "/" in name and name.split("/")[0] in BELOW and name.split("/")[0] not in allowed:
                    faults.append(f"{path} may not include {name}")
        self.check(faults)

    def test_third_party_headers_stay_in_one_folder(self):
        faults = []
        for path in self.product():
            for name in re.findall(r"#include <([^>]+)>", read(path)):
                for prefix, home in HOME.items():
                    if name.startswith(prefix) and path.split("/")[0] != home:
                        faults.append(f"{path} includes <{name}>, which belongs in {home}/")
        self.check(faults)

    def test_files_and_functions_are_short(self):
        faults = []
        for path in sources():
            lines = read(path).count("\n")
            if lines > LONGEST_FILE:
                faults.append(f"{path}: {lines} lines, at most {LONGEST_FILE}")
            faults += long_functions(path)
        self.check(faults)

    def test_every_file_opens_with_what_it_is(self):
        self.check([f"{path} opens without a comment" for path in sources() if not read(path).startswith("//")])

    def test_headers_are_guarded_by_pragma_once(self):
        self.check([path for path in sources() if path.endswith(".h") and "#pragma once" not in read(path)
                    and "backend.h" not in path])

    def test_names_in_unnamed_namespaces_are_unique_in_their_folder(self):
        """./quickstart compiles several files of a folder as one. kernels is left out: each of its files stays one."""
        faults, seen = [], {}
        types = {}  # of headers: the same name in an unnamed namespace would be ambiguous in the next file
        for path in (path for path in self.product() if path.endswith(".h")):
            for name in re.findall(r"^(?:struct|class|enum class) (\w+)(?: final)? [:{]|^using (\w+) =", read(path), re.M):
                types["".join(name)] = path
        for path in (path for path in sources() if path.endswith(".cpp") and not path.startswith("kernels/")):
            for name in unnamed_names(read(path)):
                folder = path.removeprefix("tests/").split("/")[0]
                if name in types and (folder not in BELOW or types[name].split("/")[0] in reachable(folder)):
                    faults.append(f"{path}: {name} is in its unnamed namespace and in {types[name]}")
                other = seen.setdefault((os.path.dirname(path), name), path)
                if other != path:
                    faults.append(f"{path}: {name} is in the unnamed namespace of {other} too")
        self.check(faults)

    def test_banned_calls_are_absent(self):
        faults = []
        for path in self.product():
            for number, line in enumerate(code_lines(read(path)), 1):
                for pattern, homes in BANNED.items():
                    if re.search(pattern, line) and not any(path.startswith(home) for home in homes):
                        faults.append(f"{path}:{number}: {line.strip()}")
        self.check(faults)

    def test_only_the_edges_read_the_clock(self):
        pure = re.compile(r"(coordinator/(machine|round|lease|membership|experiment_machine|operator)|client/session|"
                          r"simulation/|split/|model/|aggregation/|compression/|wire/(transfer\.|secure_channel|codec|enrolment))")
        faults = []
        for path in self.product():
            if pure.match(path):
                for number, line in enumerate(code_lines(read(path)), 1):
                    if re.search(r"\breal_now\(|\bwall_clock_unix_s\(", line):
                        faults.append(f"{path}:{number}: {line.strip()}")
        self.check(faults)

    def test_lines_fit_in_120_columns(self):
        faults = []
        for path in sources():
            for number, line in enumerate(read(path).split("\n"), 1):
                if len(line) > 120 and 'R"' not in line:
                    faults.append(f"{path}:{number}: {len(line)} columns")
        self.check(faults)

    def test_every_error_code_is_in_the_docs(self):
        documented = read("docs/errors.md")
        codes = {}
        for path in self.product():
            for code in re.findall(r'ErrorKind::\w+,\s*"([a-z_]+)"', read(path)):
                codes.setdefault(code, path)
        self.check([f"{path}: `{code}` is not in docs/errors.md" for code, path in sorted(codes.items())
                    if f"`{code}`" not in documented])

    def test_every_error_kind_is_produced_by_a_test(self):
        kinds = re.search(r"enum class ErrorKind \{(.*?)\};", read("common/result.h"), re.S)[1]
        names = re.findall(r"^\s*(\w+),", kinds, re.M)
        self.assertEqual(9, len(names))
        tests = "".join(read(path) for path in sources() if path.startswith("tests/"))
        self.check([f"no test expects ErrorKind::{name}" for name in names if f"ErrorKind::{name}" not in tests])

    def test_no_unfinished_marks(self):
        mark = "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"])
        faults = []
        for path in sources():
            for number, line in enumerate(read(path).split("\n"), 1):
                if re.search(rf"\b({mark})\b", line):
                    faults.append(f"{path}:{number}: {line.strip()}")
        self.check(faults)


if __name__ == "__main__":
    unittest.main()
