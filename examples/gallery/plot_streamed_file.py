"""
A file larger than memory, streamed
===================================

The command ``polysparse expand`` expands a file into another within a memory limit, however large
the output is. Here the limit is 32 MiB, and we measure the memory it uses.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDClassifier

import polysparse

# %%
# Write a text file of 100,000 rows with 25 values each. The label depends on the first
# two values together.

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
rng = np.random.default_rng(0)
n_rows = 100_000
columns = np.sort(rng.integers(1, 21, size=(n_rows, 25)) + 20 * np.arange(25), axis=1)
labels = (columns[:, 0] + columns[:, 1]) % 2
with (folder / "log.svmlight").open("w") as file:
    for label, row in zip(labels, columns, strict=True):
        file.write(f"{label} {' '.join(f'{c}:1' for c in row)}\n")
print(f"{(folder / 'log.svmlight').stat().st_size / 1e6:.0f} MB of text")

# %%
# Expand it in a separate process. Meanwhile, sample its memory, which Linux reports in ``/proc``,
# and the size of its output.

command = [sys.executable, "-m", "polysparse", "expand", folder / "log.svmlight", folder / "out"]
command += ["--interaction-only", "--max-memory", "32MiB", "--one-based", "--quiet"]
process = subprocess.Popen(command)
seconds, memory, written = [], [], []
start = time.perf_counter()
while process.poll() is None:
    status = Path(f"/proc/{process.pid}/status").read_text()
    held = [int(line.split()[1]) * 1024 for line in status.splitlines() if "VmRSS" in line]
    if held:
        seconds.append(time.perf_counter() - start)
        memory.append(held[0] / 1e6)
        written.append(sum(path.stat().st_size for path in folder.rglob("*.npy*")) / 1e6)
    time.sleep(0.02)
assert process.returncode == 0

# %%
# ``load`` opens the result without reading it. ``iter_load`` reads it part by part, for models that
# learn in batches. Each part is used to score the model before the model learns from it.

print(polysparse.load(folder / "out").shape)
model = SGDClassifier(loss="log_loss", random_state=0)
ends, accuracy = [], []
for rows, part, own in polysparse.iter_load(folder / "out"):
    if rows.start:
        ends.append(rows.start)
        accuracy.append(model.score(part, own))
    model.partial_fit(part, own, classes=[0, 1])

# %%
# The output grows, and the memory does not. The model learns the pairs that determine the label:
# its accuracy rises from part to part.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.plot(seconds, written, color="C0", label="written to disk")
left.plot(seconds, memory, color="C1", label="memory, including Python")
left.set(xlabel="seconds", ylabel="MB")
left.legend()
right.plot(ends, accuracy, "o-", color="C2")
right.set(xlabel="rows learned", title="accuracy on the next part")
plt.show()
temporary.cleanup()
