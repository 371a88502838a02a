//! The files of one run, out of the parts: they are packed and written by what `tokenize` packs and writes with.

use std::path::Path;

use windrow_core::format::Table;
use windrow_core::format::in_parts;
use windrow_core::format::write::PartFile;
use windrow_core::manifest::Part;
use windrow_core::output::hex;
use windrow_core::store::{Object, key};
use windrow_core::{Error, Kind, Progress, Result, Watch, check};
use xxhash_rust::xxh3::Xxh3;

use super::job::Job;
use super::merge::job_at;
use super::place::Place;
use super::status::part_of;
use crate::Report;
use crate::encode::{Encode, EncodedChunk};
use crate::names::{Named, output_names};
use crate::pack::Packer;
use crate::tokenize::{Corpus, Done, TokenizeOptions, rules};

/// Bytes of a part that are handed on at a time, about.
const CHUNK: usize = 4 << 20;

/// Writes what [`tokenize`](crate::tokenize()) would have written into `out` in one run with these options, which are those of
/// the job. Nothing is tokenised: tokens are copied. A run that was stopped goes on.
///
/// # Errors
/// As [`tokenize`](crate::tokenize()); `Stale` when a task is not done; `Corrupt` when a part is not what its manifest says.
pub fn join(
    table: Table,
    place: &dyn Place,
    job: &Job,
    out: &Path,
    encode: &dyn Encode,
    options: &TokenizeOptions,
    watch: &dyn Watch,
) -> Result<Report> {
    let rules = rules(encode, options)?;
    let named: Vec<Named> = (job.inputs.iter())
        .map(|input| Named { file: input.path.clone(), relative: input.row.name.clone() })
        .collect();
    let wanted = job.manifest(options.to.name());
    let corpus = Corpus { table, out, options, rules: &rules, stems: output_names(&named)?, wanted };
    corpus.make(|work, packing, can_continue| {
        let mut packer = Packer::open(work, packing)?;
        let joining = Joining { table, place, job, width: rules.dtype.size(), watch };
        let resumed = packer.state().stored;
        match joining.run(&mut packer) {
            Ok(()) => {
                let (state, writer) = packer.finish()?;
                Ok::<Done, Error>((state, writer, resumed))
            }
            Err(e) => {
                let kept = e.kind() == Kind::Interrupted
                    && packer.state().documents > 0
                    && packer.checkpoint().is_ok();
                *can_continue =
                    kept || (matches!(e.kind(), Kind::Interrupted | Kind::Io) && packer.has_checkpoint());
                Err(e)
            }
        }
    })
}

struct Joining<'a> {
    table: Table,
    place: &'a dyn Place,
    job: &'a Job,
    width: usize,
    watch: &'a dyn Watch,
}

impl Joining<'_> {
    fn run(&self, packer: &mut Packer) -> Result<()> {
        let layout = in_parts(self.table)?;
        // Bytes of the input's tokens, and documents, that a run before has packed.
        let (mut input, mut byte, mut line) =
            (packer.state().input, packer.state().byte, packer.state().line);
        let total_bytes = self.job.tasks;
        while let Some(of) = self.job.inputs.get(input) {
            let (mut skip_bytes, mut skip_documents) = (byte, line);
            for task in of.first_task..of.first_task + of.tasks {
                let part = part_of(self.place, layout, self.job, task)?.ok_or_else(|| {
                    Error::new(
                        Kind::Stale,
                        format!("the preparation is not finished: task {task} is not done"),
                    )
                    .at(self.place.store().display(&layout.file(task, PartFile::Manifest)))
                    .hint(format!("windrow prep run {}", job_at(self.job, layout.job(&self.job.hash))))
                })?;
                let is_last = task + 1 == of.first_task + of.tasks;
                let bytes = part.values.saturating_mul(self.width as u64);
                // A chunk ends with each part at the latest, and the one that ends the input is always taken.
                if skip_documents >= part.records && skip_bytes >= bytes && !is_last {
                    (skip_bytes, skip_documents) = (skip_bytes - bytes, skip_documents - part.records);
                    continue;
                }
                let end = (byte, line);
                let (b, l) = self.part(
                    packer,
                    layout.folder(),
                    &part,
                    input,
                    (skip_bytes, skip_documents),
                    end,
                    is_last,
                )?;
                (byte, line) = (b, l);
                (skip_bytes, skip_documents) = (0, 0);
                self.watch.progress(Progress {
                    done_bytes: task + 1,
                    total_bytes,
                    records: packer.state().records,
                });
            }
            (input, byte, line) = (input + 1, 0, 0);
        }
        check(self.watch)
    }

    // Packs what of a part is behind what was packed before; bytes and documents of the input that are packed then.
    #[expect(clippy::too_many_arguments, reason = "a part, and where it stands")]
    fn part(
        &self,
        packer: &mut Packer,
        folder: &str,
        part: &Part,
        input: usize,
        skip: (u64, u64),
        packed: (u64, u64),
        is_last: bool,
    ) -> Result<(u64, u64)> {
        let store = self.place.store();
        let open = |end: &str| {
            let row = part.files.iter().find(|file| file.name.ends_with(end));
            let row =
                row.ok_or_else(|| Error::corrupt(format!("the part of task {} has no {end}", part.task)))?;
            let name = key::below(folder, &row.name);
            let object = store.open(&name)?;
            row.check_size(Some(object.size()), object.name())?;
            Ok::<_, Error>((Hashed::new(object, row.xxh3.clone(), skip == (0, 0)), name))
        };
        let (mut values, _) = open(".bin")?;
        let (mut lengths, of_lengths) = open(".len")?;
        (values.at, lengths.at) = (skip.0, skip.1.saturating_mul(4));
        let (mut byte, mut line) = packed;
        let end_of_input = is_last && input + 1 == self.job.inputs.len();
        loop {
            check(self.watch)?;
            let mut chunk = EncodedChunk { input, most_id: part.most_id, ..EncodedChunk::default() };
            let mut tokens = 0u64;
            // Whole documents.
            while tokens < (CHUNK / self.width) as u64 && lengths.left() > 0 {
                let n = (lengths.left() / 4).min(4096) as usize;
                for length in lengths.next(n * 4)?.as_chunks::<4>().0 {
                    tokens += u64::from(u32::from_le_bytes(*length));
                    chunk.ends.push(tokens);
                }
            }
            let size = tokens.saturating_mul(self.width as u64);
            if size > values.left() {
                return Err(Error::corrupt("the lengths of its records are more than its values")
                    .at(store.display(&of_lengths))
                    .hint("remove the part and run its task again"));
            }
            chunk.tokens =
                values.next(usize::try_from(size).map_err(|_| Error::memory(format!("{size} bytes")))?)?;
            (byte, line) = (byte + size, line + chunk.ends.len() as u64);
            let ends = lengths.left() == 0;
            if ends && values.left() > 0 {
                return Err(Error::corrupt("it has more values than the lengths of its records say")
                    .at(values.object.name())
                    .hint("remove the part and run its task again"));
            }
            (chunk.end_byte, chunk.end_line, chunk.is_last) = (byte, line, ends && is_last);
            chunk.stored = byte;
            packer.take(&chunk, ends && end_of_input)?;
            if ends {
                values.finish()?;
                lengths.finish()?;
                return Ok((byte, line));
            }
        }
    }
}

/// A file of a part, read from front to end and held against its hash.
struct Hashed {
    object: std::sync::Arc<dyn Object>,
    at: u64,
    hash: Option<(Xxh3, String)>,
}

impl Hashed {
    // What a run before has read of it is not read again, and so not hashed.
    fn new(object: std::sync::Arc<dyn Object>, hash: Option<String>, is_whole: bool) -> Hashed {
        Hashed { object, at: 0, hash: hash.filter(|_| is_whole).map(|hash| (Xxh3::new(), hash)) }
    }

    fn left(&self) -> u64 {
        self.object.size().saturating_sub(self.at)
    }

    fn next(&mut self, size: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| Error::memory(format!("{size} bytes")))?;
        bytes.resize(size, 0);
        self.object.read_into(self.at, &mut bytes)?;
        self.at += size as u64;
        if let Some((hash, _)) = &mut self.hash {
            hash.update(&bytes);
        }
        Ok(bytes)
    }

    fn finish(self) -> Result<()> {
        match self.hash {
            Some((found, said)) if hex(found.digest()) != said => Err(Error::corrupt(format!(
                "the bytes have hash {}, the part's manifest says {said}",
                hex(found.digest())
            ))
            .at(self.object.name())
            .hint("remove the part, and run its task again")),
            _ => Ok(()),
        }
    }
}

/// Removes what killed attempts left: how many files.
///
/// # Errors
/// `Io`.
pub fn clean(place: &dyn Place) -> Result<u64> {
    let left = place.leftovers()?;
    left.iter().try_for_each(|name| place.remove(name))?;
    Ok(left.len() as u64)
}
