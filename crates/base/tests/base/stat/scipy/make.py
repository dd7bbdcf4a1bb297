#!/usr/bin/env python3
"""Makes answers.json: what SciPy says of samples with known seeds. Needs numpy and scipy.

    python3 -m venv venv && venv/bin/pip install scipy && venv/bin/python make.py > answers.json
"""
import json
import sys

import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(20251122)
LEVEL = 0.95


def interval(result):
    bounds = result.confidence_interval(LEVEL)
    return [float(np.exp(bounds.low)), float(np.exp(bounds.high))]


def sample(size, centre, deviation):
    return (centre * np.exp(rng.normal(0, deviation, size))).tolist()


welch = []
for n, m, factor, da, db in [
    (2, 2, 1.0, 0.01, 0.01), (3, 3, 1.1, 0.02, 0.05), (5, 5, 0.9, 0.01, 0.01),
    (5, 3, 1.5, 0.1, 0.01), (10, 7, 1.0, 0.03, 0.2), (40, 50, 1.01, 0.01, 0.02),
]:
    a, b = sample(n, 3e9, da), sample(m, 3e9 * factor, db)
    test = stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
    welch.append({"a": a, "b": b, "ratio": float(stats.gmean(b) / stats.gmean(a)),
                  "interval": interval(test), "freedom": float(test.df)})

paired = []
for n, factor, drift in [(2, 1.0, 0.0), (5, 1.05, 0.3), (12, 0.97, 0.1)]:
    trend = np.exp(np.linspace(0, drift, n))
    a = (np.array(sample(n, 1e6, 0.02)) * trend).tolist()
    b = (np.array(sample(n, 1e6 * factor, 0.02)) * trend).tolist()
    test = stats.ttest_rel(np.log(b), np.log(a))
    paired.append({"a": a, "b": b, "interval": interval(test), "freedom": float(test.df)})

predicted = []
for n, factor in [(2, 1.0), (5, 0.8), (20, 1.02)]:
    many, one = sample(n, 500.0, 0.02), 500.0 * factor
    logs = np.log(many)
    reach = stats.t.ppf((1 + LEVEL) / 2, n - 1) * np.std(logs, ddof=1) * np.sqrt(1 + 1 / n)
    centre = np.log(one) - logs.mean()
    predicted.append({"many": many, "one": one,
                      "interval": [float(np.exp(centre - reach)), float(np.exp(centre + reach))]})

ranks = []
for n, m, factor in [(3, 3, 2.0), (4, 5, 1.0), (5, 5, 1.02), (8, 30, 1.01), (60, 60, 1.004)]:
    a, b = sample(n, 100.0, 0.02), sample(m, 100.0 * factor, 0.02)
    method = "exact" if n * m <= 2500 else "asymptotic"
    test = stats.mannwhitneyu(b, a, method=method)
    ranks.append({"a": a, "b": b, "u": float(test.statistic), "p": float(test.pvalue)})
tied_a, tied_b = [1.0, 2.0, 2.0, 3.0, 5.0, 5.0], [2.0, 4.0, 5.0, 6.0, 6.0]
test = stats.mannwhitneyu(tied_b, tied_a, method="asymptotic")
ranks.append({"a": tied_a, "b": tied_b, "u": float(test.statistic), "p": float(test.pvalue)})

quantiles = [{"p": p, "freedom": df, "t": float(stats.t.ppf(p, df))}
             for p in (0.5, 0.9, 0.975, 0.995, 0.01) for df in (1.0, 1.3, 2.0, 4.0, 7.77, 30.0, 1e4)]

series = []
for n, memory in [(5, 0.0), (10, 0.8), (37, 0.9), (64, 0.0)]:
    noise, x = rng.normal(0, 0.05, n), [0.0]
    for e in noise:
        x.append(memory * x[-1] + e)
    values = (2e9 * (1 + np.array(x[1:]))).tolist()
    level, best = np.array(values), (-1.0, 0.0, 0.0)
    while len(level) >= 5:
        error = stats.sem(level) / np.mean(values)
        freedom = len(level) - 1
        reach = error * stats.t.ppf(0.975, freedom)
        if reach > best[0]:
            best = (reach, float(error), float(freedom))
        level = level[: len(level) // 2 * 2].reshape(-1, 2).mean(axis=1)
    series.append({"values": values, "relative": best[1], "freedom": best[2]})

json.dump({"scipy": scipy.__version__, "numpy": np.__version__, "welch": welch, "paired": paired,
           "predicted": predicted, "ranks": ranks, "quantiles": quantiles, "series": series},
          sys.stdout, indent=1)
print()
