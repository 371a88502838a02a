//! Turns inputs into data: `index`, `tokenize`, `convert`, by the formats of all crates.

#[cfg(feature = "text")]
pub(crate) mod chat;
#[cfg(feature = "text")]
pub(crate) mod encode;
pub mod loss_mask;
#[cfg(feature = "text")]
pub(crate) mod masked;
pub(crate) mod rebuild;
pub(crate) mod write;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use windrow_core::format::Options;
use windrow_core::format::write::{WriteFormat, WriteOptions};
use windrow_core::source::Source;
use windrow_core::store::{at_home, is_url};
use windrow_core::{Error, Kind, Result};
use windrow_formats::Tokens;
pub use windrow_prepare::{
    CHECKPOINT_BYTES, Encode, Encoded, Fields, Findings, Ids, IndexOptions, LinePlace, MAX_SKIPPED, Problem,
    Progress, Remainder, Report, Skipped, SkippedRecord, State, Takes, TokenizeOptions, Track, Verified,
    VerifyOptions, Watch, Writer, convert, create_dummy_data, dummy_blocks, manifest_of, text_of,
};

use crate::opening::formats::formats;
use crate::opening::remote::ReadOnce;
pub use crate::output::Output;
use crate::output::{Task, What};

/// Indexes every line of the JSONL files below `base`; see [`windrow_prepare::index()`].
///
/// # Errors
/// As [`windrow_prepare::index()`].
pub fn index(base: &Path, options: &IndexOptions, watch: &dyn Watch) -> Result<Report> {
    index_with(base, options, &Options::default(), watch)
}

/// Indexes a folder that may be a URL; `stores` says how its store is asked. The lines are read once and not kept; the index is
/// made below the cache folder, then sent, as [`tokenize_with`] does it.
///
/// # Errors
/// As [`index`]; `Unsupported` for a URL that takes nothing; `Io`.
pub fn index_with(
    base: &Path,
    options: &IndexOptions,
    stores: &Options,
    watch: &dyn Watch,
) -> Result<Report> {
    if !is_url(base) {
        return windrow_prepare::index(formats(), &at_home(base), options, watch);
    }
    let task = Task {
        what: What::Index(&options.index_folder),
        described: format!("index {}", index_of(options)),
        overwrite: options.overwrite,
    };
    Output::run(base, &task, stores, watch, |out, overwrite| {
        let options = IndexOptions { overwrite, ..options.clone() };
        // Each run looks at what is there now.
        windrow_prepare::index_from(formats(), &ReadOnce::new(stores), base, out, &options, watch)
    })
}

/// Tokenises every line of the inputs; see [`windrow_prepare::tokenize()`].
///
/// # Errors
/// As [`windrow_prepare::tokenize()`].
pub fn tokenize(
    inputs: &[PathBuf],
    out: &Path,
    encode: &dyn Encode,
    options: &TokenizeOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    tokenize_with(inputs, out, encode, options, &Options::default(), watch)
}

/// Tokenises where inputs and output may be URLs; `stores` says how their stores are asked.
///
/// Inputs are read once and not kept. Of a URL, the corpus is made below the cache folder, then sent: what says that it is not finished first, the manifest last. A run that
/// was stopped continues, also while it sends.
///
/// # Errors
/// As [`tokenize`]; `Unsupported` for a URL that takes nothing; `Io`.
pub fn tokenize_with(
    inputs: &[PathBuf],
    out: &Path,
    encode: &dyn Encode,
    options: &TokenizeOptions,
    stores: &Options,
    watch: &dyn Watch,
) -> Result<Report> {
    let (read, out) = (ReadOnce::new(stores), &*at_home(out));
    if !is_url(out) {
        return windrow_prepare::tokenize_from(formats(), &read, inputs, out, encode, options, watch);
    }
    let task = corpus(&format!("{inputs:?}"), encode, options);
    Output::run(out, &task, stores, watch, |out, overwrite| {
        let options = TokenizeOptions { overwrite, ..options.clone() };
        windrow_prepare::tokenize_from(formats(), &read, inputs, out, encode, &options, watch)
    })
}

/// Tokenises texts that are handed over one by one, where the output may be a URL; see [`windrow_prepare::tokenize_texts()`].
///
/// With the feature `text`, `TextEncoder` is an encoder of tokenizers; here is one of bytes.
///
/// ```
/// # use windrow::format::Options;
/// # use windrow::prepare::{Encode, Encoded, LinePlace, Takes, TokenizeOptions, tokenize_texts};
/// struct Bytes;
///
/// impl Encode for Bytes {
///     fn encode(&self, line: &[u8], _: &LinePlace<'_>, out: &mut Encoded) -> windrow::Result<()> {
///         line.iter().for_each(|byte| out.ids.push(i64::from(*byte)));
///         Ok(())
///     }
///
///     fn encode_text(&self, text: &str, out: &mut Encoded) -> windrow::Result<()> {
///         text.bytes().for_each(|byte| out.ids.push(i64::from(byte)));
///         Ok(())
///     }
///
///     fn takes(&self) -> Option<Takes<'_>> {
///         Some(Takes::Text("text"))
///     }
///
///     fn describe(&self) -> String {
///         "bytes".to_string()
///     }
///
///     fn vocab_size(&self) -> Option<u64> {
///         Some(256)
///     }
/// }
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let out = dir.path().join("tokens");
/// let mut texts = ["one", "two"].into_iter().map(|text| Ok(text.to_string()));
/// let options = TokenizeOptions::new(windrow::writer("tokens", &Default::default())?);
/// let report = tokenize_texts(&mut texts, &out, &Bytes, &options, &Options::default(), &())?;
/// assert_eq!((report.documents, report.tokens), (2, 6));
/// # Ok::<(), windrow::Error>(())
/// ```
///
/// # Errors
/// As [`windrow_prepare::tokenize_texts()`]; `Unsupported` for a URL that takes nothing; `Io`.
pub fn tokenize_texts(
    texts: &mut dyn Iterator<Item = Result<String>>,
    out: &Path,
    encode: &dyn Encode,
    options: &TokenizeOptions,
    stores: &Options,
    watch: &dyn Watch,
) -> Result<Report> {
    let out = &*at_home(out);
    if !is_url(out) {
        return windrow_prepare::tokenize_texts(formats(), texts, out, encode, options, watch);
    }
    let task = corpus("texts", encode, options);
    // They come once.
    let texts = RefCell::new(Some(texts));
    Output::run(out, &task, stores, watch, |here, overwrite| {
        let texts = texts.borrow_mut().take().ok_or_else(|| {
            Error::new(Kind::Stale, "the texts are not those of the run that was stopped before it was sent")
                .at(out)
                .hint("run it again: it starts over")
        })?;
        let options = TokenizeOptions { overwrite, ..options.clone() };
        windrow_prepare::tokenize_texts(formats(), texts, here, encode, &options, watch)
    })
}

// What decides an index that is sent. Outputs of before are the same task, in the words of then.
fn index_of(options: &IndexOptions) -> String {
    let decides = IndexOptions { overwrite: false, fsync: true, ..options.clone() };
    format!("{decides:?}").replace("fsync: true", "durable: true")
}

// What decides a corpus that is sent.
fn corpus<'a>(inputs: &str, encode: &dyn Encode, options: &'a TokenizeOptions) -> Task<'a> {
    Task {
        what: What::Corpus(options.to.as_ref()),
        described: format!("tokenize {inputs} {} {}", encode.describe(), corpus_of(options)),
        overwrite: options.overwrite,
    }
}

fn corpus_of(options: &TokenizeOptions) -> String {
    let decides = TokenizeOptions {
        num_threads: None,
        overwrite: false,
        fsync: true,
        checkpoint_bytes: 0,
        // The share decides no byte.
        max_skipped: options.max_skipped.map(|_| 1.0),
        ..options.clone()
    };
    // Outputs of before are the same task, in the words of then.
    format!("{decides:?}")
        .replace(", max_skipped: None", "")
        .replace("fsync: true, num_threads: None", "durable: true, threads: None")
}

/// Writes all records of a source in another format, where the output may be a URL; see [`windrow_prepare::convert()`].
///
/// # Errors
/// As [`windrow_prepare::convert()`]; `Unsupported` for a URL that takes nothing.
pub fn convert_with(
    source: &dyn Source,
    out: &Path,
    format: &dyn WriteFormat,
    options: &WriteOptions,
    stores: &Options,
    watch: &dyn Watch,
) -> Result<Report> {
    // What is made of a URL lies elsewhere at first.
    windrow_prepare::refuse_inputs(source, &at_home(out), format)?;
    let output = Output::of_records(out, format, options, stores)?;
    let done = convert(source, output.path(), format, options, watch);
    output.finish(done, watch)
}

/// Writes `tokens` random IDs below `vocab_size` as a headerless uint32 file, and its manifest; see
/// [`windrow_prepare::dummy()`].
///
/// # Errors
/// As [`windrow_prepare::dummy()`].
pub fn dummy(out: &Path, vocab_size: u64, tokens: u64, seed: u64, overwrite: bool) -> Result<Report> {
    windrow_prepare::dummy(&Tokens, out, vocab_size, tokens, seed, overwrite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_the_task_that_it_was_before_its_options_were_renamed() {
        let index = IndexOptions { fsync: false, overwrite: true, ..IndexOptions::default() };
        assert_eq!(
            index_of(&index),
            r#"IndexOptions { index_folder: "index", overwrite: false, checksum: false, durable: true, allow_empty: false }"#
        );
        let to = write::writer("tokens", &serde_json::Map::new()).unwrap();
        let options = TokenizeOptions { fsync: false, num_threads: Some(3), ..TokenizeOptions::new(to) };
        let said = corpus_of(&options);
        let end = "tracks: [], overwrite: false, durable: true, threads: None, checkpoint_bytes: 0, \
                   allow_empty: false, split: None }";
        assert!(said.ends_with(end), "{said}");
    }
}
