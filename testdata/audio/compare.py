"""The figures of docs/audio.md: windrow's samples beside ffmpeg's, and its change of rate beside soxr's.

    cargo build --release -p windrow-audio --example samples
    python compare.py ../../target/release/examples/samples        # needs ffmpeg, numpy, soxr
"""

import subprocess
import sys

import numpy as np
import soxr

from make import HERE, decoded


def windrow(clip, channels, *rate):
    raw = subprocess.run([sys.argv[1], clip, *map(str, rate)], check=True, capture_output=True).stdout
    return np.frombuffer(raw, "<f4").reshape(channels, -1)


def snr_db(wanted, found):
    noise = np.sum((wanted.astype("f8") - found) ** 2)
    return "equal" if noise == 0 else f"{10 * np.log10(np.sum(wanted.astype('f8') ** 2) / noise):.0f} dB"


def main():
    for clip in sorted(HERE.glob("*.*")):
        if clip.suffix not in (".wav", ".flac", ".mp3", ".m4a", ".ogg") or "opus" in clip.name:
            continue
        rate, theirs = decoded(clip)
        ours = windrow(clip, len(theirs))
        line = f"{clip.name:32} {rate} Hz, {ours.shape[1]} samples (ffmpeg {theirs.shape[1]}): {snr_db(theirs[:, : ours.shape[1]], ours)}"
        for to in (44_100, 16_000):
            if to != rate:
                there = soxr.resample(ours.T.astype("f8"), rate, to, quality="VHQ").T
                here = windrow(clip, len(theirs), to)
                n = min(there.shape[1], here.shape[1])
                # The ends are left out: they are extrapolated, each in its own way.
                inside = slice(n // 50, n - n // 50)
                line += f"; to {to}: {snr_db(there[:, inside], here[:, inside])} of soxr VHQ, {here.shape[1]} samples"
        print(line, flush=True)


if __name__ == "__main__":
    main()
