//! A folder of sound in tasks: the codes of a run of its files, and the data set of all of them.

use std::path::Path;

use serde_json::json;
use windrow_core::manifest::{FileRow, Manifest};
use windrow_core::source::Source;
use windrow_core::threads::{self, cores};
use windrow_core::{DType, Error, Kind, Result, Watch, check};
use windrow_dac::Codec;
use windrow_prepare::prep::{EncodeFiles, Records};

use super::encode::{
    all_tracks, check_codes, extras_of, made_before, seconds_of, wanted, with_findings, without_prompt,
    writer,
};
use super::folder::IN_FOLDER_BELOW;
use super::{EncodeOptions, Encoded, Failure, SoundFile};

/// What decides the codes, as a job keeps it: what the manifest of one run says, and the kind of the device.
///
/// # Errors
/// `Unsupported` for a codec whose codes cannot be stored.
pub(crate) fn decides(files: &[SoundFile], codec: &Codec, options: &EncodeOptions) -> Result<Manifest> {
    check_codes(codec)?;
    let mut manifest = wanted(files, codec, options);
    manifest.options.insert("device".to_string(), json!(codec.device()));
    manifest.channels = Some(2 * codec.codebooks() as u64);
    Ok(manifest)
}

/// Makes the codes of a task's files.
pub(crate) struct Tracks<'a> {
    pub(crate) codec: &'a Codec,
    pub(crate) options: EncodeOptions,
}

impl EncodeFiles for Tracks<'_> {
    fn encode(
        &self,
        folder: &Path,
        files: &[FileRow],
        out: &mut Records<'_>,
        watch: &dyn Watch,
    ) -> Result<()> {
        let n_threads = self.options.num_threads;
        threads::check(n_threads, 1)?;
        // What is kept beside the codes is read where they are joined.
        let sound = |row: &FileRow| SoundFile {
            path: folder.join(&row.name),
            name: String::new(),
            prompt: String::new(),
            size: row.size,
            refused: row.name.contains('/').then(|| IN_FOLDER_BELOW.to_string()),
        };
        let sounds: Vec<SoundFile> = files.iter().map(sound).collect();
        let n_threads = n_threads.unwrap_or_else(cores);
        // A file alone takes all threads.
        let codec = self.codec.with_num_threads(n_threads / n_threads.clamp(1, sounds.len().max(1)));
        let mut scratch = Vec::new();
        for (row, track) in files.iter().zip(all_tracks(&sounds, &codec, &self.options, watch)?) {
            match track {
                Ok(track) => {
                    let bytes = track.bytes(&mut scratch)?;
                    match self.options.dtype {
                        DType::I16 => out.add(bytes)?,
                        _ => out.add(&as_i64(bytes))?,
                    }
                }
                // Another attempt, or another machine, may do better.
                Err(e) if matches!(e.kind(), Kind::Io | Kind::NotFound | Kind::Memory) => return Err(e),
                Err(e) => out.leave_out(&row.name, &e),
            }
        }
        Ok(())
    }
}

// Why a file is not among the tracks, where it is not.
fn left_out(file: &SoundFile, failed: &[Failure]) -> Option<Failure> {
    let in_task = failed.iter().find(|failure| failure.file == file.path).cloned();
    let failure = |why: Error| Failure { file: file.path.clone(), error: format!("{why:#}") };
    in_task.or_else(|| file.refusal().map(failure))
}

fn as_i64(codes: &[u8]) -> Vec<u8> {
    let codes = codes.as_chunks::<2>().0.iter();
    codes.flat_map(|code| i64::from(i16::from_le_bytes(*code)).to_le_bytes()).collect()
}

/// Writes what one run would have written, of codes that are there: a record of each file that did not fail.
///
/// # Errors
/// `Corrupt` for another number of records; as [`encode`](super::encode).
pub(crate) fn join(
    files: &[SoundFile],
    codec: &Codec,
    (codes, failed): (&dyn Source, Vec<Failure>),
    out: &Path,
    options: &EncodeOptions,
    watch: &dyn Watch,
) -> Result<Encoded> {
    let wanted = wanted(files, codec, options);
    if let Some(done) = made_before(files, out, options, &wanted) {
        return Ok(done);
    }
    let in_parts = |file: &&SoundFile| failed.iter().all(|failure| failure.file != file.path);
    let n_in_parts = files.iter().filter(in_parts).count();
    if n_in_parts as u64 != codes.len() {
        let found = codes.len();
        return Err(Error::corrupt(format!("the parts hold {found} tracks, expected {n_in_parts}")));
    }
    // Tasks do not read prompts: what is wrong with one comes up here.
    let records: Vec<(u64, &SoundFile)> = (0..).zip(files.iter().filter(in_parts)).collect();
    let good: Vec<_> = records.into_iter().filter(|(_, file)| file.refused.is_none()).collect();
    let failed: Vec<Failure> = files.iter().filter_map(|file| left_out(file, &failed)).collect();
    if good.is_empty() {
        let first = failed.first().map(|failure| failure.error.clone()).unwrap_or_default();
        return Err(Error::corrupt(format!("none of {} files could be encoded: {first}", files.len())));
    }
    let mut seconds = 0.0;
    for (record, _) in &good {
        seconds += seconds_of(codes.length(*record)?, codec);
    }
    let mut writer =
        writer(codec, codes.schema().element.dtype, out, options, &with_findings(wanted, &failed, seconds))?;
    let (mut scratch, n) = (Vec::new(), good.len() as u64);
    for (done, (record, file)) in (1..).zip(&good) {
        check(watch)?;
        writer.add(&codes.read_whole(*record, &mut scratch)?, &extras_of(file, codec))?;
        watch.counted(done, n, "file");
    }
    let report = writer.finish()?;
    let input_bytes = files.iter().map(|file| file.size).sum();
    let without_prompt = without_prompt(files, &failed);
    Ok(Encoded { report: windrow_prepare::Report { input_bytes, ..report }, failed, seconds, without_prompt })
}
