//! A folder of sound into a data set of codes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, Builder};

use serde_json::{Map, Value, json};
use windrow_core::format::write::{WriteFormat, WriteOptions};
use windrow_core::format::{Options, Probe};
use windrow_core::manifest::{FileRow, Manifest};
use windrow_core::source::{Extras, Schema};
use windrow_core::store::{Local, modified_ns};
use windrow_core::threads::{self, cores, refused};
use windrow_core::{DType, Decode, Element, Error, Kind, Result, Values};
use windrow_dac::Codec;
use windrow_formats::FORMATS;
use windrow_prepare::{Progress, Report, Watch, Writer};

use super::folder::IN_FOLDER_BELOW;
use super::{Reading, SoundFile, Track, codes_of};
use crate::output::Output;

/// How sound is encoded.
#[derive(Clone)]
pub struct EncodeOptions {
    /// What to write: a `.pt` for each track, or shards, one file of frames.
    pub to: Arc<dyn WriteFormat>,
    /// dtype of a stored code: int16 or int64.
    pub dtype: DType,
    /// How sound files are read.
    pub reading: Reading,
    /// Files that are encoded at a time, 1 to 1024; `None`: as many as there are cores.
    pub num_threads: Option<usize>,
    /// Replace what is there.
    pub overwrite: bool,
    /// Bring everything to the disk before it becomes visible.
    pub fsync: bool,
}

impl EncodeOptions {
    /// The usual ones.
    pub fn new(to: Arc<dyn WriteFormat>) -> Self {
        EncodeOptions {
            to,
            dtype: DType::I16,
            reading: Reading::default(),
            num_threads: None,
            overwrite: false,
            fsync: true,
        }
    }
}

/// A file that could not be encoded.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Failure {
    /// The file.
    pub file: PathBuf,
    /// What was wrong with it, and where.
    pub error: String,
}

/// What encoding did.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Encoded {
    /// What was written.
    pub report: Report,
    /// Files that are not in it; the output lists them, too.
    pub failed: Vec<Failure>,
    /// Seconds of sound in it.
    pub seconds: f64,
    /// Tracks in it whose prompt is empty.
    pub without_prompt: u64,
}

/// Encodes sound files into a data set of codes `[T, C]`, a record per file in their order, with `text`, `sr` and what else
/// Dia's `metadata.json` says beside it.
///
/// Files are encoded side by side, and the codes of each are kept in the cache once they are made, so that a run that was
/// stopped continues with the next file. The output appears at the end, whole. A file that cannot be encoded is left out and
/// reported; with the same files, options and weights, nothing is done again.
///
/// # Errors
/// `Exists` where something else is at `out`; `Config` when none of the files can be encoded, or for an impossible number of
/// threads; `Interrupted`, `Io`.
pub fn encode(
    files: &[SoundFile],
    codec: &Codec,
    out: &Path,
    options: &EncodeOptions,
    watch: &dyn Watch,
) -> Result<Encoded> {
    encode_with(files, codec, out, options, &Options::default(), watch)
}

/// Encodes sound files where the output may be a URL; `stores` says how its store is asked.
///
/// # Errors
/// As [`encode`]; `Unsupported` for a URL that takes nothing.
pub fn encode_with(
    files: &[SoundFile],
    codec: &Codec,
    out: &Path,
    options: &EncodeOptions,
    stores: &Options,
    watch: &dyn Watch,
) -> Result<Encoded> {
    let (dtype, overwrite) = (Some(options.dtype), options.overwrite);
    let writing = WriteOptions { dtype, overwrite, ..WriteOptions::default() };
    let output = Output::of_records(out, options.to.as_ref(), &writing, stores)?;
    let (done, rest) = match encoded(files, codec, output.path(), options, watch) {
        Ok(encoded) => (Ok(encoded.report.clone()), encoded),
        Err(e) => (Err(e), Encoded::default()),
    };
    Ok(Encoded { report: output.finish(done, watch)?, ..rest })
}

fn encoded(
    files: &[SoundFile],
    codec: &Codec,
    out: &Path,
    options: &EncodeOptions,
    watch: &dyn Watch,
) -> Result<Encoded> {
    threads::check(options.num_threads, 1)?;
    check_codes(codec)?;
    let wanted = wanted(files, codec, options);
    if let Some(done) = made_before(files, out, options, &wanted) {
        return Ok(done);
    }
    let tracks = all_tracks(files, codec, options, watch)?;
    let mut failed = Vec::new();
    let mut good = Vec::new();
    for (file, track) in files.iter().zip(tracks) {
        match track {
            Ok(track) => good.push((file, track)),
            Err(e) => failed.push((Failure { file: file.path.clone(), error: format!("{e:#}") }, e)),
        }
    }
    if good.is_empty() {
        let first = failed.into_iter().next().map(|(_, e)| e);
        return Err(first.map_or_else(
            || Error::config("no sound file is given"),
            |e| Error::new(e.kind(), format!("none of {} files could be encoded", files.len())).caused_by(e),
        ));
    }
    let failed: Vec<Failure> = failed.into_iter().map(|(failure, _)| failure).collect();
    let seconds = good.iter().map(|(_, track)| seconds_of(track.n_frames(), codec)).sum();
    let manifest = with_findings(wanted, &failed, seconds);
    let mut writer = writer(codec, DType::I16, out, options, &manifest)?;
    let mut scratch = Vec::new();
    for (file, track) in &good {
        let bytes = track.bytes(&mut scratch)?;
        let (element, channels) = (Element::little(DType::I16), 2 * codec.codebooks());
        let values = Values { bytes, element, channels, decode: Decode::Plain };
        writer.add(&values, &extras_of(file, codec))?;
    }
    let report = writer.finish()?;
    let input_bytes = files.iter().map(|file| file.size).sum();
    let without_prompt = without_prompt(files, &failed);
    Ok(Encoded { report: Report { input_bytes, ..report }, failed, seconds, without_prompt })
}

/// How many files have an empty prompt, of those that are in the output.
pub(super) fn without_prompt(files: &[SoundFile], failed: &[Failure]) -> u64 {
    let failed: HashSet<&Path> = failed.iter().map(|failure| failure.file.as_path()).collect();
    let is_one = |file: &&SoundFile| file.prompt.is_empty() && !failed.contains(file.path.as_path());
    files.iter().filter(is_one).count() as u64
}

/// Seconds of sound in `n_frames` frames.
pub(super) fn seconds_of(n_frames: u64, codec: &Codec) -> f64 {
    n_frames as f64 * codec.hop_length() as f64 / f64::from(codec.sample_rate())
}

/// That codes can be stored.
///
/// # Errors
/// `Unsupported`.
pub(super) fn check_codes(codec: &Codec) -> Result<()> {
    match codec.codebook_size() {
        0..=0x8000 => Ok(()),
        size => Err(Error::unsupported(format!("codebooks of {size} codes; int16 holds those below 32,768"))),
    }
}

/// What an earlier run with the same files, options and weights made.
pub(super) fn made_before(
    files: &[SoundFile],
    out: &Path,
    options: &EncodeOptions,
    wanted: &Manifest,
) -> Option<Encoded> {
    let found =
        Probe::at(FORMATS, Arc::new(Local::new(out)), "").ok().filter(|found| found.part_of.is_none())?;
    let found = found.manifest?;
    let is_same =
        (&found.format, &found.inputs, &found.options) == (&wanted.format, &wanted.inputs, &wanted.options);
    (is_same && !options.overwrite).then(|| unchanged(out, &found, files))
}

/// What decides the output: the manifest without its findings.
pub(super) fn wanted(files: &[SoundFile], codec: &Codec, options: &EncodeOptions) -> Manifest {
    let mut manifest = Manifest::new(options.to.name());
    manifest.dtype = Some(options.dtype);
    manifest.vocab_size = Some(codec.codebook_size() as u64);
    manifest.inputs = files
        .iter()
        .map(|file| FileRow {
            name: file.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            size: file.size,
            modified_ns: modified_ns(&file.path.to_string_lossy()),
            ..FileRow::default()
        })
        .collect();
    let prompts: Vec<&str> = files.iter().map(prompt_of).collect();
    manifest.options = Map::from_iter([
        ("task".to_string(), json!("encode")),
        ("weights".to_string(), json!(format!("{:016x}", codec.hash()))),
        ("quality".to_string(), json!(format!("{:?}", options.reading.quality).to_lowercase())),
        ("skip_corrupt".to_string(), json!(options.reading.skip_corrupt)),
        ("dtype".to_string(), json!(options.dtype.name())),
        ("prompts".to_string(), json!(format!("{:016x}", hash_of(&prompts)))),
    ]);
    manifest
}

// The prompt of a file; one that cannot be read is another one than none.
fn prompt_of(file: &SoundFile) -> &str {
    match &file.refused {
        Some(why) if why != IN_FOLDER_BELOW => "\u{fffd}",
        _ => &file.prompt,
    }
}

// FNV-1a, 64 bits: of texts with their borders.
fn hash_of(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The manifest with its findings.
pub(super) fn with_findings(wanted: Manifest, failed: &[Failure], seconds: f64) -> Manifest {
    let mut statistics = Map::from_iter([("seconds".to_string(), json!(seconds))]);
    if !failed.is_empty() {
        statistics.insert("failed".to_string(), json!(failed));
    }
    Manifest { statistics, ..wanted }
}

fn unchanged(out: &Path, manifest: &Manifest, files: &[SoundFile]) -> Encoded {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_string();
    let failed = manifest.statistics.get("failed").and_then(Value::as_array).into_iter().flatten();
    let failed: Vec<Failure> = failed
        .map(|row| Failure { file: text(row.get("file")).into(), error: text(row.get("error")) })
        .collect();
    Encoded {
        report: Report {
            unchanged: true,
            output: out.to_path_buf(),
            records: manifest.records.unwrap_or(0),
            input_bytes: files.iter().map(|file| file.size).sum(),
            ..Report::default()
        },
        without_prompt: without_prompt(files, &failed),
        failed,
        seconds: manifest.statistics.get("seconds").and_then(Value::as_f64).unwrap_or(0.0),
    }
}

/// A message of a worker: bytes of a file that are done, or the file's codes.
enum Told {
    Bytes(u64),
    Done(usize, Result<Track>),
}

/// The codes of all files, in order, made side by side.
///
/// # Errors
/// What is not a file's fault; `Interrupted`.
pub(super) fn all_tracks(
    files: &[SoundFile],
    codec: &Codec,
    options: &EncodeOptions,
    watch: &dyn Watch,
) -> Result<Vec<Result<Track>>> {
    let n_threads = options.num_threads.unwrap_or_else(cores).min(files.len());
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let mut tracks: Vec<Option<Result<Track>>> = files.iter().map(|_| None).collect();
    let mut now = Progress { total_bytes: files.iter().map(|file| file.size).sum(), ..Progress::default() };
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        for started in 0..n_threads {
            let send = send.clone();
            let (next, stop) = (&next, &stop);
            let work = move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(number) else { break };
                    let mut behind = 0;
                    let mut on_block = |done: u64, total: Option<u64>| {
                        // In bytes of the file, as far as it says how long it is.
                        let total = total.unwrap_or(u64::MAX).max(1);
                        let at =
                            (u128::from(file.size) * u128::from(done.min(total)) / u128::from(total)) as u64;
                        // Nobody listens only when the caller has gone.
                        let _ = send.send(Told::Bytes(at - behind));
                        behind = at;
                        !stop.load(Ordering::Relaxed)
                    };
                    let track = match file.refusal() {
                        Some(why) => Err(why),
                        None => codes_of(&file.path, codec, &options.reading, &mut on_block),
                    };
                    let _ = send.send(Told::Bytes(file.size - behind));
                    let _ = send.send(Told::Done(number, track));
                }
            };
            match Builder::new().name("windrow-encode".to_string()).spawn_scoped(scope, work) {
                Err(e) if started == 0 => return Err(refused(e)),
                // Those that run do it all.
                Err(_) => break,
                Ok(_) => {}
            }
        }
        drop(send);
        for message in receive {
            match message {
                Told::Bytes(bytes) => now.done_bytes += bytes,
                Told::Done(number, track) => {
                    now.records += u64::from(track.is_ok());
                    tracks[number] = Some(track);
                }
            }
            watch.progress(now);
            if watch.cancelled() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    })?;
    let interrupted = || {
        Error::new(Kind::Interrupted, "stopped before the end; what was encoded is kept in the cache")
            .hint("run the same command again to finish it")
    };
    // A full disk is not a file's fault; a file that cannot be read is.
    let of_all = |error: &Error, file: &SoundFile| {
        error.kind() == Kind::Io && error.place().file.as_deref() != file.path.to_str()
    };
    let mut found = Vec::with_capacity(files.len());
    for (file, track) in files.iter().zip(tracks) {
        match track {
            None => return Err(interrupted()),
            Some(Err(e)) if e.kind() == Kind::Interrupted => return Err(interrupted()),
            Some(Err(e)) if of_all(&e, file) => return Err(e),
            Some(track) => found.push(track),
        }
    }
    Ok(found)
}

/// What writes tracks whose codes are of this dtype.
///
/// # Errors
/// `Exists` where something else is at `out`; `Io`.
pub(super) fn writer(
    codec: &Codec,
    dtype: DType,
    out: &Path,
    options: &EncodeOptions,
    manifest: &Manifest,
) -> Result<Writer> {
    let channels = Some(2 * codec.codebooks());
    let schema = Schema { channels, ..Schema::numbers(Element::little(dtype)) };
    let writing = WriteOptions {
        dtype: Some(options.dtype),
        overwrite: options.overwrite,
        fsync: options.fsync,
        ..WriteOptions::default()
    };
    Writer::create_from(out, &schema, options.to.as_ref(), &writing, manifest)
}

/// What is kept beside the codes of a file.
pub(super) fn extras_of(file: &SoundFile, codec: &Codec) -> Extras {
    let mut extras = Extras::new();
    extras.insert("text".to_string(), json!(file.prompt));
    extras.insert("name".to_string(), json!(file.name));
    extras.insert("sr".to_string(), json!(codec.sample_rate()));
    extras
}
