"""Data that the packages themselves write now, read the same: GluonTS, dolma and LitData."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import windrow as wr
from foreign_cases import with_loaders

GLUONTS = """
import json, sys
from pathlib import Path
import numpy as np, pandas as pd
from gluonts.dataset.arrow import ArrowWriter, ParquetWriter
from gluonts.dataset.jsonl import JsonLinesWriter

folder = Path(sys.argv[1])
one = [
    {"start": pd.Period("2024-01-01", "D"), "target": np.arange(5 + i, dtype=np.float32) / 3, "item_id": f"T{i}"}
    for i in range(4)
]
several = [
    {"start": pd.Period("2024-01-01 05:00", "h"), "target": np.arange(12 + 3 * i, dtype=np.float32).reshape(3, -1)}
    for i in range(3)
]
for name, rows in {"one": one, "several": several}.items():
    JsonLinesWriter(use_gzip=False).write_to_file(rows, folder / f"{name}.json")
    JsonLinesWriter(use_gzip=True).write_to_file(rows, folder / f"{name}.json.gz")
    ArrowWriter().write_to_file(rows, folder / f"{name}.feather")
    ArrowWriter(stream=True).write_to_file(rows, folder / f"{name}.arrow")
    ParquetWriter().write_to_file(rows, folder / f"{name}.parquet")
print(json.dumps({name: [row["target"].tolist() for row in rows] for name, rows in
    {"one": one, "several": several}.items()}))
"""


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list]]:
    folder = tmp_path_factory.mktemp("gluonts")
    return folder, with_loaders(GLUONTS, folder)


@pytest.mark.parametrize("suffix", ["json", "json.gz", "feather", "arrow", "parquet"])
def test_gluonts_series_are_read_the_same(series: tuple[Path, dict[str, list]], suffix: str) -> None:
    folder, written = series
    for name, targets in written.items():
        ds = wr.open(folder / f"{name}.{suffix}", column="target")
        assert len(ds) == len(targets)
        for record, target in zip(ds, targets, strict=True):
            # Channels are first in GluonTS, and last in a record.
            np.testing.assert_array_equal(record, np.array(target, np.float32).T)
        assert "2024-01-01" in str(ds.extras(0)["start"])


DOLMA = """
import json, sys, types
from pathlib import Path
import numpy as np

# The modules of the writer as they are, without the packages above them, which import every tagger and its models.
home = next(Path(p) / "dolma" for p in sys.path if (Path(p) / "dolma" / "tokenizer").is_dir())
for name in ("dolma", "dolma.core", "dolma.tokenizer"):
    module = types.ModuleType(name)
    module.__path__ = [str(home.joinpath(*name.split(".")[1:]))]
    sys.modules[name] = module
from dolma.tokenizer.data_types import TokenizerOutput
from dolma.tokenizer.memmap_writer import MemmapWriter

folder, documents = Path(sys.argv[1]), []
for part, dtype in enumerate(("uint16", "uint32")):
    (folder / dtype).mkdir()
    with MemmapWriter(str(folder / dtype / f"part-{part}-00000.npy"), dtype=np.dtype(dtype), max_tokens=10_000) as writer:
        for i in range(20):
            tokens = [i + 1000 * part, *range(i), 2]
            writer.write(TokenizerOutput.from_tokens(id=f"d,{i}", src="a.jsonl.gz", loc=i + 1, tokens=tokens))
            documents.append(tokens)
print(json.dumps(documents))
"""


def test_dolma_tokens_are_read_the_same(tmp_path: Path) -> None:
    documents = with_loaders(DOLMA, tmp_path)
    for dtype, expected in (("uint16", documents[:20]), ("uint32", documents[20:])):
        ds = wr.open(tmp_path / dtype)
        assert (ds.format, ds[0].dtype) == ("olmo", dtype)
        assert [record.tolist() for record in ds] == expected
        assert ds.extras(3) == {"id": "d,3", "src": "a.jsonl.gz", "loc": 4}


LITDATA = """
import json, sys
from unittest.mock import MagicMock
# Stands in for the clients of clouds, which the package imports and the test does not use.
for name in ("boto3", "botocore", "botocore.credentials", "botocore.utils"):
    sys.modules[name] = MagicMock()
import numpy as np, torch
from litdata import optimize
from litdata.streaming.item_loader import TokensLoader

def tokens(i):
    return torch.arange(i, i + 50 + i % 7, dtype=torch.int32)

def rows(i):
    return {"id": i, "x": np.arange(i, i + 4, dtype=np.float32), "pair": [i / 2, f"text {i}"]}

if __name__ == "__main__":
    folder, inputs = sys.argv[1], list(range(40))
    optimize(fn=tokens, inputs=inputs, output_dir=f"{folder}/tokens", chunk_size=800, item_loader=TokensLoader(),
        num_workers=1)
    optimize(fn=rows, inputs=inputs, output_dir=f"{folder}/rows", chunk_bytes=1000, num_workers=1)
    print("\\n" + json.dumps(40))
"""


def test_litdata_items_are_read_the_same(tmp_path: Path) -> None:
    script = tmp_path / "write.py"
    script.write_text(LITDATA)
    # Its workers import the script, so it is a file.
    run = f"import runpy, sys; sys.argv = ['write.py', {str(tmp_path)!r}]; runpy.run_path({str(script)!r}, run_name='__main__')"
    assert with_loaders(run) == 40
    ds = wr.open(tmp_path / "tokens")
    assert len(ds) == 40 and len(list((tmp_path / "tokens").glob("chunk-*"))) > 1
    assert all((record == np.arange(i, i + 50 + i % 7)).all() for i, record in enumerate(ds))
    assert ds[0].dtype == "int32"
    rows = wr.open(tmp_path / "rows")
    assert len(rows) == 40 and len(list((tmp_path / "rows").glob("chunk-*"))) > 1
    for i, row in enumerate(rows):
        assert (row["id"], row["pair"]) == (i, [i / 2, f"text {i}"])
        assert row["x"].dtype == "float32" and row["x"].tolist() == list(range(i, i + 4))
