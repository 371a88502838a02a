//! A folder to work in, and the pages about what is in it.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;
use windrow::format::Options;
use windrow::prepare::{Encode, TokenizeOptions, tokenize};
use windrow::text::Tokenizer;
use windrow::{TextEncoder, ViewRecipe};
use windrow_report::{Asked, Report, Subject, of_records, of_sound};

pub(crate) struct Desk(TempDir);

impl Desk {
    pub(crate) fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Tokens of these texts, a byte each; `eos` as [`TextEncoder::new`] takes it.
    pub(crate) fn tokens(&self, name: &str, texts: &[&str], eos: &str) {
        let lines = texts.iter().map(|text| serde_json::json!({ "text": text }).to_string() + "\n");
        self.write("in.jsonl", lines.collect::<String>());
        let encoder = TextEncoder::new(Tokenizer::load("bytes").unwrap(), "text", eos).unwrap();
        let to = windrow::writer("forager", &Default::default()).unwrap();
        let options = TokenizeOptions { eos: encoder.eos(), fsync: false, ..TokenizeOptions::new(to) };
        tokenize(&[self.path("in.jsonl")], &self.path(name), &encoder, &options, &()).unwrap();
    }

    /// The page about what is at a path.
    pub(crate) fn try_report(&self, name: &str, asked: &Asked) -> windrow::Result<Report> {
        let path = self.path(name);
        match Subject::open(&path.clone().into(), &Options::default(), false)? {
            Subject::Records(data) => of_records(&data, &path.into(), asked, &()),
            Subject::Sound(files) => of_sound(&files, &path.into(), &()),
        }
    }

    #[track_caller]
    pub(crate) fn report(&self, name: &str, asked: &Asked) -> Report {
        self.try_report(name, asked).unwrap_or_else(|e| panic!("{e}"))
    }

    /// The page of a view, as recipes write it; of none for `null`.
    #[track_caller]
    pub(crate) fn page(&self, name: &str, view: Value) -> String {
        self.report(name, &Asked { view: self::view(view), ..Asked::default() }).html
    }
}

/// A view as recipes write it; none for `null`.
pub(crate) fn view(view: Value) -> Option<ViewRecipe> {
    serde_json::from_value(view).unwrap()
}
