"""Which ranks and micro-batches get the rows of 10,000 batches, by the rule in composition.py, as one number for each thousand.

    python balance.py             writes balance.json beside this file

What the rows of a case cost is drawn by the keyed hash, so that another program can make the same cases.
"""
import json
from pathlib import Path

import numpy as np
from composition import keyed_hash, micro_batches

CASES, EACH = 10_000, 1000


def case(k):
    """Costs, ranks and micro-batches of case k: few and many different costs, also of a long tail."""
    draw = lambda what: keyed_hash(k, what, 0, 0)
    ranks, accumulate = 1 + draw(0) % 12, (1, 1, 2, 3)[draw(1) % 4]
    rows = ranks * accumulate * (1 + draw(2) % 5)
    below, power = (7, 1000, 10**9, 1 << 40)[draw(3) % 4], 1 + draw(4) % 2
    drawn = keyed_hash(k, np.full(rows, 5), np.arange(rows), np.zeros(rows))
    return [(int(x) % below) ** power for x in drawn], ranks, accumulate


def digest(k):
    found = 0
    for k in range(k, k + EACH):
        for rank, batches in enumerate(micro_batches(*case(k))):
            for number, batch in enumerate(batches):
                for row in batch:
                    found = keyed_hash(found, row, rank, number)
    return found


digests = [str(digest(k)) for k in range(0, CASES, EACH)]
Path(__file__).with_name("balance.json").write_text(json.dumps({"about": "see balance.py", "digests": digests}, indent=1) + "\n")
