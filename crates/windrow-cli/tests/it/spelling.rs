//! Errors, hints and warnings name options as they are typed.

use crate::program::Desk;

// The bytes of a `.npy` file of float32 or float64 zeros.
fn npy(shape: &str, dtype: &str, size: usize) -> Vec<u8> {
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({shape}), }}");
    header += &" ".repeat(63 - (10 + header.len()) % 64);
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + size, 0);
    bytes
}

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("series.jsonl", "[1.0, 2.0, 3.0, 4.5, 6.0]\n[2.0, 3.0, 1.5]\n");
    desk.write("tc.npy", npy("100, 3", "<f4", 1200));
    desk.write("f64.npy", npy("4, 50", "<f8", 1600));
    desk.texts("text.jsonl", &["hello world"; 20]);
    desk.windrow("tokenize text.jsonl -t bytes -o toks --to tokens").done();
    desk.windrow("tokenize text.jsonl -t bytes -o samples --to forager --sample-size 16").done();
    desk
}

#[track_caller]
fn check(desk: &Desk, line: &str, said: &str) {
    let ran = desk.windrow(line);
    assert!(ran.err.contains(said), "{line}: {said}\n{}", ran.err);
    for python in ["=True", "=False", "=\"", "= ", "=,", "=;", " wr.", "ds[", "ds.", "loader."] {
        assert!(
            !ran.err.replace("wr.from_frame in Python", "").contains(python),
            "{line}: {python}\n{}",
            ran.err
        );
    }
}

#[test]
fn options_are_named_as_they_are_typed() {
    let desk = desk();
    let bench = "--batch-size 2 --seconds 0.1 --num-threads 1";
    for (line, said) in [
        (format!("bench tc.npy --windows 10 {bench}"), "open it with --axis time; else"),
        (
            format!("bench samples --bins 8 {bench}"),
            "`windrow coverage` counts what is never seen, --overlong split reads",
        ),
        (
            "bench toks --pack 8 --batch-size 1000000".into(),
            "without --no-drop-last there would never be one\n  hint: choose a smaller batch size, or --no-drop-last",
        ),
        ("bench series.jsonl --segments 64 --shuffle blocks".into(), "choose --shuffle on, or a view"),
        (
            "bench series.jsonl --bins 64 --shuffle blocks".into(),
            "bins with --scope block put neighbours together; else choose --shuffle on",
        ),
        (
            "bench samples --records 64 --group 8 --no-shuffle".into(),
            "group with --no-shuffle: groups of like lengths have an order of their own\n  at: --group\n  hint: leave --no-shuffle out",
        ),
        (
            "bench series.jsonl --windows 64 --loss-on prediction".into(),
            "--loss-on prediction with --prediction-length 0",
        ),
        (
            "bench series.jsonl --windows 64 --stride 8 --starts last".into(),
            "at: --stride\n  hint: leave --stride out, or --starts last",
        ),
        (
            "bench series.jsonl --windows 4 --scaler max --fit 0,2".into(),
            "--fit 0.0,2.0 is not a part of a record; --fit 0.0,0.7 takes the first 70 % of each record, --fit 0..500 its first",
        ),
        (
            "bench samples --bins 64 --scope 0".into(),
            "'--scope <RECORDS>': expected all, block, or a number of records",
        ),
        (
            "bench series.jsonl --windows 2 --freq h".into(),
            "--freq h without a field that has times\n  at: --freq\n  hint: add \"time_features\" to --fields, or leave --freq out",
        ),
        (
            "bench series.jsonl --windows 2 --fields time_features".into(),
            "--freq says a frequency that is not there",
        ),
        (
            "bench series.jsonl --segments 4 --scaler max --per window".into(),
            "--per window of a view that has no windows\n  at: --per\n  hint: choose --per series or --per channel",
        ),
        (
            "inspect series.jsonl --verify-checksums".into(),
            "--verify-checksums, but no block checksums were kept",
        ),
        ("inspect samples --document-eos 5".into(), "--document-eos was given, but forager"),
        ("inspect samples --document-eos 5".into(), "puts an EOS token between records with --eos"),
        ("inspect series.jsonl --axis time".into(), "--axis was given, but"),
        ("inspect series.jsonl --payload json".into(), "--payload was given, but"),
        ("inspect tc.npy --column x".into(), "--column was given, but"),
        (
            "convert series.jsonl x --to npy --as-dtype int32".into(),
            "choose --as-dtype float32, or another format",
        ),
        ("inspect series.jsonl toks".into(), "mix their views: `wr.mix` in Python"),
        (
            "tokenize text.jsonl -t bytes -o x --to tokens --sample-size 8".into(),
            "at: --sample-size\n  hint: --pack N of other commands cuts a stream",
        ),
        (
            "tokenize text.jsonl -t bytes -o x --text-field txet".into(),
            "it has text; choose one with --text-field",
        ),
        (
            "bench series.jsonl --rows --batch-size 2".into(),
            "where a format has columns, --columns opens it as rows",
        ),
        ("convert toks samples --to npy".into(), "write elsewhere, or replace it with --overwrite"),
        (
            "diff toks toks".into(),
            "a plan is what `windrow plan` writes, or recipe() of a loader in Python gives, as JSON",
        ),
        ("bench text.jsonl --pack 8".into(), "or read records with `windrow peek`"),
        ("peek toks --dtype uin8".into(), "unknown dtype \"uin8\"; one of bool, uint8"),
    ] {
        check(&desk, &line, said);
    }
}
