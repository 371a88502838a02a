"""Hashes of the batches of 10,000 random budgets, by composition.py: what a Rust test compares its own with.

    python budget_cases.py        writes budget_cases.json beside this file

Each case draws its numbers by `keyed_hash(case, place, of, CASES)`, so that no generator is needed to draw them again.
"""
import json
from pathlib import Path

import numpy as np

from composition import Permutation, U, budget_batches, keyed_hash, pool_rows

CASES, N, EACH = 0x6361736573, 10_000, 500          # "cases"; a hash for each 500


def case(number):
    """(lengths, order, max_tokens, multiple, pad, pool, seed, epoch)"""
    draw = lambda of, below: int(keyed_hash(number, 0, of, CASES)) % below
    n, multiple = 1 + draw(1, 300), 1 + draw(2, 8)
    most = [4, 40, 4000][draw(3, 3)]
    lengths = (keyed_hash(number, np.arange(n, dtype=U), 4, CASES) % U(most)).astype(np.int64)      # 0 counts as 1
    order = Permutation(keyed_hash(number, 0, 5, CASES), n).apply(np.arange(n, dtype=U)).astype(np.int64)
    pad = [most // 4, most // 2, most] if draw(6, 3) == 0 else None
    longest = most if pad else max(1, int(lengths.max()))
    tokens = longest * multiple + draw(7, 6 * longest * multiple)
    pool = multiple * (1 + draw(9, 40)) if draw(8, 2) else pool_rows(lengths, tokens, multiple)
    return lengths, order, tokens, multiple, pad, pool, draw(10, 1 << 40), draw(11, 5)


def folded(numbers, into):
    for number in numbers:
        into = ((into ^ int(number)) * 0x100000001B3) % (1 << 64)
    return into


def main():
    hashes, rows, batches = [], 0, 0
    for first in range(0, N, EACH):
        into = 0
        for number in range(first, first + EACH):
            lengths, order, tokens, multiple, pad, pool, seed, epoch = case(number)
            for batch in budget_batches(lengths, order, tokens, multiple, seed, epoch, pad, pool):
                into = folded([len(batch), *batch], into)
                rows, batches = rows + len(batch), batches + 1
        hashes.append(str(into))
    text = json.dumps({"about": "see budget_cases.py", "cases": N, "each": EACH, "rows": rows, "batches": batches, "hashes": hashes})
    Path(__file__).with_name("budget_cases.json").write_text(text + "\n")
    print("wrote", rows, "rows in", batches, "batches")


if __name__ == "__main__":
    main()
