"""n: samples into codes, beside descript-audio-codec in torch."""

import subprocess
import sys
import time

import numpy as np
from measure import DATA, ROOT, in_turns, table

PROGRAM = ROOT / "target" / "release" / "examples" / "codes"
SECONDS = 6
# Multiply-adds for each sample of the published model's encoder: of its residual units, of what goes down, of its last one.
PRODUCTS = 7 * 64 + sum(
    (3 * 8 * dim * dim + 4 * dim * dim) / hop for dim, hop in [(64, 1), (128, 2), (256, 8), (512, 64)]
) + 3 * 1024 * 1024 / 512


class Windrow:
    """A codec in a process of its own, which says how long it took."""

    def __init__(self, weights, threads):
        command = [PROGRAM, weights, str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def encode(self, samples):
        print("encode", samples, DATA / "codes.u16", file=self.process.stdin, flush=True)
        took = float(self.process.stdout.readline())
        self.process.stdout.readline()
        return took


def bench_n(passes, seconds):
    import torch

    sys.path.append(str(ROOT / "python" / "tests"))
    import dac_model

    model = dac_model.make(0)
    rate = model.sample_rate
    weights, clip = DATA / "dac.pth", DATA / "clip.f32"
    model.save(weights, package=False)
    samples = (np.random.default_rng(0).standard_normal(SECONDS * rate) * 0.1).astype(np.float32)
    samples.tofile(clip)

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
        codec = Windrow(weights, threads)
        name = f"{threads} threads" if threads > 1 else "1 thread"
        measured = in_turns(
            passes,
            **{
                f"descript-audio-codec, {name}": of_torch,
                f"windrow, {name}": lambda codec=codec: SECONDS / codec.encode(clip),
                f"matrix products alone, {name}": products,
            },
        )
        codec.process.stdin.close()
        codec.process.wait()
        # Rounded figures are printed: thousandths of a second of sound.
        title = f"n: milliseconds of 44.1 kHz encoded in a second, published size, {name}"
        base = f"descript-audio-codec, {name}"
        found |= table(title, {key: 1_000 * value for key, value in measured.items()}, base)
    return found
