"""Writes the data of the recorded states: `python make.py` in this folder. Arithmetic, no source but this file."""

import json
import struct

with open("tokens.bin", "wb") as file:
    for i in range(3000):
        file.write(struct.pack("<H", (i * 7919 + i * i % 251) % 50_000))

with open("series.jsonl", "w") as file:
    for i in range(12):
        values = [round((j * (i + 3) % 29) / 4 - i, 2) for j in range(20 + 13 * i)]
        file.write(json.dumps({"sequence": values, "name": f"s{i}"}) + "\n")

with open("codes.jsonl", "w") as file:
    for i in range(6):
        frames = [[(t * 31 + c * 7 + i) % 1024 for c in range(4)] for t in range(9 + 4 * i)]
        file.write(json.dumps({"sequence": frames, "text": f"track {i}"}) + "\n")
