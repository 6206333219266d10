"""
A file larger than memory, streamed
===================================

The command ``polysparse expand`` goes from file to file within a limit of memory, however large its
output is. Here it may take 32 MiB, and we watch it.
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
# A text file of 100,000 rows with 25 values each. A label hangs on one pair of columns.

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
# Expand it in a process of its own, and look often at what it holds, which Linux tells in
# ``/proc``, and at what it wrote.

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
# learn in batches; each part is judged before it is learned.

print(polysparse.load(folder / "out").shape)
model = SGDClassifier(loss="log_loss", random_state=0)
ends, accuracy = [], []
for rows, part, own in polysparse.iter_load(folder / "out"):
    if rows.start:
        ends.append(rows.start)
        accuracy.append(model.score(part, own))
    model.partial_fit(part, own, classes=[0, 1])

# %%
# What is written grows, and memory does not.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
left.plot(seconds, written, color="C0", label="written to the disk")
left.plot(seconds, memory, color="C1", label="memory, Python included")
left.set(xlabel="seconds", ylabel="MB")
left.legend()
right.plot(ends, accuracy, "o-", color="C2")
right.set(xlabel="rows learned", title="accuracy on the next part")
plt.show()
temporary.cleanup()
