"""The figures of docs/sound.md: windrow's samples beside ffmpeg's, decoded and at another rate.

    cargo build --release -p windrow-audio --example samples
    python compare.py ../../target/release/examples/samples        # needs numpy, and ffmpeg with soxr
"""

import subprocess
import sys

import numpy as np

from make import HERE, decoded, ffmpeg


def windrow(clip, channels, *rate):
    raw = subprocess.run([sys.argv[1], clip, *map(str, rate)], check=True, capture_output=True).stdout
    return np.frombuffer(raw, "<f4").reshape(channels, -1)


def snr_db(wanted, found):
    noise = np.sum((wanted.astype("f8") - found) ** 2)
    return "equal" if noise == 0 else f"{10 * np.log10(np.sum(wanted.astype('f8') ** 2) / noise):.0f} dB"


def ffmpegs(clip, channels, rate, resampler):
    """Decoded and resampled by ffmpeg alone."""
    raw = ffmpeg("-i", str(clip), "-af", f"aresample={rate}:resampler={resampler}", "-f", "f32le", "-")
    return np.frombuffer(raw, "<f4").reshape(-1, channels).T


def overlap(a, b, margin=0):
    n = min(a.shape[1], b.shape[1])
    inside = slice(n // 50 * margin, n - n // 50 * margin)
    return a[:, inside], b[:, inside]


def main():
    for clip in sorted(HERE.glob("*.*")):
        if clip.suffix not in (".wav", ".flac", ".mp3", ".m4a", ".ogg") or "opus" in clip.name:
            continue
        rate, theirs = decoded(clip)
        channels = len(theirs)
        ours = windrow(clip, channels)
        line = f"{clip.name:30} {rate:5} Hz {ours.shape[1]:6} samples (ffmpeg {theirs.shape[1]}): {snr_db(*overlap(theirs, ours))}"
        for to in {44_100, 16_000} - {rate}:
            here = windrow(clip, channels, to)
            line += f"; to {to}:"
            for resampler in ("soxr:precision=28", "swr"):
                there = ffmpegs(clip, channels, to, resampler)
                # The ends are left out: they are extrapolated, each in its own way.
                line += f" {snr_db(*overlap(there, here, margin=1))} of {resampler.split(':')[0]}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
