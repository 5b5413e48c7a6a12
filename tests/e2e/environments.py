"""Broken environments in which any command may be started, and what one started there must not do.

An environment is a prefix of words that runs the rest in it; what it needs besides is made in the folder that it gets.
"""
import collections
import os
import shutil
import stat
import subprocess

NOBODY = 65534

Environment = collections.namedtuple("Environment", "name prefix variables setting", defaults=((), {}, ""))


def shell(script):
    """Words that run what follows them after these lines of a shell."""
    return ("bash", "-c", script + '; exec "$0" "$@"')


def limited(*limits):
    return ("prlimit", *limits, "--")


# `setting` says what the test itself does to the folder: see ready().
ENVIRONMENTS = [
    Environment("no TMPDIR", variables={"TMPDIR": "/nonexistent/folder"}),
    Environment("no HOME", variables={"HOME": ""}),
    Environment("no variables at all", prefix=("env", "-i")),
    Environment("an unknown locale", variables={"LANG": "xx_XX.nonsense", "LC_ALL": "xx_XX.nonsense"}),
    Environment("the working folder deleted", prefix=shell('mkdir gone && cd gone && rmdir "$PWD"')),
    Environment("stdin closed", prefix=shell("exec <&-")),
    Environment("stdout closed", prefix=shell("exec >&-")),
    Environment("stderr closed", prefix=shell("exec 2>&-")),
    Environment("all three closed", prefix=shell("exec <&- >&- 2>&-")),
    Environment("stdout full", prefix=shell("exec >/dev/full")),
    Environment("a pipe that nobody reads", prefix=shell("exec > >(exec <&-); sleep 0.02")),
    Environment("few descriptors", prefix=limited("--nofile=20:20")),
    Environment("little memory", prefix=limited(f"--as={200 << 20}")),
    Environment("files of no bytes", prefix=limited("--fsize=0")),
    Environment("a folder that may not be written", setting="read-only"),
    Environment("files that may not be read", setting="unreadable"),
    Environment("a folder that may not be entered", setting="locked"),
    Environment("a full disk", setting="full"),
]

# Who is not told apart by permissions needs another user's identity for these.
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")


def can_be_nobody(program):
    """Root on a machine where another user may start the program."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return False
    return subprocess.run([*AS_NOBODY, program, "--version"], capture_output=True, check=False).returncode == 0


def tree(folder):
    """{path: (mode, bytes)} of all that lies below."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(place, name)
            info = os.lstat(path)
            text = b""
            if stat.S_ISREG(info.st_mode):
                with open(path, "rb") as file:
                    text = file.read()
            found[os.path.relpath(path, folder)] = (stat.S_IFMT(info.st_mode) | stat.S_IMODE(info.st_mode), text)
    return found


def ready(environment, folder):
    """Makes the folder what the environment says; the words that the command is to be run with."""
    if environment.setting == "read-only":
        os.chmod(folder, 0o755)
        for place, folders, _ in os.walk(folder):
            for name in folders:
                os.chmod(os.path.join(place, name), 0o755)
        return AS_NOBODY
    if environment.setting == "unreadable":
        os.chmod(folder, 0o777)
        for place, _, files in os.walk(folder):
            for name in files:
                os.chmod(os.path.join(place, name), 0)
        return AS_NOBODY
    if environment.setting == "locked":
        os.chmod(folder, 0o700)
        return AS_NOBODY
    return environment.prefix
