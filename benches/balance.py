"""t: batches of equal cost: how long ranks wait for the dearest of them, how much of a batch is padding, and what either costs a step."""

import importlib.util
import itertools
import sys
import time
import types
from pathlib import Path

import numpy as np
import torch
from transformers.trainer_pt_utils import BatchRebalanceSampler, LengthGroupedSampler

import windrow as wr
from measure import CORPUS, DATA, TINY, in_turns, per_second

TOKENS, STEPS, LONGEST, ATTENTION = 200_000_000, 24, 131_072, 24_576
# Median and sigma of lognormal lengths.
LOGNORMAL = {"chat": (400, 1.0), "web": (700, 1.2), "code": (900, 1.6)}
# Length of a row, ranks, rows of a rank.
PACKS = [(8192, 64, 8), (8192, 64, 4), (131_072, 8, 8)]
# The longest row, ranks, rows of a rank, what a token costs beside attention.
ROWS = {"speech": (1000, 64, 8, 1000), "text": (8192, 64, 8, ATTENTION)}
VERL = "verl, Karmarkar-Karp"


def text():
    """The corpus as tokens, a record a document."""
    path = DATA / "balance-text-itself"
    wr.tokenize(CORPUS, path, tokenizer=TINY, to="shards")
    return wr.open(path)


def lengths_of(law):
    """Lengths of documents that hold TOKENS tokens together, the same in every run: drawn from a law, or from those of the corpus."""
    rng, parts, total = np.random.default_rng(0), [], 0
    of_text = [len(ids) for ids in text()] if law == "text" else []
    while total < TOKENS:
        if law == "speech":
            drawn = rng.integers(50, 1001, 20_000)
        elif law == "text":
            drawn = rng.choice(of_text, 20_000)
        else:
            median, sigma = LOGNORMAL[law]
            drawn = np.minimum(rng.lognormal(np.log(median), sigma, 20_000).astype(np.int64) + 1, LONGEST)
        parts.append(drawn)
        total += int(drawn.sum())
    lengths = np.concatenate(parts)
    return lengths[: np.searchsorted(np.cumsum(lengths), TOKENS)]


def documents(law):
    """Documents of these lengths. What they hold decides nothing here: it is zeros."""
    path, lengths = DATA / f"balance-{law}-{TOKENS}", lengths_of(law)
    if not path.exists():
        wr.write(path, (np.zeros(n, np.uint8) for n in lengths), to="shards", dtype="uint8", fsync=False)
    return wr.open(path), lengths


def verls():
    """The function of verl's that divides by cost, from its own file; None without verl. The packages that the file imports beside
    it (Ray, tensordict) are not asked for: dividing uses none of them.
    """
    found = importlib.util.find_spec("verl")
    if found is None:
        print("\n(t) verl is not installed: python -m pip install --no-deps verl")
        return None
    beside = {name: types.ModuleType(name) for name in ("verl", "verl.protocol", "verl.utils", "verl.utils.device")}
    beside["verl.protocol"].DataProto = beside["verl.utils.device"].get_device_name = None
    beside["verl.utils"].tensordict_utils = None
    path = Path(found.submodule_search_locations[0]) / "utils" / "seqlen_balancing.py"
    spec = importlib.util.spec_from_file_location("seqlen_balancing", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules |= beside
    try:
        spec.loader.exec_module(module)
    finally:
        for name in beside:
            del sys.modules[name]
    return module.get_seqlen_balanced_partitions


def attention(row, a=ATTENTION):
    """What a row of documents of these lengths costs, attention within them."""
    return sum(a * int(n) + int(n) ** 2 for n in row)


def tokens(row):
    return int(sum(row))


def of_rank(cost):
    return lambda rank: sum(map(cost, rank))


def places(rank):
    """Tokens and padding of a rank's batch, which is as long as its longest row."""
    return len(rank) * max(map(tokens, rank))


def rebalanced(rank):
    """What `batch_rebalance` of transformers takes a rank's batch to cost."""
    return places(rank) * (1 + BatchRebalanceSampler.QUADRATIC_COST_COEF * max(map(tokens, rank)))


def waiting(step, cost):
    """By what the dearest rank of a step costs more than the mean, both as `cost` says."""
    costs = [cost(rank) for rank in step]
    return max(costs) * len(costs) / sum(costs) - 1


def least(step, cost):
    """What no division with equal rows gets below: one rank has the dearest row, at best beside the cheapest ones."""
    costs = sorted(cost(row) for rank in step for row in rank)
    return max(0.0, (costs[-1] + sum(costs[: len(step[0]) - 1])) * len(step) / sum(costs) - 1)


def of_packs(batch):
    return [np.diff(row)[np.diff(row) > 0].tolist() for row in batch["cu_seqlens"]]


def of_records(batch):
    return [[n] for n in batch["loss_masks"].sum(1).tolist()]


def packs(dataset, length, **options):
    return dataset.pack(length, documents=True, labels=None, fields=["cu_seqlens"], **options)


def records(dataset, length):
    return dataset.records(length, pad="longest", labels=None, dtype="uint8")


def delivered(view, ranks, read, **options):
    """The first steps of a run: of each the ranks, of each rank its rows, of each row the lengths of its documents."""
    loaders = [wr.Loader(view, rank=rank, world_size=ranks, seed=1, num_threads=0, **options) for rank in range(ranks)]
    batches = zip(*(loader.stream() for loader in loaders), strict=True)
    return [[read(batch) for batch in step] for _, step in zip(range(STEPS), batches, strict=False)]


def divided(view, ranks, n_rows, read, balance, cost, karmarkar_karp, shuffle=True):
    """Steps as ranks have them in order, as the engine deals them, and as verl divides the same rows."""
    options = {"global_batch_size": ranks * n_rows, "shuffle": shuffle}
    whole = [rows for (rows,) in delivered(view, 1, read, **options)]
    steps = {"in order": [[rows[first : first + n_rows] for first in range(0, len(rows), n_rows)] for rows in whole]}
    steps["windrow, balance"] = delivered(view, ranks, read, balance=balance, **options)
    for rows, dealt in zip(whole, steps["windrow, balance"], strict=True):
        assert {len(rank) for rank in dealt} == {n_rows} and sorted(sum(dealt, [])) == sorted(rows)
    if karmarkar_karp:
        parts = [karmarkar_karp([cost(row) for row in rows], ranks, equal_size=True) for rows in whole]
        steps[VERL] = [[[rows[number] for number in part] for part in of] for rows, of in zip(whole, parts, strict=True)]
    return steps


class AllRanks(BatchRebalanceSampler):
    """The rows of all ranks at once: each would work out the same."""

    def _yield_global_batch(self, batch_indices):
        yield [rank[0] for rank in self._assign(batch_indices, [self.lengths[number] for number in batch_indices])]


def by_length(lengths, n_rows):
    """The order of rows that `group_by_length` of transformers gives for batches of `n_rows`."""
    return list(LengthGroupedSampler(n_rows, lengths=lengths, generator=torch.Generator().manual_seed(1)))


def transformers_steps(lengths, ranks, n_rows):
    """Steps as transformers' Trainer makes them: batches of rows of similar lengths, one after the other for the ranks, or batches of
    unequal numbers of rows that cost about the same with their padding.
    """
    few = lengths[: STEPS * ranks * n_rows]
    groups = np.reshape(by_length(few, n_rows), (STEPS, ranks, n_rows)).tolist()
    found = {"transformers, group_by_length": groups, "transformers, batch_rebalance": [*AllRanks(few, ranks * n_rows, ranks, 1, seed=1)]}
    for steps in found.values():
        assert sorted(number for step in steps for rank in step for number in rank) == [*range(len(few))]
    return {name: [[[[few[number]] for number in rank] for rank in step] for step in steps] for name, steps in found.items()}


def mean_waiting(title, steps, cost, cost_of_row=None):
    """Prints and returns how long ranks wait, for each way to make steps."""
    found = {name: float(np.mean([waiting(step, cost) for step in of])) for name, of in steps.items()}
    if cost_of_row:
        found["the least with equal rows"] = float(np.mean([least(step, cost_of_row) for step in steps["in order"]]))
    print(f"\n(t) waiting, mean of {STEPS} steps, {title}")
    for name, share in found.items():
        print(f"  {name:<44} {100 * share:>8.2f} %", flush=True)
    return found


def waiting_of_packs(karmarkar_karp):
    """Of packs. Their rows are equally long, so transformers' samplers have nothing to go by."""
    views = {}
    for law in (*LOGNORMAL, "text"):
        dataset, _ = documents(law)
        for (length, ranks, n_rows), shuffle in itertools.product(PACKS, (True, False)):
            title = f"{law}, packs of {length:,}, {ranks} ranks x {n_rows} rows{'' if shuffle else ', not shuffled'}"
            views[title] = packs(dataset, length), ranks, n_rows, shuffle
    views["the corpus itself, packs of 8,192, 8 ranks x 4 rows"] = packs(text(), 8192, reshuffle=True), 8, 4, True
    result = {}
    for title, (view, ranks, n_rows, shuffle) in views.items():
        steps = divided(view, ranks, n_rows, of_packs, "attention", attention, karmarkar_karp, shuffle)
        result[title] = mean_waiting(title, steps, of_rank(attention), attention)
    return result


def waiting_of_rows(karmarkar_karp):
    """Of rows of one document each, of different lengths."""
    result = {}
    for law, (most, ranks, n_rows, a) in ROWS.items():
        dataset, lengths = documents(law)
        view, lengths = records(dataset, most), np.minimum(lengths, most)
        title = f"{law}, rows of at most {most:,}, {ranks} ranks x {n_rows} rows"
        budget = {"max_tokens": int(ranks * n_rows * lengths.mean()), "multiple": ranks}
        of_transformers = transformers_steps(lengths.tolist(), ranks, n_rows)

        def steps(balance, cost):
            found = divided(view, ranks, n_rows, of_records, balance, cost, karmarkar_karp)
            found["windrow, max_tokens and balance"] = delivered(view, ranks, of_records, balance=balance, **budget)
            return found | of_transformers

        def by_attention(row):
            return attention(row, a)

        by_tokens, by_cost = steps("tokens", tokens), steps(a, by_attention)
        # The number that is next to what `batch_rebalance` counts.
        by_theirs = steps(1000, lambda row: attention(row, 1000))
        result[title] = {
            "tokens": mean_waiting(f"{title}, by tokens", by_tokens, of_rank(tokens), tokens),
            "attention": mean_waiting(f"{title}, by attention, a = {a:,}", by_cost, of_rank(by_attention), by_attention),
            "places": mean_waiting(f"{title}, dealt by tokens, counted with a rank's padding", by_tokens, places),
            "as batch_rebalance counts": mean_waiting(f"{title}, as batch_rebalance counts", by_theirs, rebalanced),
        }
    return result


def padding(law):
    """The part of all places that is padding, and by what the largest batch exceeds the mean one, in an epoch of batches as windrow makes
    them, and of the same mean number of rows.
    """
    dataset, lengths = documents(law)
    most = 1000 if law == "speech" else 8192
    lengths, result = np.minimum(lengths, most), {}
    for budget, multiple in ((16 * most, 1), (64 * most, 64)):
        options = {"max_tokens": budget, "multiple": multiple, "drop_last": False, "seed": 1, "rank": 0, "world_size": 1}
        with wr.Loader(records(dataset, most), **options) as loader:
            shapes = [batch["input_ids"].shape for batch in loader]
        sizes = [rows * longest for rows, longest in shapes]
        assert max(sizes) <= budget and sum(rows for rows, _ in shapes) == len(lengths)
        n_rows = round(len(lengths) / len(shapes))

        def of_order(order):
            batches = [lengths[order[first : first + n_rows]] for first in range(0, len(order), n_rows)]
            return [len(batch) * int(batch.max()) for batch in batches]

        ways = {
            "random rows": of_order(np.random.default_rng(1).permutation(len(lengths))),
            "transformers, group_by_length": of_order(by_length(lengths.tolist(), n_rows)),
            "windrow, max_tokens": sizes,
        }
        title = f"{law}, max_tokens={budget:,}, multiple={multiple}: {n_rows} rows"
        print(f"\n(t) padding, {title}")
        result[title] = {}
        for name, of in ways.items():
            found = {"padding": 1 - float(lengths.sum()) / sum(of), "largest over mean": max(of) * len(of) / sum(of)}
            result[title][name] = found
            print(f"  {name:<44} {100 * found['padding']:>8.2f} %   the largest batch is {found['largest over mean']:.2f} of the mean")
        result[title]["mean size of the budget"] = sum(sizes) / len(sizes) / budget
        print(f"  a batch has {100 * result[title]['mean size of the budget']:.0f} % of max_tokens in the mean", flush=True)
    return result


def costs(passes, seconds, karmarkar_karp):
    """Milliseconds that a step takes. What dealing adds to a loader is the difference of two loaders, one thread each."""
    ranks, n_rows = 64, 8
    (web, _), (speech, lengths) = documents("web"), documents("speech")
    cases = {
        "web, packs of 8,192": (web.pack(8192, documents=True, labels=None), packs(web, 8192), of_packs, "attention", attention),
        "speech": (records(speech, 1000), records(speech, 1000), of_records, "tokens", tokens),
    }
    lengths, result = lengths.tolist(), {}

    def ms(measure):
        """Of a function that returns how many steps it was."""
        begun = time.perf_counter()
        n_steps = measure()
        return 1000 * (time.perf_counter() - begun) / n_steps

    for name, (view, only_lengths, read, balance, cost) in cases.items():
        ((rows,),) = delivered(only_lengths, 1, read, global_batch_size=ranks * n_rows)[:1]
        costs_of_rows = [cost(row) for row in rows]

        def loader(view=view, **options):
            place = {"global_batch_size": ranks * n_rows, "rank": 0, "world_size": ranks, "seed": 1, "num_threads": 1}
            with wr.Loader(view, **place, **options) as loader:
                return 1000 / per_second(loader.stream(), seconds, 1)

        measures = {"windrow, in order": loader, "windrow, balance": lambda balance=balance: loader(balance=balance)}
        if karmarkar_karp:
            measures[VERL] = lambda rows=costs_of_rows: ms(lambda: len([karmarkar_karp(rows, ranks, equal_size=True)]))
        if name == "speech":
            few = lengths[: 4 * ranks * n_rows]
            options = {"max_tokens": 525 * ranks * n_rows, "multiple": ranks, "rank": 0, "world_size": ranks}
            measures |= {
                "windrow, max_tokens: the order of an epoch": lambda: ms(lambda: len(wr.Loader(view, **options))),
                "transformers, group_by_length": lambda: ms(lambda: len(by_length(lengths, n_rows)) // (ranks * n_rows)),
                "transformers, batch_rebalance": lambda: ms(lambda: len([*AllRanks(few, ranks * n_rows, ranks, 1, seed=1)])),
            }
        found = in_turns(passes, **measures)
        found["windrow, what balance adds"] = found["windrow, balance"] - found["windrow, in order"]
        print(f"\n(t) ms a step, {name}, {ranks} ranks x {n_rows} rows, what one rank does")
        for measure, value in found.items():
            print(f"  {measure:<44} {value:>8.3f} ms", flush=True)
        result[name] = found
    return result


def check_resumed():
    """That a run on 8, 4, 2 and 8 ranks, resumed at each change, has the steps of one rank, with a budget and dealt by cost."""
    path = DATA / "balance-numbered"
    if not path.exists():
        lengths = np.random.default_rng(1).integers(5, 500, 1500)
        wr.write(path, (np.full(n, number, np.int32) for number, n in enumerate(lengths)), to="shards", fsync=False)
    view = wr.open(path).records(512, pad="longest", labels=None)

    def loaders(world):
        options = {"max_tokens": 4096, "multiple": 8, "balance": "attention", "seed": 5, "epochs": 2}
        return [wr.Loader(view, rank=rank, world_size=world, **options) for rank in range(world)]

    def numbers(batch):
        return batch["input_ids"][:, 0].tolist()

    expected = [numbers(batch) for batch in loaders(1)[0].stream()]
    found, state, moved = [], None, False
    for world, n_steps in ((8, 7), (4, 23), (2, 40), (8, len(expected))):
        ranks = loaders(world)
        for rank in ranks:
            if state:
                rank.load_state_dict(state)
        for _, batches in zip(range(n_steps), zip(*(rank.stream() for rank in ranks), strict=True), strict=False):
            rows = [numbers(batch) for batch in batches]
            assert len({len(of_rank) for of_rank in rows}) == 1
            moved |= sum(rows, []) != expected[len(found)]
            found.append(sorted(sum(rows, [])))
            state = ranks[0].state_dict()
            assert all(rank.state_dict() == state for rank in ranks)
    assert found == [sorted(rows) for rows in expected] and moved


def bench_t(passes, seconds):
    check_resumed()
    karmarkar_karp = verls()
    return {
        "waiting, packs": waiting_of_packs(karmarkar_karp),
        "waiting, rows": waiting_of_rows(karmarkar_karp),
        "padding": {law: padding(law) for law in (*LOGNORMAL, "speech", "text")},
        "ms a step": costs(passes, seconds, karmarkar_karp),
    }
