"""Series as text, CSV, GluonTS's JSON Lines and Monash's .tsf: golden cases, read beside their packages, and damage."""

import csv
import gzip
import json
import logging
import shutil

import numpy as np
import pytest

import windrow as wr
import foreign_cases
from foreign_cases import value

GOLDEN = foreign_cases.GOLDEN / "series"
CASES = foreign_cases.names("series")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WINDROW_CACHE", str(tmp_path / "cache"))


def test_there_are_cases():
    assert len(CASES) >= 21


@pytest.mark.parametrize("name", CASES)
def test_golden(name):
    case = json.loads((GOLDEN / name / "case.json").read_text())
    path = GOLDEN / name / case["open"]
    if case["records"] == "error":
        with pytest.raises(wr.CorruptError, match=path.name):
            wr.open(path, **case["options"])
        return
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    ds = wr.open(path, **case["options"])
    wanted = value(expected["records"])
    assert len(ds) == len(wanted)
    for found, want in zip(ds, wanted):
        # A float32 is as good as the number of the original.
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, want.astype(np.float32))
    for i, extras in enumerate(expected["extras"]):
        assert {key: ds.extras(i).get(key) for key in extras} == extras


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("broken")])
def test_good_ones_verify(name, tmp_path):
    case = json.loads((GOLDEN / name / "case.json").read_text())
    shutil.copytree(GOLDEN / name, tmp_path / "copy")
    for made in ("case.json", "expected.json"):
        (tmp_path / "copy" / made).unlink()
    assert wr.verify(tmp_path / "copy")["problems"] == []
    assert wr.open(tmp_path / "copy", **case["options"]).format in ("collection", "arrow", "parquet")


def refused(path, data, match, error=wr.CorruptError, **options):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(error, match=match) as found:
        wr.open(path, **options)
    assert str(path) in str(found.value)
    return found.value


@pytest.mark.parametrize(
    ("text", "match", "line"),
    [
        ("a,b\n1,2\n3\n", "expected 2 cells in a line, found 1", 3),
        ("a,b\n1,2\n3,4,5\n", "expected 2 cells in a line, found more", 3),
        ("a,b\r\n\r\n1,2\r\n3\r\n", "expected 2 cells in a line, found 1", 4),
        ("a,b\r1,2\r3\r", "expected 2 cells in a line, found 1", 3),
        ('a,b\n"x\ny",2\n3\n', "expected 2 cells in a line, found 1", 4),
        ('a,b\n1,2\n3,"4\n5,6\n', "a quote is open", 3),
        ('a,b\n1,2\n3,"', "a quote is open", 3),
        ('a,"b\n1,2\n', "a quote is open", 1),
        ("", "found 0 bytes", None),
        ("\n\n", "expected names of columns", 3),
        ("a,b\n", "expected lines of numbers", None),
        ("a,b", "expected lines of numbers", None),
        ("a,b\nx,y\n", "text in every column: a, b", None),
        ("a,b\n1,x\ny,2\n", "text in every column: a, b", None),
        (b"a,\xff\n1,2\n", "expected UTF-8", 1),
        (b"t,a\n\xff,2\n", "expected UTF-8", 2),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16", None),
        ("a,b\n1,2\n".encode("utf-32"), "UTF-32", None),
    ],
)
def test_tables_that_are_refused(tmp_path, text, match, line):
    error = refused(tmp_path / "a.csv", text, match)
    assert error.field == (None if line is None else f"line {line}")


def test_columns_that_are_refused(tmp_path):
    path, text = tmp_path / "a.csv", "date,a,b,b\nx,1,2,3\ny,two,4,5\n"
    error = refused(path, text, r"column \"a\" \(cell 2\), found \"two\"", column="a")
    assert (error.field, error.byte) == ("line 3", text.index("two"))
    refused(path, text, "\"date\"", column="date")
    refused(path, text, "\"a\"", columns=["a"])
    refused(path, text, "no column is called \"c\"", wr.ConfigError, column="c")
    refused(path, text, "no column is called \"c\"", wr.ConfigError, columns=["a", "c"])
    refused(path, text, "several columns \"b\"", wr.ConfigError, column="b")
    with pytest.raises(wr.ConfigError, match="names no column"):
        wr.open(path, columns=[])
    with pytest.raises(wr.ConfigError, match="dtype was given"):
        wr.open(path, dtype="int64")
    assert wr.open(path)[0].tolist() == [[2, 3], [4, 5]]


def test_cells_are_numbers_gaps_or_text(tmp_path, caplog):
    path = tmp_path / "a.csv"
    words = ["1", " 2.5 ", "-3e2", "+.5", "", "NaN", "nan", "NA", "null", "None", "inf", "-Infinity", "1e400", '"7"']
    path.write_text("x,only,late\n" + "".join(f"{word},1_000,{i if i < 9 else 'text'}\n" for i, word in enumerate(words)))
    nan, inf = np.nan, np.inf
    with caplog.at_level(logging.WARNING, "windrow"):
        ds = wr.open(path)
    np.testing.assert_array_equal(ds[0][:, 0], np.float32([1, 2.5, -300, 0.5] + [nan] * 6 + [inf, -inf, inf, 7]))
    # What looks like numbers for a while is left out, and that is said.
    assert ds[0].shape == (14, 1) and ds.extras(0) == {"columns": ["x"], "start": "1_000"}
    said = [record.getMessage() for record in caplog.records]
    assert any('"late" is left out: "text" in line 11' in line for line in said)
    assert any("1 numbers are beyond float32" in line for line in said)
    path.write_text("1,2\n3,4\n")
    caplog.clear()
    assert wr.open(path)[0].tolist() == [[3, 4]] and wr.open(path).extras(0) == {"columns": ["1", "2"]}
    assert "the first line holds numbers" in caplog.text


def test_start_is_that_of_the_first_column_of_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,late,date\n1,5,2020\n2,x,z\n")
    assert wr.open(path).extras(0) == {"columns": ["a"], "start": "5"}
    assert wr.open(path, column="a").extras(0) == {"columns": ["a"], "start": "5"}
    path.write_text("a,b\n1,\n2,\n")
    np.testing.assert_array_equal(wr.open(path)[0], np.float32([[1, np.nan], [2, np.nan]]))


def test_large_tables_are_exact(tmp_path):
    """More than what is read at a time, with a column that turns out to be text in the last line."""
    rng = np.random.default_rng(3)
    numbers = rng.standard_normal((40_000, 5)) * 10.0 ** rng.integers(-30, 30, (40_000, 5))
    rows = [[f"t{i}", *map(repr, map(float, row))] for i, row in enumerate(numbers)]
    rows[-1][3] = "text"
    for name, delimiter in (("a.csv", ","), ("a.tsv", "\t")):
        with open(tmp_path / name, "w", newline="") as file:
            csv.writer(file, delimiter=delimiter).writerows([["t", "a", "b", "c", "d", "e"], *rows])
        ds = wr.open(tmp_path / name)
        kept = numbers[:, [0, 1, 3, 4]]
        assert (ds[0] == kept.astype(np.float32)).all() and ds.extras(0)["columns"] == ["a", "b", "d", "e"]
        assert (wr.open(tmp_path / name, columns=["e", "a"])[0] == numbers[:, [4, 0]].astype(np.float32)).all()
        packed = tmp_path / f"z.{name}.gz"
        packed.write_bytes(gzip.compress((tmp_path / name).read_bytes()))
        assert (wr.open(packed)[0] == ds[0]).all()


def test_windows_and_resume(tmp_path):
    golden = GOLDEN / "csv_ett" / "data.csv"
    path = tmp_path / "data.csv"
    shutil.copy(golden, path)
    ds = wr.open(path)
    whole = np.asarray(ds[0])
    view = ds.windows(8, stride=3)
    assert view[1]["input_ids"].tolist() == whole[3:11].tolist()
    scaled = ds.windows(8, scaler="zero")[0]["input_ids"]
    exact = np.array([row[1:] for row in list(csv.reader(golden.open()))[1:]], dtype=np.float64)
    np.testing.assert_allclose(scaled, ((exact - exact.mean()) / exact.std())[:8], rtol=2e-5, atol=1e-6)
    loader, other = (wr.Loader(view, batch_size=2, seed=5) for _ in range(2))
    for _ in range(3):
        assert (next(loader)["input_ids"] == next(other)["input_ids"]).all()
    state = loader.state_dict()
    again = wr.Loader(wr.open(path).windows(8, stride=3), batch_size=2, seed=5)
    again.load_state_dict(state)
    assert (next(again)["input_ids"] == next(loader)["input_ids"]).all()
    # Another column of the same length is other data, and so is a changed file, whether its size stays or not.
    for options in ({"column": "HUFL"}, {"column": "HULL"}):
        ds = wr.open(path, **options)
        state = wr.Loader(ds.windows(8), batch_size=2, seed=5).state_dict()
        for column in ("HUFL", "HULL", "MUFL"):
            loader = wr.Loader(wr.open(path, column=column).windows(8), batch_size=2, seed=5)
            if column == options["column"]:
                loader.load_state_dict(state)
            else:
                with pytest.raises(wr.WindrowError):
                    loader.load_state_dict(state)
    path.write_bytes(path.read_bytes().replace(b"0.796", b"0.797"))
    changed = wr.open(path, column="HULL")
    assert wr.open(path, column="HUFL")[0][0] == np.float32(0.797)
    with pytest.raises(wr.WindrowError):
        wr.Loader(changed.windows(8), batch_size=2, seed=5).load_state_dict(state)


def test_a_folder_of_tables_is_several_records(tmp_path, caplog):
    folder = tmp_path / "d"
    folder.mkdir()
    for i in (1, 2, 10):
        (folder / f"part{i}.csv").write_text("t,a,b\n" + "".join(f"x{i},{i},{j}\n" for j in range(i)))
    ds = wr.open(folder)
    assert ds.format == "collection" and [record.shape for record in ds] == [(1, 2), (2, 2), (10, 2)]
    assert [record[0, 0] for record in wr.open(folder)] == [1, 2, 10]
    assert [record.tolist() for record in wr.open(folder, column="b")][:2] == [[0], [0, 1]]
    assert wr.open(folder, columns=["b", "a"])[1].tolist() == [[0, 2], [1, 2]]
    assert len(ds.windows(2)) == sum(len(wr.open(path).windows(2)) for path in folder.iterdir())
    # Tables beside other series describe those.
    np.save(folder / "x.npy", np.zeros((3, 2)))
    assert len(wr.open(folder)) == 3 and "3 tables beside the series are left out" in caplog.text
    with pytest.raises(wr.ConfigError, match="columns was given, but npy"):
        wr.open(folder, columns=["a"])
    for path in folder.iterdir():
        path.unlink()
    for name in ("train", "test"):
        (folder / f"{name}.csv").write_text(f"t,a,b\nx,1,{len(name)}\n")
    with pytest.raises(wr.ConfigError, match="several splits"):
        wr.open(folder)
    assert wr.open(folder, split="test")[0].tolist() == [[1, 4]]


def rows_of(n=3):
    return [{"start": f"2021-01-0{i + 1} 00:00", "target": [1.5, 2, i], "item_id": f"T{i}", "feat_static_cat": [i]} for i in range(n)]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_splits_of_gluonts(tmp_path):
    folder = tmp_path / "m4"
    for split, n in (("train", 2), ("test", 3)):
        (folder / split).mkdir(parents=True)
        (folder / split / "data.json").write_text(lines(rows_of(n)))
    (folder / "metadata").mkdir()
    (folder / "metadata" / "metadata.json").write_text(json.dumps({"freq": "H", "prediction_length": 24}))
    with pytest.raises(wr.ConfigError, match="several splits"):
        wr.open(folder)
    for split, n in (("train", 2), ("test", 3)):
        ds = wr.open(folder, split=split)
        assert len(ds) == n and ds[1].tolist() == [1.5, 2, 1] and ds.extras(1)["item_id"] == "T1"
        assert wr.open(folder / split / "data.json").format == "gluonts"
    assert wr.open(folder / "train").windows(2)[0]["input_ids"].tolist() == [1.5, 2]


def test_only_gluonts_is_gluonts(tmp_path):
    path = tmp_path / "data.json"
    for text, form in (
        (lines(rows_of()), "gluonts"),
        (lines(rows_of(1)), "gluonts"),
        (lines(rows_of(1)).rstrip(), "gluonts"),
        ("\ufeff" + lines(rows_of()), "gluonts"),
        ('{"target": [], "start": "2021"}\n{"target": [1], "start": "2021"}\n', "gluonts"),
        ('{"start": "2021", "target": ["Nan", "Infinity"]}\n', "gluonts"),
        (json.dumps([{"start": "2021", "target": [1.5]}]), "series-json"),
        ('{"target": [1.5]}\n{"target": [2]}\n', "series-jsonl"),
        ('{"sequence": [1.5], "start": "2021"}\n{"sequence": [2]}\n', "series-jsonl"),
        ('{"start": "a", "target": "b"}\n{"start": "c", "target": "d"}\n', "jsonl"),
        ('{"start": 1, "target": ["b"]}\n{"start": 2, "target": ["d"]}\n', "jsonl"),
        ('{"start": "a", "target": ["b"]}\n{"start": "c", "target": []}\n', "jsonl"),
    ):
        path.write_text(text)
        assert wr.open(path).format == form, text
        (tmp_path / "z.json.gz").write_bytes(gzip.compress(text.encode()))
        assert wr.open(tmp_path / "z.json.gz").format == form, text
    # What is called JSON Lines keeps its format, and may be said to be this one.
    path = tmp_path / "a.jsonl"
    path.write_text(lines([{"start": "2021", "target": [1, 2]}]))
    assert wr.open(path).format == "series-jsonl"
    ds = wr.open(path, format="gluonts")
    assert ds.format == "gluonts" and ds[0].dtype == np.float32


def test_rows_of_gluonts(tmp_path):
    path = tmp_path / "data.json"
    nan, inf = np.nan, np.inf
    target = [["Nan", 1, "Infinity"], [None, "-Infinity", "NaN"]]
    path.write_text(lines([{"start": "2021", "target": target, "feat_dynamic_real": [[1, 2, 3]]}]))
    ds = wr.open(path)
    np.testing.assert_array_equal(ds[0], np.float32([[nan, nan], [1, -inf], [inf, nan]]))
    assert wr.open(path, column="feat_dynamic_real")[0].tolist() == [[1], [2], [3]]
    assert ds.extras(0) == {"start": "2021", "feat_dynamic_real": [[1, 2, 3]]}
    for text, match in (
        ('{"start": "2021", "target": [1, 2]}\n{"start": "2021", "target": [1', "expected"),
        ('{"start": "2021", "target": [1, 2]}\n{"start": "2021"}\n', "`target`"),
        ('{"start": "2021", "target": [1, 2]}\n{"target": [1]}\n', "the key `start`"),
        ('{"start": "2021", "target": [1, 2]}\n[1, 2]\n', "expected an object"),
        ('{"start": "2021", "target": [1, 2]}\n{"start": "2021", "target": [[1], [2]]}\n', "a record"),
        ('{"start": "2021", "target": [1, 2]}\n{"start": "2021", "target": [1, "two"]}\n', "found a string"),
        ('{"start": "2021", "target": [1, 2]}\n{"start": "2021", "target": [[1], [2, 3]]}\n', "row 1"),
        ('{"start": "2021", "target": [1, 2]}\n\n{"start": "2021", "target": [1]}\n', "blank line"),
    ):
        error = refused(path, text, match)
        assert error.field == "line 2" and error.record == 1, text
    big = 2**70
    path.write_text(lines([{"start": "2021", "target": [big, 1]}]))
    assert wr.open(path)[0].tolist() == [float(big), 1]


HEAD = "# made up\n@relation x\n@attribute name string\n@attribute n numeric\n@attribute from date\n@frequency daily\n@horizon 8\n@missing true\n@equallength false\n@data\n"


@pytest.mark.parametrize(
    ("text", "match", "line"),
    [
        (HEAD + "a:1:2001-01-01 00-00-00:1,2\nb:1:1,2\n", "expected 3 attributes and values", 12),
        (HEAD + "a:1:2001-01-01 00-00-00:x:1,2\n", "expected 3 attributes and values.* found more", 11),
        (HEAD + "a:1:2001-01-01 00-00-00\n", "expected 3 attributes and values.* found 2", 11),
        (HEAD + "a:1:2001-01-01 00-00-00:\n", "expected a number as value 0, found nothing", 11),
        (HEAD + "a:1:2001-01-01 00-00-00:1,,2\n", "expected a number as value 1, found nothing", 11),
        (HEAD + "a:1:2001-01-01 00-00-00:1,2,\n", "expected a number as value 2, found nothing", 11),
        (HEAD + "\n# a: b\na:1:2001-01-01 00-00-00:1,two\n", "value 1, found \"two\"", 13),
        (HEAD + "a:x:2001-01-01 00-00-00:1\n", "expected a number as \"n\", found \"x\"", 11),
        (HEAD + "a:1:2001-02-30 00-00-00:1\n", "expected a date.* as \"from\"", 11),
        (HEAD, "expected series behind `@data`", 11),
        (HEAD.replace("@data\n", ""), "expected `@data`", 10),
        ("@attribute a\n@data\n1\n", "expected @attribute NAME TYPE", 1),
        ("@attribute a integer\n@data\n1\n", "expected string, numeric or date", 1),
        ("@attribute a string\n@attribute a string\n@data\n1\n", "declared twice", 2),
        ("1,2,3\n", "expected a line that begins with `@`", 1),
        ("", "found 0 bytes", None),
    ],
)
def test_tsf_that_is_refused(tmp_path, text, match, line):
    error = refused(tmp_path / "a.tsf", text, match)
    assert error.field == (None if line is None else f"line {line}")


def test_tsf(tmp_path):
    path = tmp_path / "a.tsf"
    path.write_bytes((HEAD + "caf\xe9 :7:2001-01-02 03-04-05: 1 ,?,2.5e3\r\n\n# x:1\nb:1.5:2000-02-29 00-00-00:4").encode("latin-1"))
    ds = wr.open(path)
    np.testing.assert_array_equal(ds[0], np.float32([1, np.nan, 2500]))
    assert ds.extras(0) == {"name": "caf\xe9 ", "n": 7, "from": "2001-01-02T03:04:05"}
    assert ds[1].tolist() == [4] and ds.extras(1) == {"name": "b", "n": 1.5, "from": "2000-02-29T00:00:00"}
    with pytest.raises(wr.ConfigError, match="column was given, but tsf"):
        wr.open(path, column="n")
    path.write_text("@data\n1,2\n3\n")
    assert [record.tolist() for record in wr.open(path)] == [[1, 2], [3]] and wr.open(path).extras(0) == {}
    # A line that is longer than what is read at a time.
    numbers = np.random.default_rng(1).standard_normal(200_000)
    path.write_text(HEAD + "".join(f"{i}:{i}:2001-01-01 00-00-00:{','.join(map(repr, map(float, part)))}\n" for i, part in enumerate((numbers, numbers[:9]))))
    ds = wr.open(path)
    assert (ds[0] == numbers.astype(np.float32)).all() and (ds[1] == ds[0][:9]).all()
    assert [ds.length(i) for i in range(2)] == [200_000, 9]


def days(first, n, step=1):
    return [str(np.datetime64(first) + step * i) for i in range(n)]


def table(path, head, rows):
    path.write_text(head + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("head", ["unique_id,ds,y", "shop,ds,y", "ds,item_id,y", "y,ds,series_id"])
@pytest.mark.parametrize("ids", [("a", "b"), (1, 2)])
def test_a_long_table_is_a_series_of_each_id(tmp_path, head, ids):
    if ids == (1, 2) and "shop" in head:
        return
    rows = [(u, d, o + i % 3 + 0.5) for u, o, n in zip(ids, (0, 1000), (40, 25)) for i, d in enumerate(days("2024-01-01", n))]
    order = {"unique_id,ds,y": (0, 1, 2), "shop,ds,y": (0, 1, 2), "ds,item_id,y": (1, 0, 2), "y,ds,series_id": (2, 1, 0)}[head]
    ds = wr.open(table(tmp_path / "a.csv", head, [[row[i] for i in order] for row in rows]))
    assert [series.shape for series in ds] == [(40, 1), (25, 1)]
    assert ds[1][:2].ravel().tolist() == [1000.5, 1001.5]
    assert ds.extras(1) == {"item_id": ids[1], "columns": ["y"], "start": "2024-01-01", "freq": "D"}
    one = wr.open(tmp_path / "a.csv", column="y")
    assert [series.tolist() for series in one] == [series.ravel().tolist() for series in ds]
    for row in ds.windows(8, fields=["time_features", "item"]):
        assert row["input_ids"].max() < 100 or row["input_ids"].min() > 100
    assert wr.verify(tmp_path / "a.csv")["problems"] == []
    span = wr.trace(wr.Loader(ds.windows(8), batch_size=1, shuffle=False), step=4)
    assert str(tmp_path / "a.csv") in json.dumps(span, default=str)


def test_ids_count_their_times_or_have_none(tmp_path):
    ds = wr.open(table(tmp_path / "a.csv", "unique_id,ds,y", [("a", 5, 1), ("a", 6, 2), ("b", 1, 3), ("b", 2, 4)]))
    assert [series.ravel().tolist() for series in ds] == [[1, 2], [3, 4]]
    assert ds.extras(0) == {"item_id": "a", "columns": ["y"], "start": 5}
    refused(tmp_path / "b.csv", "unique_id,ds,y\na,1,1\na,2,1\na,3,1\na,5,1\n", "5 comes after 3, expected 4", wr.ConfigError)
    ds = wr.open(table(tmp_path / "c.csv", "shop,y,z", [("a", 1, 2), ("a", 2, 3), ("b", 3, 4)]))
    assert [series.shape for series in ds] == [(2, 2), (1, 2)] and ds.extras(1) == {"item_id": "b", "columns": ["y", "z"]}
    # A column of numbers that turns out to be text does not belong to any series.
    ds = wr.open(table(tmp_path / "d.csv", "shop,y,late", [("a", 1, 2), ("a", 2, 3), ("b", 3, "x")]))
    assert [series.ravel().tolist() for series in ds] == [[1, 2], [3]]


@pytest.mark.parametrize(
    ("text", "match", "line"),
    [
        ("unique_id,y\na,1\na,2\nb,3\na,4\n", r"unique_id \"a\" continues after lines of another one.*\(line 2\)", 5),
        ("shop,y\na,1\nb,2\na,3\nb,4\n", r"shop \"a\" continues.*\(line 2\)", 4),
        ("unique_id,y\n1,1\n2,2\n1,3\n", r"unique_id \"1\" continues.*\(line 2\)", 4),
        ("shop,y\na,1\na,2\n,3\n", "the line is of no series", 4),
        ("shop,y\n,1\na,2\na,3\n", 'the line is of no series: column "shop" is empty', 2),
        ("shop,y\nNA,1\nNA,2\na,3\n", "the line is of no series", 2),
        ("shop,y\na,1\na,2\nNA,3\n", "the line is of no series", 4),
        (",shop,y\n0,,1\n1,,2\n2,a,3\n", 'the line is of no series: column "shop" is empty', 2),
        ("shop,ds,y\n,2024-01-01,1\na,2024-01-01,2\n", "the line is of no series", 2),
        ("unique_id,y\n,1\na,2\n", "the line is of no series", 2),
        ("d,y\n2024-01-01,1\n2024-01-02,2\n2024-01-02,3\n", "2024-01-02 comes after 2024-01-02, expected a later time", 4),
        ("d,y\n2024-01-02,1\n2024-01-01,2\n", "2024-01-01 comes after 2024-01-02", 3),
        ("d,y\n\n2024-01-01,1\n2024-01-02,2\n2024-01-05,2\n2024-01-06,3\n", "2024-01-05 comes after 2024-01-02, expected 2024-01-03 00:00:00, as in most", 5),
        ("u,d,y\na,2024-01-01,1\na,2024-01-02,1\na,2024-01-03,1\nb,2024-01-01,1\nb,2024-01-03,1\n", "2024-01-03 comes after 2024-01-01", 6),
        ("d,u,y\n2024-01-01,a,1\n2024-01-02,a,1\n2024-01-01,b,1\n2024-01-02,b,1\n", "expected a later time", 4),
        ("d,y\n2024Q1,1\n2024Q1,2\n2024Q2,2\n", "2024Q1 comes after 2024Q1, expected a later time", 3),
        ("ds,y\n1,1\n2,2\n2,3\n", "2 comes after 2, expected a later time", 4),
    ],
)
def test_lines_that_are_apart_or_at_other_times_are_refused(tmp_path, text, match, line):
    error = refused(tmp_path / "a.csv", text, match, wr.ConfigError)
    assert error.field == f"line {line}" and error.hint


def test_a_line_without_a_time_is_refused(tmp_path):
    for cell in ("", "total", "2024-02-30"):
        error = refused(tmp_path / "a.csv", f"d,y\n2024-01-01,1\n{cell},2\n", "expected a time in column \"d\"")
        assert error.field == "line 3"
    for options in ({}, {"column": "y"}):
        for text in ("d,y\n,1\n2024-01-02,2\n", "shop,d,y\na,,1\na,2024-01-02,2\na,2024-01-03,3\n"):
            error = refused(tmp_path / "a.csv", text, 'expected a time in column "d", found ""', **options)
            assert error.field == "line 2"
    # After numbers it is not a time of a line.
    assert wr.open(table(tmp_path / "b.csv", "y,d", [(1, ""), (2, "2024-01-02")]))[0].tolist() == [[1], [2]]


@pytest.mark.parametrize(
    "freq", ["D", "h", "15min", "30s", "W-MON", "MS", "ME", "QS-JAN", "QE-DEC", "YS-JAN", "B", "2D", "3MS", "2W-MON"]
)
def test_frequencies_are_those_of_from_frame(tmp_path, freq):
    import pandas as pd
    start = "2024-01-01"
    frame = pd.DataFrame({"ds": pd.date_range(start, periods=40, freq=freq), "y": np.arange(40.0)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    beside = wr.from_frame(frame, layout="channels").extras(0)
    assert wr.open(tmp_path / "a.csv").extras(0)["freq"] == beside["freq"]
    gap = frame.drop(index=20)
    gap.to_csv(tmp_path / "gap.csv", index=False)
    with pytest.raises(wr.ConfigError, match="expected") as row:
        wr.from_frame(gap, layout="channels")
    with pytest.raises(wr.ConfigError, match="expected") as error:
        wr.open(tmp_path / "gap.csv")
    # Names are a line, and rows count from 0.
    assert error.value.field == "line 22" and "row 20: " in str(row.value)
    missing = str(frame["ds"][20])
    assert f"expected {missing}" in str(error.value)
    assert missing.removesuffix(" 00:00:00").replace(" ", "T") in str(row.value)


def test_features_are_of_the_times_of_a_table(tmp_path):
    path = table(tmp_path / "a.csv", "date,y", [(day, i) for i, day in enumerate(days("2024-01-01", 20))])
    ds = wr.open(path)
    week = ds.windows(8, labels=None, fields=["time_features"])[0]["time_features"][:, 0]
    assert ((week + 0.5) * 6).round().tolist() == [0, 1, 2, 3, 4, 5, 6, 0]
    assert wr.Loader(ds.windows(8, fields=["time_features"], freq="24h"), batch_size=1)
    with pytest.raises(wr.ConfigError, match="freq=\"h\", found times of the frequency \"D\"") as error:
        ds.windows(8, fields=["time_features"], freq="h")
    assert error.value.record == 0
    path = table(tmp_path / "c.csv", "date,y", [(f"2024-{month:02}-01", month) for month in range(1, 10)])
    assert len(wr.open(path).windows(8, fields=["time_features"], freq="M")) == 1
    with pytest.raises(wr.ConfigError, match="freq=\"ME\", found times of the frequency \"MS\""):
        wr.open(path).windows(8, fields=["time_features"], freq="ME")
    slashes = table(tmp_path / "b.csv", "date,y", [(f"1990/1/{i + 1} 0:00", i) for i in range(9)])
    assert wr.open(slashes).extras(0) == {"columns": ["y"], "start": "1990-01-01 00:00:00", "freq": "D"}
    assert wr.open(slashes).windows(8, fields=["time_features"])[0]["time_features"].shape == (8, 3)


def test_texts_that_are_neither_times_nor_ids_are_said(tmp_path, caplog):
    for text, said in (
        ("d,y\n7/1/2016,1\n7/2/2016,2\n", "times of column \"d\" are not read"),
        ("d,y\n7/1/2016,1\n7/1/2016,2\n", "times of column \"d\" are not read"),
        ("d,y\n2024-01-01T00:00Z,1\n2024-01-01T01:00Z,2\n", "times of column \"d\" are not read"),
        ("name,y\nx,1\nz,2\n", "column \"name\" has another text in every line"),
        ("name,y\n" + "".join(f"x{i},{i}\n" for i in range(6000)), "column \"name\" has another text in every line"),
        ("d,y\nQ1 2024,1\nQ1 2024,2\nQ2 2024,2\n", "times of column \"d\" are not read"),
        ("d,y\n2024-W01,1\n2024-W01,2\n", "times of column \"d\" are not read"),
    ):
        caplog.clear()
        (tmp_path / "a.csv").write_text(text)
        ds = wr.open(tmp_path / "a.csv")
        assert len(ds) == 1 and len(ds[0]) == text.count("\n") - 1 and said in caplog.text
        assert ds.extras(0)["start"] == text.split("\n")[1].split(",")[0]


def test_a_column_that_counts_lines_is_left_out(tmp_path, caplog):
    import pandas as pd
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=20), "y": np.arange(20.0)})
    two = pd.concat([frame.assign(unique_id="a"), frame.assign(unique_id="b")])
    for name, data, columns in (("a", frame, ["y"]), ("b", frame[5:], ["y"]), ("c", two, ["y"])):
        caplog.clear()
        data.to_csv(tmp_path / f"{name}.csv")
        ds = wr.open(tmp_path / f"{name}.csv")
        assert ds.extras(0)["columns"] == columns and ds[0].shape[1] == 1
        assert "has no name and holds whole numbers, an index: it is left out" in caplog.text


def test_an_index_that_was_sorted_or_filtered_is_left_out(tmp_path, caplog):
    import pandas as pd
    frame = pd.DataFrame({"y": np.arange(20.0) ** 2})
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "a.csv")
    frame[frame["y"] % 3 == 1].to_csv(tmp_path / "b.csv")
    pd.concat([frame, frame]).to_csv(tmp_path / "c.csv")
    pd.read_csv(tmp_path / "a.csv").to_csv(tmp_path / "d.csv")
    frame.set_index([frame.index % 4, frame.index]).rename_axis([None, None]).to_csv(tmp_path / "e.csv")
    for name in "abcde":
        caplog.clear()
        assert wr.open(tmp_path / f"{name}.csv").extras(0)["columns"] == ["y"]
        assert "has no name and holds whole numbers, an index: it is left out" in caplog.text
        assert wr.open(tmp_path / f"{name}.csv", columns=["", "y"] if name in "abc" else ["y"])[0].shape[1] == 1 + (name in "abc")
    # Other numbers are a channel, and that is said.
    caplog.clear()
    assert wr.open(table(tmp_path / "f.csv", ",y", [(0.5, 2), (1, 3)])).extras(0)["columns"] == ["", "y"]
    assert "has no name, and is a channel" in caplog.text


@pytest.mark.parametrize(
    ("head", "rows", "said"),
    [
        ("t,y", [(0, 5), (1, 7), (2, 6)], 'column "t" counts by 1'),
        ("year,y", [(2000, 5), (2010, 7), (2020, 6)], 'column "year" counts by 10'),
        ("unique_id,t,y", [("a", 0, 5), ("a", 1, 7), ("a", 2, 7), ("b", 0, 6), ("b", 1, 6)], 'column "t" counts by 1'),
        ("day,y", [(20240130, 5), (20240131, 7), (20240201, 6)], 'column "day" holds dates'),
    ],
)
def test_counted_times_are_said(tmp_path, caplog, head, rows, said):
    path = table(tmp_path / "a.csv", head, rows)
    ds = wr.open(path)
    assert ds.extras(0)["columns"] == head.split(",")[-2:] and f"{said}" in caplog.text
    caplog.clear()
    assert wr.open(path, columns=["y"])[0].shape[1] == 1 and not caplog.text


def test_numbers_that_do_not_count_are_not_said(tmp_path, caplog):
    for head, rows in (("a,y", [(1, 1), (1, 2), (1, 3)]), ("a,y", [(1, 1), (2, 2), (4, 3)]), ("date,y", [("2024-01-01", 1), ("2024-01-02", 2), ("2024-01-03", 3)])):
        wr.open(table(tmp_path / "a.csv", head, rows))
        assert not caplog.text
    # `ds` is called so in a table of one series, too.
    assert wr.open(table(tmp_path / "b.csv", "ds,y", [(4, 1), (5, 3)])).extras(0) == {"columns": ["y"], "start": 4}


@pytest.mark.parametrize("n", [20, 3000])
def test_how_many_lines_a_table_has_does_not_decide_what_it_is(tmp_path, n):
    single = [(f"s{i}", i) for i in range(n)]
    ds = wr.open(table(tmp_path / "a.csv", "shop,y", [*single, ("x", 1), ("x", 2)]))
    assert len(ds) == n + 1 and ds[n].ravel().tolist() == [1, 2] and ds.extras(n)["item_id"] == "x"
    assert len(wr.open(table(tmp_path / "b.csv", "shop,y", single))) == 1
    for again, line in ((0, n + 3), (n - 1, n + 3)):
        path = table(tmp_path / f"c{again}.csv", "shop,y", [*single, ("x", 1), (f"s{again}", 2)])
        with pytest.raises(wr.ConfigError, match=rf'shop "s{again}" continues after lines of another one.*\(line {again + 2}\)') as error:
            wr.open(path)
        assert error.value.field == f"line {line}"
    path = table(tmp_path / "d.csv", "shop,ds,y", [(f"s{i}", "2024-01-01", i) for i in range(n)] + [("", "2024-01-01", 1)])
    with pytest.raises(wr.ConfigError, match="the line is of no series"):
        wr.open(path)


@pytest.mark.parametrize(
    "text",
    [
        "V1,V2,V3,V4\nY1,1,2,3\nY2,2,3,\n",
        "V1,V2,V3\nY1,1,2\n",
        "id,item_id,d_1,d_2,d_3\na_1,a,1,2,3\nb_1,b,2,3,4\na_2,a,2,2,2\n",
        "Page,2015-07-01,2015-07-02\nx,1,2\ny,2,3\n",
        "store,2015-07-01,2015-07-02\n1,1,2\n2,2,3\n",
        "Country,1960,1961\nA,1,2\nB,2,3\n",
        "name,x0,x1\n" + "".join(f"s{i},1,2\n" for i in range(3000)),
    ],
)
def test_a_series_in_each_line_is_refused(tmp_path, text):
    error = refused(tmp_path / "a.csv", text, "a line is a series", wr.ConfigError)
    assert error.field == "line 2" and "melt" in error.hint


def test_numbered_channels_are_channels(tmp_path):
    for head, rows in (
        ("date,0,1,2", [("2024-01-01", 1, 2, 3), ("2024-01-02", 1, 2, 3)]),
        ("shop,x1,x2,x3", [("a", 1, 2, 3), ("a", 1, 2, 3), ("b", 1, 2, 3)]),
    ):
        assert wr.open(table(tmp_path / "a.csv", head, rows))[0].shape == (2, 3)


def test_quarters_and_months_are_times(tmp_path):
    for texts, freq in (
        (("2023Q4", "2024Q1", "2024Q2"), "QS-JAN"),
        (("2023-Q4", "2024-Q1", "2024-Q2"), "QS-JAN"),
        (("2023M11", "2023M12", "2024M01"), "MS"),
        (("2023-11", "2023-12", "2024-01"), "MS"),
    ):
        ds = wr.open(table(tmp_path / "a.csv", "period,y", [(text, i) for i, text in enumerate(texts)]))
        start = "2023-10-01 00:00:00" if "Q" in freq else "2023-11-01 00:00:00"
        assert ds.extras(0) == {"columns": ["y"], "start": texts[0] if texts[0] == "2023-11" else start, "freq": freq}
        assert ds.windows(2, fields=["time_features"])[0]["time_features"].shape == (2, 1)


def test_a_date_and_an_hour_in_two_columns_are_to_be_one(tmp_path):
    text = "date,hour,y\n2024-01-01,0,1\n2024-01-01,1,2\n"
    error = refused(tmp_path / "a.csv", text, "2024-01-01 comes after 2024-01-01", wr.ConfigError)
    assert "if another column holds the hour, write both into one column" in error.hint
    error = refused(tmp_path / "b.csv", "ds,y\n20240130,1\n20240131,1\n20240201,2\n", "20240201 comes after 20240131", wr.ConfigError)
    assert "write dates with hyphens" in error.hint


@pytest.mark.parametrize("options", [{}, {"column": "y"}, {"columns": ["y", "z"]}])
def test_columns_that_are_chosen_change_nothing_of_what_lines_are(tmp_path, options):
    for text, match in (
        ("shop,y,z\n,1,1\na,2,2\n", "the line is of no series"),
        ("shop,y,z\na,1,1\nb,2,2\na,2,2\n", "continues after lines of another one"),
        ("shop,y,z\n" + "".join(f"s{i % 1500},1,1\n" for i in range(3000)), "continues after lines of another one"),
    ):
        refused(tmp_path / "a.csv", text, match, wr.ConfigError, **options)


def test_an_id_in_two_files_is_refused(tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    rows = [("a", 1), ("a", 2), ("b", 1)]
    paths = [table(folder / f"{year}.csv", "unique_id,y", rows[i:]) for i, year in enumerate((2023, 2024, 2025))]
    for opened in (folder, paths, folder / "*.csv", [paths[2], paths[1]]):
        with pytest.raises(wr.ConfigError, match=r'item_id "[ab]" is in two files: it is also in .*202\d.csv \(byte \d+\)') as error:
            wr.open(opened)
        assert "/202" in error.value.path and error.value.byte is not None and "one series" in error.value.hint
    # Others are each their own, and so is a file without IDs.
    paths[0].write_text("unique_id,y\nc,1\nd,2\n")
    assert [wr.open(paths[:2]).extras(i)["item_id"] for i in range(4)] == ["c", "d", "a", "b"]
    for path in paths:
        table(path, "ds,y", [("2024-01-01", 1), ("2024-01-02", 2)])
    assert len(wr.open(folder)) == 3


def test_tsf_has_start_and_frequency(tmp_path, caplog):
    path = tmp_path / "a.tsf"
    for said, freq in (("daily", "D"), ("half_hourly", "30min"), ("weekly", "W"), ("10_minutes", "10min"), ("4_seconds", "4s"), ("monthly", "M")):
        path.write_text(f"@attribute series_name string\n@attribute start_timestamp date\n@frequency {said}\n@data\nT1:2024-01-03 00-00-00:" + ",".join(f"{i}.5" for i in range(20)) + "\n")
        ds = wr.open(path)
        assert ds.extras(0) == {"series_name": "T1", "start_timestamp": "2024-01-03T00:00:00", "start": "2024-01-03T00:00:00", "freq": freq}
        assert len(ds.windows(8, fields=["time_features"])[0]["time_features"]) == 8
    path.write_text("@attribute start_timestamp date\n@frequency odd\n@data\n2024-01-03 00-00-00:1.5,2\n")
    assert "freq" not in wr.open(path).extras(0)
    assert '"@frequency odd" in line 2 is no frequency of the archive' in caplog.text


def test_ids_are_what_is_written(tmp_path):
    ids = ["9223372036854775813", "9223372036854775817", "1.5", "A-1"]
    (tmp_path / "a.csv").write_text("unique_id,ds,y\n" + "".join(f"{one},2024-01-0{day},{day}\n" for one in ids for day in (1, 2)))
    ds = wr.open(tmp_path / "a.csv")
    assert [ds.extras(i)["item_id"] for i in range(len(ds))] == ids and [len(series) for series in ds] == [2] * 4


def test_a_text_behind_numbers_is_no_id(tmp_path):
    (tmp_path / "a.csv").write_text("year,hour,pm,wind\n2010,0,1.5,NW\n2010,1,2.5,SE\n2010,2,3.5,NW\n")
    assert wr.open(tmp_path / "a.csv")[0].shape == (3, 3)
    assert wr.open(tmp_path / "a.csv", column="pm")[0].tolist() == [1.5, 2.5, 3.5]


def test_whole_numbers_of_a_table_beyond_float32_are_said(tmp_path, caplog):
    (tmp_path / "a.csv").write_text("y\n" + "".join(f"{16_777_216 + i}\n" for i in range(6)))
    ds = wr.open(tmp_path / "a.csv")
    assert ds.windows(6)[0]["input_ids"].ravel().tolist()[:2] == [16_777_216, 16_777_216]
    assert sum("the number 16777217 " in record.getMessage() and "does not fit float32" in record.getMessage() for record in caplog.records) == 1
    caplog.clear()
    assert ds.windows(5, dtype="float64")[0]["input_ids"].ravel().tolist() == [16_777_216 + i for i in range(5)] and not caplog.records
