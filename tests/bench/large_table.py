"""What a table of many rows takes in memory: its text, its values as f32, and the most that `data inspect` held.

    python3 tests/bench/large_table.py build [ROWS]        10,000,000 rows of seven numbers and a label by default
"""
import os
import resource
import subprocess
import sys
import tempfile

COLUMNS = 7
BLOCK = 10_000


def write(path, rows):
    """A few blocks of rows again and again: a reader does not care, and a generator of random ones takes longer."""
    blocks = []
    for block in range(4):
        lines = []
        for i in range(BLOCK):
            k = block * BLOCK + i
            lines.append(",".join(f"{(k * (37 + 11 * c)) % 9973 / 97:.4f}" for c in range(COLUMNS)) + f",{k % 2}")
        blocks.append("\n".join(lines) + "\n")
    with open(path, "w", encoding="ascii") as file:
        file.write(",".join(f"x{c}" for c in range(COLUMNS)) + ",label\n")
        for block in range(rows // BLOCK):
            file.write(blocks[block % len(blocks)])


def main():
    build = sys.argv[1]
    rows = int(sys.argv[2]) // BLOCK * BLOCK if len(sys.argv) > 2 else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table.csv")
        write(path, rows)
        with open(os.path.join(folder, "table.toml"), "w", encoding="utf-8") as manifest:
            manifest.write('file = "table.csv"\nlabel = "label"\n')
        done = subprocess.run([os.path.join(build, "cli", "causeway"), "data", "inspect", manifest.name],
                              capture_output=True, text=True, check=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        values = rows * (COLUMNS + 1) * 4
        print(done.stdout)
        print(f"{rows:,} rows: text {os.path.getsize(path) / 1e6:,.0f} MB, values {values / 1e6:,.0f} MB, "
              f"peak memory {used.ru_maxrss * 1024 / 1e6:,.0f} MB, {used.ru_utime:.1f} s of CPU")


if __name__ == "__main__":
    main()
