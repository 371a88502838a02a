"""Preparation in tasks: on this machine, or on many by Ray, dask, Slurm or whatever runs a function.

>>> import windrow as wr, tempfile, pathlib
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> _ = (folder / "a.jsonl").write_text('{"text": "one"}\\n{"text": "two"}\\n')
>>> job = wr.prep.plan("tokenize", [folder / "a.jsonl"], folder / "tokens", tokenizer="bytes", task_bytes=16)
>>> wr.prep.status(job)["tasks"]
2
>>> wr.prep.run(job)["records"]
2
>>> wr.open(folder / "tokens")[1].tolist()
[116, 119, 111]
"""

from .job import clean, join, merge, plan, run_task, status
from .running import run

__all__ = ["clean", "join", "merge", "plan", "run", "run_task", "status"]
