"""Reference in numpy: orders of documents, budgets, balance, keyed generators, context slices.

    python composition.py             writes composition.json beside this file
    python composition.py --check     also goes through many shapes, forwards and backwards
    python composition.py --seed N --out FILE     the same kinds of vectors from other seeds and shapes

Nothing here asks windrow. `keyed_hash` is XXH3-64 of three little-endian u64 and `Permutation` is `feistel-v1`, both for whole arrays;
they are compared with block_shuffle.json.
"""
import argparse, json
from pathlib import Path

import numpy as np

U, M64, M32 = np.uint64, (1 << 64) - 1, np.uint64(0xFFFFFFFF)
DOCS, BUDGET, MAP = 0x646F637331000000, 0x6275646765743100, 0x6D61703100000000      # "docs1", "budget1", "map1"
ROUND_WORD = 0x726F756E64776F72
SECRET = [0xBE4BA423396CFEB8, 0x1CAD21F72C81017C, 0xDB979083E96DD4DE, 0x1F67B3B7A4A44072]


def u64(x):
    return np.asarray(x & M64 if isinstance(x, int) else x, dtype=U)


def product(a, b):
    """The 128-bit product of two u64, as (high, low)."""
    a0, a1, b0, b1 = a & M32, a >> U(32), b & M32, b >> U(32)
    mid = a1 * b0 + (a0 * b0 >> U(32))
    mid2 = a0 * b1 + (mid & M32)
    return a1 * b1 + (mid >> U(32)) + (mid2 >> U(32)), a * b


def keyed_hash(seed, x, y, z):
    with np.errstate(over="ignore"):
        seed, x, y, z = u64(seed), u64(x), u64(y), u64(z)
        fold = lambda a, b: np.bitwise_xor(*product(a, b))
        acc = u64(24 * 0x9E3779B185EBCA87) + fold(x ^ (U(SECRET[0]) + seed), y ^ (U(SECRET[1]) - seed)) + fold(y ^ (U(SECRET[2]) + seed), z ^ (U(SECRET[3]) - seed))
        acc = (acc ^ (acc >> U(37))) * U(0x165667919E3779F9)
        acc = acc ^ (acc >> U(32))
    return int(acc) if acc.ndim == 0 else acc


class Permutation:
    """feistel-v1: the keyed bijection on 0..n, for arrays of numbers."""

    def __init__(self, key, n):
        root = int(np.sqrt(float(n)))
        while root * root > n: root -= 1
        while (root + 1) ** 2 <= n: root += 1
        ceil = root + (root * root < n)
        self.n, self.a = n, max(2, ceil + ceil % 2)
        self.b = -(-n // self.a)
        self.rounds = [[U(keyed_hash(key, r, w, ROUND_WORD)) for w in range(4)] for r in range(16 if n < 256 else 6)]

    @staticmethod
    def below(m, half, w0, w1):
        high, low = product(half ^ w0, ((half << U(32)) | (half >> U(32))) ^ w1)
        return product(high ^ low, U(m))[0]

    def walk(self, i, step):
        i = np.atleast_1d(u64(i)).copy()
        if self.n < 2: return i
        left = np.arange(i.size)
        with np.errstate(over="ignore"):
            while left.size:
                i[left] = step(i[left])
                left = left[i[left] >= U(self.n)]
        return i

    def apply(self, i):
        a, b = U(self.a), U(self.b)
        def step(i):
            x, y = i % a, i // a
            for x0, x1, y0, y1 in self.rounds:
                x = (x + self.below(self.a, y, x0, x1)) % a
                y = (y + self.below(self.b, x, y0, y1)) % b
            return y * a + x
        return self.walk(i, step)

    def invert(self, j):
        a, b = U(self.a), U(self.b)
        def step(j):
            x, y = j % a, j // a
            for x0, x1, y0, y1 in reversed(self.rounds):
                y = (y + b - self.below(self.b, x, y0, y1)) % b
                x = (x + a - self.below(self.a, y, x0, x1)) % a
            return y * a + x
        return self.walk(j, step)


# ------------------------------------------------------------------------------------------------ A. documents anew in every epoch

def epoch_key(seed, epoch, pass_=0):
    return keyed_hash(seed, epoch, pass_, DOCS)


def docs_order(n, seed, epoch, pass_=0, scope=None, view=0):
    """The document at each place of the stream."""
    scope, out = scope or max(n, 1), np.empty(n, np.int64)
    for w, first in enumerate(range(0, n, scope)):
        m = min(scope, n - first)
        out[first:first + m] = first + Permutation(keyed_hash(epoch_key(seed, epoch, pass_), w, view, 0), m).apply(np.arange(m, dtype=U)).astype(np.int64)
    return out


def docs_place(n, doc, seed, epoch, pass_=0, scope=None, view=0):
    """The inverse: where in the stream a document comes."""
    scope = scope or max(n, 1)
    w = doc // scope
    m = min(scope, n - w * scope)
    return w * scope + int(Permutation(keyed_hash(epoch_key(seed, epoch, pass_), w, view, 0), m).invert(doc - w * scope)[0])


def stream(docs, order, eos=None, multiple=1, pad=0):
    """Tokens, document number (-1: eos or padding is of the document before it, too) and place in the document, in stream order."""
    ids, owner, place, real = [], [], [], []
    for d in order:
        x = np.asarray(docs[d], np.int64)
        if eos is not None: x = np.append(x, eos)
        fill = -len(x) % multiple
        ids.append(np.append(x, np.full(fill, pad, np.int64)))
        owner.append(np.full(len(x) + fill, d)), place.append(np.arange(len(x) + fill)), real.append(np.arange(len(x) + fill) < len(x))
    cat = lambda xs, t: np.concatenate(xs).astype(t) if xs else np.zeros(0, t)
    return cat(ids, np.int64), cat(owner, np.int64), cat(place, np.int64), cat(real, bool)


def pack_blocks(docs, order, length, eos=None, labels="next"):
    """What today's pack makes of documents in this order: input_ids and labels, [blocks, length]."""
    s = stream(docs, order, eos)[0]
    shared = 1 if labels == "next" else 0
    n = max(0, (len(s) - shared) // length)
    at = np.arange(n)[:, None] * length + np.arange(length)
    return s[at], (s[at + 1] if shared else s[at])


def pack_find(docs, order, length, doc, eos=None, labels="next"):
    """The blocks that read a value of document `doc`, as a list."""
    _, owner, place, _ = stream(docs, order, eos)
    shared = 1 if labels == "next" else 0
    n = max(0, (len(owner) - shared) // length)
    own = (owner == doc) & (place < len(docs[doc]))
    return [i for i in range(n) if own[i * length:i * length + length + shared].any()]


def length_classes(sizes, docs=128, share=64):
    """Runs of nearly equal sizes, from the longest down: (class of each record, its slot size by class). Size 0 is in no class (-1).

    A class closes when it has `docs` records and the next size differs, or when the next is below longest - longest // share."""
    sizes = np.asarray(sizes, np.int64)
    of, slot, members = np.full(len(sizes), -1, np.int64), [], 0
    for r in np.lexsort((np.arange(len(sizes)), -sizes)):
        s = int(sizes[r])
        if s == 0: break
        if not slot or s < slot[-1] - slot[-1] // share or (members >= docs and s != last):
            slot.append(s)
            members = 0
        of[r], members, last = len(slot) - 1, members + 1, s
    return of, slot


def bin_rows(of, slot, length):
    """The classes of the slots of each row, fixed for all epochs: slots above half a row first, the longest first, then the others in one
    random order, each into the fullest row that has room (of several such, the one filled last), else into a new one."""
    size = np.array([slot[c] if c >= 0 else 0 for c in of], np.int64)
    big = np.flatnonzero(size > length // 2)
    rest = np.flatnonzero((size > 0) & (size <= length // 2))
    rest = rest[Permutation(keyed_hash(0, 0, 0, DOCS), len(rest)).apply(np.arange(len(rest), dtype=U)).astype(np.int64)]
    rows, free, room = [], {}, 0                                  # free places -> rows with so many, the one filled last at the end
    for r in [*big[np.lexsort((big, -size[big]))], *rest]:
        fits = room >> int(size[r])
        if fits:
            left = int(size[r]) + (fits & -fits).bit_length() - 1
            k = free[left].pop()
            if not free[left]: room &= ~(1 << left)
        else:
            left, k = length, len(rows)
            rows.append([])
        rows[k].append(int(of[r]))
        left -= int(size[r])
        free.setdefault(left, []).append(k)
        if left: room |= 1 << left
    return rows


def trade(of, n_classes, seed, epoch, pass_=0, view=0):
    """For each class the records in the order of its slots, counted row by row, in this epoch."""
    E = epoch_key(seed, epoch, pass_)
    out = []
    for c in range(n_classes):
        members = np.flatnonzero(of == c)
        out.append(members[Permutation(keyed_hash(E, c, view, 1), len(members)).apply(np.arange(len(members), dtype=U)).astype(np.int64)])
    return out


# ------------------------------------------------------------------------------------------------ B. budgets and equal cost

def pool_rows(lengths, max_tokens, multiple=1):
    """Positions of the order that are sorted together: about 50 batches, a multiple of `multiple`."""
    n, total = len(lengths), int(np.sum(np.maximum(lengths, 1)))
    return multiple * max(1, -(-50 * max_tokens * n // (multiple * total)))


def budget_batches(lengths, order, max_tokens, multiple=1, seed=0, epoch=0, pad=None, pool=None):
    """The epoch's batches, each an array of samples. `order`: the samples as the loader's order has them. `pad`: buckets, ascending."""
    lengths = np.maximum(np.asarray(lengths, np.int64), 1)
    width = lengths if pad is None else np.asarray(pad)[np.searchsorted(pad, lengths)]
    Q, out = pool or pool_rows(lengths, max_tokens, multiple), []
    for p, at in enumerate(range(0, len(order), Q)):
        rows = np.asarray(order[at:at + Q])
        whole = len(rows) // multiple * multiple
        sort = rows[:whole][np.argsort(-width[rows[:whole]], kind="stable")]
        cuts, i = [], 0
        while i < whole:
            k = max_tokens // int(width[sort[i]]) // multiple * multiple
            assert k, "a row is longer than the budget allows"
            cuts.append(sort[i:min(i + k, whole)])
            i += k
        shuffle = Permutation(keyed_hash(seed, epoch, p, BUDGET), len(cuts)).apply(np.arange(len(cuts), dtype=U)).astype(int) if cuts else []
        out += [cuts[k] for k in shuffle]
        if whole < len(rows): out.append(rows[whole:])          # the epoch's rest: drop_last leaves it out
    return out


def attention(a=24576):
    return lambda lengths: sum(a * int(x) + int(x) ** 2 for x in lengths)


def balance(costs, ranks, tolerance=1000):
    """Rows of a batch for each rank, in ascending order: equal numbers, nearly equal cost. Whole numbers only."""
    n, b = len(costs), len(costs) // ranks
    assert n == b * ranks
    own, load = [[] for _ in range(ranks)], [0] * ranks
    for k, row in enumerate(sorted(range(n), key=lambda i: (-costs[i], i))):
        q, m = divmod(k, ranks)
        r = m if q % 2 == 0 else ranks - 1 - m
        own[r].append(row), load.__setitem__(r, load[r] + costs[row])
    total, swaps = sum(load), 0
    while swaps < n:
        high = max(range(ranks), key=lambda r: (load[r], -r))
        if tolerance * (load[high] * ranks - total) <= total: break
        best = None
        for low in sorted((r for r in range(ranks) if r != high), key=lambda r: (load[r], r)):
            gap = load[high] - load[low]
            for x in own[high]:
                for y in own[low]:
                    d = costs[x] - costs[y]
                    if 0 < d < gap:
                        key = (abs(gap - 2 * d), x, y)
                        if best is None or key < best[0]: best = (key, low, x, y, d)
            if best: break
        if not best: break
        _, low, x, y, d = best
        own[high].remove(x), own[low].remove(y), own[high].append(y), own[low].append(x)
        load[high] -= d; load[low] += d; swaps += 1
    return [sorted(r) for r in own]


def micro_batches(costs, ranks, accumulate):
    """Rows of a step for each rank and micro-batch: [rank][micro-batch] -> rows. The dearest rows of every rank come together."""
    out = []
    for rows in balance(costs, ranks):
        b = len(rows) // accumulate
        dear = sorted(rows, key=lambda i: (-costs[i], i))
        out.append([sorted(dear[m * b:(m + 1) * b]) for m in range(accumulate)])
    return out


def waiting(costs, parts):
    loads = [sum(costs[i] for i in p) for p in parts]
    return max(loads) * len(loads) / sum(loads) - 1


# ------------------------------------------------------------------------------------------------ E. a generator for a sample

def sample_rng(seed, epoch, sample, pass_=0):
    return np.random.Generator(np.random.Philox(key=[seed & M64, MAP], counter=[0, sample, pass_, epoch]))


# ------------------------------------------------------------------------------------------------ F. context parallel

def context_positions(length, rank, size, cu_seqlens=None):
    """Positions of a row that a context rank holds, in the order in which it holds them."""
    cu = [0, length] if cu_seqlens is None else sorted({*map(int, cu_seqlens), length})
    out = []
    for start, end in zip(cu, cu[1:]):
        c, rest = divmod(end - start, 2 * size)
        assert rest == 0, "a document is not a multiple of 2 * size"
        for chunk in (rank, 2 * size - 1 - rank):
            out.append(np.arange(start + chunk * c, start + (chunk + 1) * c))
    return np.concatenate(out)


def context_by_token(length, rank, size, cu_seqlens):
    """The same, the other way: for each local token its position, as attention kernels for packed rows find it."""
    cu = np.array(sorted({*map(int, cu_seqlens), length})) // size
    local = np.arange(length // size)
    s = np.searchsorted(cu, local, "right") - 1
    half, inside = (cu[s + 1] - cu[s]) // 2, local - cu[s]
    return cu[s] * size + np.where(inside < half, inside + half * rank, inside - half + half * (2 * size - 1 - rank))


def padded_pack(docs, order, length, multiple, eos=None, pad=0):
    """pack(documents=True, multiple=m): every document, with its eos, is filled up to a multiple of m before rows are cut."""
    s, owner, place, real = stream(docs, order, eos, multiple, pad)
    n = max(0, (len(s) - 1) // length)
    rows = []
    for i in range(n):
        sl, nx = slice(i * length, (i + 1) * length), slice(i * length + 1, (i + 1) * length + 1)
        learn = real[sl] & real[nx] & (owner[nx] == owner[sl]) & (place[nx] > 0)
        starts = np.flatnonzero((place[sl] == 0) | (np.arange(length) == 0))
        seg = np.cumsum(np.isin(np.arange(length), starts)) - 1
        rows.append({"input_ids": s[sl], "labels": np.where(learn, s[nx], -100), "segment_ids": seg, "position_ids": np.arange(length) - starts[seg],
                     "cu_seqlens": np.append(starts, length)})
    return rows


# ------------------------------------------------------------------------------------------------ vectors

def vectors(seed):
    rng = np.random.default_rng(seed)
    out = {"about": "numbers of documents, samples and positions; see composition.py", "made_with_seed": seed, "docs": [], "budget": [], "balance": [], "rng": [], "context": [], "classes": []}
    for n, scope in ((1, None), (2, None), (7, None), (100, None), (1000, None), (100, 16), (103, 16), (5, 16)):
        s = int(rng.integers(0, 1 << 62))
        n += int(rng.integers(0, 9)) if n > 2 else 0
        for epoch, pass_, view in ((0, 0, 0), (1, 0, 0), (0, 3, 2)):
            o = docs_order(n, s, epoch, pass_, scope, view)
            out["docs"].append(dict(n=n, scope=scope, seed=str(s), epoch=epoch, **{"pass": pass_}, view=view, order=o[:48].tolist(), last=o[-4:].tolist()))
    big, s = 10**9 + 7, int(rng.integers(0, 1 << 62))
    p = Permutation(keyed_hash(epoch_key(s, 2), 0, 0, 0), big)
    at = rng.integers(0, big, 6)
    out["docs"].append(dict(n=big, scope=None, seed=str(s), epoch=2, **{"pass": 0}, view=0, points=[[int(i), int(p.apply(i)[0])] for i in at]))
    for n, tokens, multiple, pad in ((60, 64, 1, None), (200, 256, 4, None), (97, 128, 8, None), (200, 256, 4, [4, 8, 16])):
        n += int(rng.integers(0, 9))
        s, lengths = int(rng.integers(0, 1 << 40)), rng.integers(1, 17, n)
        order = docs_order(n, s, 9)                                   # any order will do here
        b = budget_batches(lengths, order, tokens, multiple, s, 1, pad, pool=max(multiple, 48))
        out["budget"].append(dict(lengths=lengths.tolist(), order=order.tolist(), max_tokens=tokens, multiple=multiple, pad=pad, pool=max(multiple, 48), seed=str(s), epoch=1, batches=[x.tolist() for x in b]))
    for ranks, rows in ((1, 4), (2, 4), (4, 8), (8, 2), (3, 5), (16, 1)):
        c = [attention(64)(rng.integers(1, 200, rng.integers(1, 6))) for _ in range(ranks * rows)]
        out["balance"].append(dict(costs=c, ranks=ranks, rows=balance(c, ranks)))
    out["balance"].append(dict(costs=[5] * 8, ranks=4, rows=balance([5] * 8, 4)))
    for _ in range(4):
        s, e, i, q = (int(x) for x in rng.integers(0, [1 << 62, 50, 1 << 40, 5]))
        g = sample_rng(s, e, i, q)
        out["rng"].append(dict(seed=str(s), epoch=e, sample=i, **{"pass": q}, integers_below_2_32=g.integers(0, 1 << 32, 4).tolist(), random=g.random(2).tolist()))
    for size in (1, 2, 4):
        docs = (rng.integers(1, 5, 4) * 2 * size).tolist()
        length = sum(docs) + 4 * size
        cu = np.cumsum([0, *docs]).tolist()
        out["context"].append(dict(length=length, cu_seqlens=cu, size=size, positions=[context_positions(length, r, size, cu).tolist() for r in range(size)],
                                   without_documents=[context_positions(length, r, size).tolist() for r in range(size)]))
    sizes = np.minimum(rng.lognormal(5, 1, 400).astype(int) + 1, 512)
    of, slot = length_classes(sizes, docs=8)
    out["classes"].append(dict(sizes=sizes.tolist(), docs=8, share=64, of=of.tolist(), slots=slot, length=512, rows=bin_rows(of, slot, 512), epochs=[[x.tolist() for x in trade(of, len(slot), 11, e)] for e in (0, 1)]))
    return out


def check():
    known = Path(__file__).with_name("block_shuffle.json")
    assert Permutation(42, 10).apply(np.arange(10, dtype=U)).tolist() == [2, 6, 5, 8, 1, 3, 9, 7, 4, 0] and int(Permutation(42, 10**6).apply(123456)[0]) == 430204
    rng, tried = np.random.default_rng(3), 0
    for n in [*range(0, 40), 97, 255, 256, 300, 4097]:
        for scope in (None, 1, 7, 64):
            o = docs_order(n, n, 1, 0, scope)
            assert sorted(o) == list(range(n)) and all(docs_place(n, int(d), n, 1, 0, scope) == j for j, d in list(enumerate(o))[::max(1, n // 50)])
            tried += 1
    for _ in range(300):
        n, multiple = int(rng.integers(1, 300)), int(rng.integers(1, 6))
        lengths = rng.integers(1, 40, n)
        b = budget_batches(lengths, rng.permutation(n), 40 * multiple + int(rng.integers(0, 400)), multiple, 1, 2)
        assert sorted(np.concatenate(b)) == list(range(n)) and all(len(x) % multiple == 0 for x in b[:-1])
        ranks, rows = int(rng.integers(1, 9)), int(rng.integers(1, 7))
        c = [int(x) for x in rng.integers(0, 100, ranks * rows)]
        own = balance(c, ranks)
        assert sorted(sum(own, [])) == list(range(ranks * rows)) and {len(x) for x in own} == {rows}
        snake = [[] for _ in range(ranks)]
        for k, i in enumerate(sorted(range(len(c)), key=lambda i: (-c[i], i))):
            q, m = divmod(k, ranks); snake[m if q % 2 == 0 else ranks - 1 - m].append(i)
        assert sum(c) == 0 or waiting(c, own) <= waiting(c, snake) + 1e-12
        size = int(rng.integers(1, 5))
        cu = np.cumsum([0, *(rng.integers(1, 6, 5) * 2 * size)])
        L = int(cu[-1]) + 2 * size * int(rng.integers(0, 3))
        parts = [context_positions(L, r, size, cu) for r in range(size)]
        assert sorted(np.concatenate(parts)) == list(range(L)) and all((context_by_token(L, r, size, cu) == p).all() for r, p in enumerate(parts))
        tried += 3
    print(tried, "shapes hold;", "block_shuffle.json is there" if known.exists() else "block_shuffle.json is not there")


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("--check", action="store_true")
    a.add_argument("--seed", type=int, default=8)
    a.add_argument("--out", default=str(Path(__file__).with_name("composition.json")))
    a = a.parse_args()
    if a.check: check()
    text = json.dumps(vectors(a.seed), separators=(",", ":")).replace('{"', '\n{"')
    Path(a.out).write_text(text + "\n")
    print("wrote", a.out)
