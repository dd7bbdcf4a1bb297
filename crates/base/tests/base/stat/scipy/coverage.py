#!/usr/bin/env python3
"""How often 95 % intervals of a ratio hold the true one: Welch's t on logarithms beside the
percentile and BCa bootstrap, for few runs; and batch means beside the plain standard error, for a
series whose neighbours are alike. Needs numpy and scipy; prints the figures of docs/compare.md."""
import warnings

import numpy as np
from scipy import stats

warnings.simplefilter("ignore")
rng = np.random.default_rng(1)
TRIES = 1000
for n in (3, 5, 10):
    held = {"welch": 0, "percentile": 0, "BCa": 0}
    for _ in range(TRIES):
        a, b = rng.normal(0, 0.02, n), rng.normal(0, 0.03, n)
        low, high = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
        held["welch"] += low <= 0 <= high
        for method in ("percentile", "BCa"):
            made = stats.bootstrap((b, a), lambda x, y, axis: x.mean(axis) - y.mean(axis),
                                   n_resamples=999, method=method, random_state=rng,
                                   vectorized=True).confidence_interval
            held[method] += made.low <= 0 <= made.high
    print(f"{n} runs each:", {name: f"{100 * count / TRIES:.1f} %" for name, count in held.items()})


def batch_reach(values):
    level, widest = values, 0.0
    while len(level) >= 5:
        widest = max(widest, stats.sem(level) * stats.t.ppf(0.975, len(level) - 1))
        level = level[: len(level) // 2 * 2].reshape(-1, 2).mean(axis=1)
    return widest


for n, memory in ((50, 0.0), (50, 0.5), (50, 0.8)):
    held = {"plain": 0, "batches": 0}
    for _ in range(TRIES):
        x = np.zeros(n + 100)
        for nth, noise in enumerate(rng.normal(0, 1, n + 99)):
            x[nth + 1] = memory * x[nth] + noise
        x = x[-n:]
        held["plain"] += abs(x.mean()) <= stats.sem(x) * stats.t.ppf(0.975, n - 1)
        held["batches"] += abs(x.mean()) <= batch_reach(x)
    print(f"series of {n}, memory {memory}:",
          {name: f"{100 * count / TRIES:.1f} %" for name, count in held.items()})
