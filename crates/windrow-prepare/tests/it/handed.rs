//! Texts that are handed over one by one: what they become is what a file of them becomes, wherever a run was stopped.

use std::cell::Cell;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use windrow_core::{DType, Error, Kind, Progress, Result, Watch};
use windrow_formats::FORMATS;
use windrow_prepare::{Encode, Encoded, LinePlace, Report, Takes, TokenizeOptions, tokenize, tokenize_texts};

use crate::encoders::{Ord, WordsInt};
use crate::tree::{folder_of, tree};
use crate::writing::{To, samples};

const TEXTS: u64 = 40;

fn text(i: u64) -> String {
    "a word ".repeat(usize::try_from(i % 5).unwrap()) + &i.to_string()
}

fn all() -> impl Iterator<Item = Result<String>> {
    (0..TEXTS).map(|i| Ok(text(i)))
}

fn options(to: To, sample_size: Option<u64>, threads: usize) -> TokenizeOptions {
    TokenizeOptions {
        to: to.format(),
        sample_size,
        eos: Some(0),
        dtype: Some(DType::U16),
        fsync: false,
        num_threads: Some(threads),
        checkpoint_bytes: 60,
        ..samples()
    }
}

fn run(
    texts: &mut dyn Iterator<Item = Result<String>>,
    out: &Path,
    options: &TokenizeOptions,
) -> Result<Report> {
    tokenize_texts(FORMATS, texts, out, &Ord, options, &())
}

/// The files but those with the manifest, which says where texts came from, and the checksums of it.
fn data(out: &Path) -> Vec<(String, Vec<u8>)> {
    const OTHERS: [&str; 3] = ["windrow.json", "windrow.sums", "meta.json"];
    let is_data = |name: &str| !OTHERS.iter().any(|other| name.ends_with(other));
    tree(out).into_iter().filter(|(name, _)| is_data(name)).collect()
}

fn of_file(options: &TokenizeOptions) -> Vec<(String, Vec<u8>)> {
    let mut lines = String::new();
    (0..TEXTS).for_each(|i| writeln!(lines, "{{\"text\": \"{}\"}}", text(i)).unwrap());
    let input = folder_of(&[("texts.jsonl", lines.as_bytes())]);
    let out = tempfile::tempdir().unwrap();
    tokenize(FORMATS, &[input.path().into()], &out.path().join("o"), &Ord, options, &()).unwrap();
    data(&out.path().join("o"))
}

#[test]
fn stopped_by_an_error_at_every_text_it_ends_as_a_file_of_them() {
    for (to, sample_size, threads) in [
        (To::Forager, Some(7), 3),
        (To::Forager, None, 1),
        (To::Tokens, None, 2),
        (To::Shards, None, 2),
        (To::Megatron, None, 2),
    ] {
        let options = options(to, sample_size, threads);
        let wanted = of_file(&options);
        for stop in 0..=TEXTS {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("o");
            let failing = || Err(Error::new(Kind::Config, "it fails here").record(stop));
            let mut first = all().take(usize::try_from(stop).unwrap()).chain(std::iter::once_with(failing));
            let error = run(&mut first, &out, &options).unwrap_err();
            assert_eq!((error.message(), error.place().record), ("it fails here", Some(stop)));
            let is_seen = |name: &String| !name.split('/').any(|part| part.starts_with('.'));
            assert!(!tree(folder.path()).keys().any(is_seen), "{to:?} {stop}");
            let report = run(&mut all(), &out, &options).unwrap();
            // All before the error was kept, and is not encoded again.
            assert_eq!(report.resumed_bytes, (0..stop).map(|i| text(i).len() as u64).sum::<u64>());
            assert_eq!((report.documents, report.unchanged), (TEXTS, false));
            assert_eq!(data(&out), wanted, "{to:?} {stop}");
        }
    }
}

#[test]
fn a_finished_output_is_unchanged_for_the_same_texts_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (out, options) = (folder.path().join("o"), options(To::Forager, None, 2));
    let made = run(&mut all(), &out, &options).unwrap();
    let again = run(&mut all(), &out, &options).unwrap();
    assert_eq!((again.unchanged, again.input_bytes), (true, made.input_bytes));
    assert_eq!(made.input_bytes, (0..TEXTS).map(|i| text(i).len() as u64).sum::<u64>());
    let mut fewer = all().skip(1);
    let mut more = all().chain([Ok(String::new())]);
    let mut other = all().map(|text| text.map(|text| text.replace("17", "71")));
    let others: [&mut dyn Iterator<Item = Result<String>>; 3] = [&mut fewer, &mut more, &mut other];
    for texts in others {
        assert_eq!(run(texts, &out, &options).unwrap_err().kind(), Kind::Exists);
    }
    let overwrite = TokenizeOptions { overwrite: true, ..options };
    let report = run(&mut all().skip(1), &out, &overwrite).unwrap();
    assert_eq!((report.unchanged, report.documents), (false, TEXTS - 1));
}

#[test]
fn a_stopped_run_of_other_texts_is_told_and_starts_over() {
    let options = options(To::Tokens, None, 2);
    let failing = || all().take(30).chain([Err(Error::new(Kind::Config, "no"))]);
    let mut other = all().map(|text| text.map(|text| text.replace("17", "71")));
    let mut fewer = all().take(29);
    let others: [&mut dyn Iterator<Item = Result<String>>; 2] = [&mut other, &mut fewer];
    for texts in others {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("o");
        run(&mut failing(), &out, &options).unwrap_err();
        let error = run(texts, &out, &options).unwrap_err();
        assert_eq!(error.kind(), Kind::Stale, "{error}");
        let report = run(&mut all(), &out, &options).unwrap();
        assert_eq!((report.resumed_bytes, report.documents), (0, TEXTS));
        assert_eq!(data(&out), of_file(&options));
    }
}

#[test]
fn none_is_an_error_unless_it_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(To::Forager, None, 2);
    let out = folder.path().join("o");
    let error = run(&mut std::iter::empty(), &out, &options).unwrap_err();
    assert_eq!((error.kind(), out.join("index").exists()), (Kind::NotFound, false));
    let allowed = TokenizeOptions { allow_empty: true, ..options };
    assert_eq!(run(&mut std::iter::empty(), &out, &allowed).unwrap().documents, 0);
}

#[test]
fn an_id_that_does_not_fit_names_the_text() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(To::Tokens, None, 2);
    let mut texts = all().chain([Ok("\u{1f600}".to_string())]);
    let error = run(&mut texts, &folder.path().join("o"), &options).unwrap_err();
    assert_eq!((error.kind(), error.place().record), (Kind::Config, Some(TEXTS)));
    assert!(
        tree(folder.path()).keys().all(|name| name.ends_with(".lock")),
        "{:?}",
        tree(folder.path()).keys()
    );
    let error = tokenize_texts(FORMATS, &mut all(), folder.path(), &WordsInt, &options, &()).unwrap_err();
    assert!(error.message().contains("reads lines"), "{error}");
}

/// [`Ord`], slowly.
struct Slow;

impl Encode for Slow {
    fn encode(&self, line: &[u8], place: &LinePlace<'_>, out: &mut Encoded) -> Result<()> {
        Ord.encode(line, place, out)
    }

    fn takes(&self) -> Option<Takes<'_>> {
        Some(Takes::Text("text"))
    }

    fn encode_text(&self, text: &str, out: &mut Encoded) -> Result<()> {
        sleep(Duration::from_millis(1));
        Ord.encode_text(text, out)
    }

    fn describe(&self) -> String {
        "slow".to_string()
    }

    fn vocab_size(&self) -> Option<u64> {
        Ord.vocab_size()
    }
}

/// Counts records that were written.
struct Written(AtomicU64);

impl Watch for Written {
    fn progress(&self, now: Progress) {
        self.0.store(now.records, Ordering::Relaxed);
    }
}

#[test]
fn no_more_texts_are_asked_for_than_wait_for_encoders() {
    let folder = tempfile::tempdir().unwrap();
    // Each text is a chunk.
    let options = TokenizeOptions { checkpoint_bytes: 1, ..options(To::Shards, None, 2) };
    let (asked, most, written) = (Cell::new(0), Cell::new(0), Written(AtomicU64::new(0)));
    let mut texts = (0..300).map(|i| {
        asked.set(asked.get() + 1);
        most.set(most.get().max(asked.get() - written.0.load(Ordering::Relaxed)));
        Ok(text(i))
    });
    tokenize_texts(FORMATS, &mut texts, &folder.path().join("o"), &Slow, &options, &written).unwrap();
    assert_eq!(asked.get(), 300);
    assert!((2..=2 * 2 + 12).contains(&most.get()), "{}", most.get());
}
