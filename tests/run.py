"""Runs every suite and adds them up: Catch2 programs, tidy, and the end-to-end tests with real processes.

    python3 tests/run.py BUILD [--programs-only] [WORD...]

A program that crashes or hangs counts as one failure. The last line is `N passed, N failed`.
"""
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT_S = 600  # a hang is a failure, not a wait


def run_program(path):
    """One Catch2 program: (name, passed, failed, seconds, output)."""
    name = os.path.basename(path)
    start = time.monotonic()
    try:
        done = subprocess.run([path, "--use-colour", "no", "-d", "no"], capture_output=True, text=True,
                              errors="replace", timeout=LIMIT_S, cwd=ROOT)
        output, code = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        output, code = f"no end within {LIMIT_S} s\n{(late.stdout or b'')[-2000:]}", 1
    seconds = time.monotonic() - start
    whole = re.search(r"All tests passed \(.* in (\d+) test cases?\)", output)
    parts = re.search(r"test cases:\s*(\d+) \|(?:\s*(\d+) passed \|)?\s*(\d+) failed", output)
    if whole and code == 0:
        return name, int(whole[1]), 0, seconds, output
    if parts:
        return name, int(parts[2] or 0), int(parts[3]), seconds, output
    return name, 0, 1, seconds, output + f"\n{name} ended with status {code} and no summary"


def run_unittests(build, folder):
    """The unittest files of tests/FOLDER: same tuple."""
    start = time.monotonic()
    os.environ["CAUSEWAY_BUILD_DIR"] = os.path.abspath(build)
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
    suite = unittest.TestLoader().discover(os.path.join(ROOT, "tests", folder), pattern="*_test.py")
    result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    return folder, result.testsRun - failed - len(result.skipped), failed, time.monotonic() - start, ""


def report(result):
    name, passed, failed, seconds, output = result
    if failed:
        print(output[-8000:])
    print(f"{name:24} {passed:5} passed {failed:3} failed {seconds:7.1f} s", flush=True)
    return passed, failed


def main():
    build = sys.argv[1]
    words = [a for a in sys.argv[2:] if not a.startswith("-")]
    wanted = lambda name: not words or any(word in name for word in words)
    programs = [p for p in sorted(glob.glob(os.path.join(build, "tests", "*", "test_*")))
                if os.access(p, os.X_OK) and os.path.isfile(p) and wanted(os.path.basename(p))]
    totals = []
    if words and not programs and not wanted("tidy") and not wanted("e2e"):
        suites = sorted(os.path.basename(path) for path in glob.glob(os.path.join(build, "tests", "*", "test_*"))
                        if os.path.isfile(path))
        print(f"no suite has {' or '.join(words)} in its name; there are: {', '.join([*suites, 'tidy', 'e2e'])}")
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for result in pool.map(run_program, programs):
            totals.append(report(result))
    for folder in [] if "--programs-only" in sys.argv else ["tidy", "e2e"]:
        if wanted(folder):
            totals.append(report(run_unittests(build, folder)))
    passed, failed = sum(t[0] for t in totals), sum(t[1] for t in totals)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


main()
