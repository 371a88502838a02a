"""n: samples into codes, beside descript-audio-codec in torch."""

import sys
import time

import numpy as np
import windrow as wr
from measure import DATA, ROOT, in_turns, table

SECONDS = 6
# Multiply-adds for each sample of the published model's encoder: of its residual units, of what goes down, of its last one.
PRODUCTS = 7 * 64 + sum(
    (3 * 8 * dim * dim + 4 * dim * dim) / hop for dim, hop in [(64, 1), (128, 2), (256, 8), (512, 64)]
) + 3 * 1024 * 1024 / 512


def bench_n(passes, seconds):
    import torch

    sys.path.append(str(ROOT / "python" / "tests"))
    import dac_model

    model = dac_model.make(0)
    rate = model.sample_rate
    weights = DATA / "dac.pth"
    model.save(weights, package=False)
    samples = (np.random.default_rng(0).standard_normal(SECONDS * rate) * 0.1).astype(np.float32)

    def took(run):
        start = time.perf_counter()
        run()
        return SECONDS / (time.perf_counter() - start)

    def of_torch():
        return took(lambda: dac_model.encode(model, samples))

    def products():
        # As many multiply-adds as matrices of a comfortable size, by torch.
        a, b = torch.ones(512, 3_584), torch.ones(3_584, 4_096)
        share = 512 * 3_584 * 4_096 / (PRODUCTS * rate * SECONDS)
        rounds = 3
        return took(lambda: [a @ b for _ in range(rounds)]) * rounds * share

    found = {}
    for threads in (2, 1):
        torch.set_num_threads(threads)
        codec = wr.Codec(weights, num_threads=threads)
        name = f"{threads} threads" if threads > 1 else "1 thread"
        measured = in_turns(
            passes,
            **{
                f"descript-audio-codec, {name}": of_torch,
                f"windrow, {name}": lambda codec=codec: took(lambda: codec.encode(samples)),
                f"matrix products alone, {name}": products,
            },
        )
        # Rounded figures are printed: thousandths of a second of sound.
        title = f"n: milliseconds of 44.1 kHz encoded in a second, published size, {name}"
        base = f"descript-audio-codec, {name}"
        found |= table(title, {key: 1_000 * value for key, value in measured.items()}, base)
    return found
