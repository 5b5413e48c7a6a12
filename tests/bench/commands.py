"""What the scripts of this folder run: Causeway's commands with --json, as their events."""
import json
import subprocess


def events(command):
    """The JSON objects that a command prints; its words and the script's end where it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}{done.stdout[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
