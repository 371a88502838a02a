"""Arrow: golden cases of pyarrow and datasets, and damage."""

import json
from pathlib import Path

import pytest

import windrow as wr
from foreign_cases import same, value

GOLDEN = Path(__file__).parents[2] / "testdata" / "golden" / "6_foreign" / "arrow"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/case.json"))


def test_there_are_cases():
    assert len(CASES) >= 20


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    case = json.loads((GOLDEN / name / "case.json").read_text())
    path = GOLDEN / name / case["open"]
    if case["records"] == "error":
        with pytest.raises(wr.WindrowError):
            ds = wr.open(path, **case["options"])
            assert case["stage"] == "read"
            list(ds)
        return
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    ds = wr.open(path, **case["options"])
    assert ds.format == "arrow"
    assert same(list(ds), value(expected["records"]))
    for i, extras in enumerate(expected.get("extras", [])):
        assert {k: v for k, v in value(extras).items() if not same(v, ds.extras(i).get(k))} == {}
