"""What holds on one processor holds on others: lesser instruction sets, and other sizes of caches.

oneDNN is told to be of an older processor (ONEDNN_MAX_CPU_ISA) and shown other caches (tests/kernels/pretended_caches.cpp),
because it picks code and cuts sums by both. Sets that this processor lacks are left out.
"""
import concurrent.futures
import os
import subprocess
import unittest

from federation import BUILD, DIGITS, events, run

CACHES = os.path.join(BUILD, "tests", "kernels", "libpretended_caches.so")
AS_IT_IS = ""
# Smaller than any in use, those that oneDNN takes for every processor but Intel's, and larger ones.
SMALL, USUAL, LARGE = "16+128+256", "32+512+1024", "64+4096+16384"
SETS = {"SSE41": "sse4_1", "AVX2": "avx2", "AVX512_CORE": "avx512vl", "AVX512_CORE_BF16": "avx512_bf16"}
LIMIT_S = 600


def flags():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        return set(next((line for line in lines if line.startswith("flags")), "").split())


def sets_here():
    """The sets of this processor that oneDNN can be held to, and all that it has."""
    here = flags()
    return [name for name, flag in SETS.items() if flag in here] + [AS_IT_IS]


def processor(instructions, caches):
    return {**({"ONEDNN_MAX_CPU_ISA": instructions} if instructions else {}),
            **({"CAUSEWAY_CACHES": caches, "LD_PRELOAD": CACHES} if caches else {})}


def failures(program, tests, processors):
    """What a Catch2 program says on those processors where it fails, two at a time."""
    path = os.path.join(BUILD, "tests", program, f"test_{program}")

    def one(pretended):
        done = subprocess.run([path, tests], capture_output=True, text=True, errors="replace", timeout=LIMIT_S,
                              env={**os.environ, **processor(*pretended)})
        return None if done.returncode == 0 and "All tests passed" in done.stdout else \
            f"{pretended}: {done.stdout[-2000:]}{done.stderr[-500:]}"

    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        return [text for text in pool.map(one, processors) if text]


class Processors(unittest.TestCase):
    def test_products_keep_their_promises_on_every_instruction_set_and_with_other_caches(self):
        lesser = [(name, SMALL) for name in sets_here()]
        self.assertEqual([], failures("kernels", "[products]", [*lesser, (AS_IT_IS, USUAL), (AS_IT_IS, LARGE)]))

    def test_every_preset_cut_anywhere_keeps_its_bits_on_every_instruction_set_and_with_other_caches(self):
        lesser = [(name, SMALL) for name in sets_here()]
        self.assertEqual([], failures("model", "[presets]", [*lesser, (AS_IT_IS, LARGE)]))

    def test_the_model_of_the_quickstart_depends_on_the_instruction_set_alone(self):
        for name in sets_here():
            ends = []
            for caches in (AS_IT_IS, SMALL, USUAL, LARGE):
                done = run("simulate", "digits-fedavg", "--json", "--data", f"digits={DIGITS}", "--clients", 5,
                           "--set", "experiment.rounds=3", deadline=LIMIT_S, env=processor(name, caches))
                self.assertEqual(0, done.returncode, done.stderr)
                ends.append(events(done.stdout)[-1]["model_sha256"])
            self.assertEqual(1, len(set(ends)), f"{name or 'all'}: {ends}")


if __name__ == "__main__":
    unittest.main()
