"""windrow beside its peers and beside the machine's limit, in one run.

    make bench                       # everything, about ten minutes
    python benches/run.py a c        # some of it

Each figure is the median of several passes taken in turns, so that a noisy machine hits all alike; what is printed is
the ratio. Results are kept in benches/runs/<date>-<machine>.json.

a  shuffled token batches     b  indexing JSONL          c  JSON records at random
d  tokenise and pack          e  open, first batch, resume      f  memory
g  windows of time series, scaled     h  ten million series
i  documents in raw tokens     j  flat-tokens in zarr, four layouts
k  seqax's loader             l  audio codes with prompts and masks
m  writing token streams    n  samples into codes
o  what other loaders wrote
p  token IDs in a slow object store
q  packs of documents     r  a mixture of 100 parts in 10 phases
s  documents in a new order in every epoch
t  batches of equal cost: waiting and padding
u  JPEGs through a function
w  a mixture of 35 domains on one rank of 64
x  chosen records: a comparison, a mask, batches of them
"""

import argparse
import datetime
import json
import os
import pathlib
import platform

import balance
import chosen
import codec
import codes
import documents
import domains
import far
import flat_tokens
import formats
import mixtures
import opening
import pictures
import records
import reshuffle
import series
import text
import tokens
import windrow as wr
import writing
from measure import DATA

HERE = pathlib.Path(__file__).resolve().parent
QUESTIONS = {
    "a": tokens.bench_a,
    "b": records.bench_b,
    "c": records.bench_c,
    "d": text.bench_d,
    "e": opening.bench_e,
    "f": opening.bench_f,
    "g": series.bench_g,
    "h": series.bench_h,
    "i": documents.bench_i,
    "j": flat_tokens.bench_j,
    "k": flat_tokens.bench_k,
    "l": codes.bench_l,
    "m": writing.bench_m,
    "n": codec.bench_n,
    "o": formats.bench_o,
    "p": far.bench_p,
    "q": mixtures.bench_q,
    "r": mixtures.bench_r,
    "s": reshuffle.bench_s,
    "t": balance.bench_t,
    "u": pictures.bench_u,
    "w": domains.bench_w,
    "x": chosen.bench_x,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", choices=[*QUESTIONS, []], metavar="a…x")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    args = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    run = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "windrow": wr.__version__,
        "python": platform.python_version(),
        "passes": args.passes,
    }
    for letter in args.which or QUESTIONS:
        run[letter] = QUESTIONS[letter](args.passes, args.seconds)
    runs = HERE / "runs"
    runs.mkdir(exist_ok=True)
    name = f"{run['date']}-{platform.machine()}-{os.cpu_count()}cores-{''.join(args.which) or 'all'}.json"
    (runs / name).write_text(json.dumps(run, indent=2) + "\n")
    print(f"\nkept in benches/runs/{name}")


if __name__ == "__main__":
    main()
