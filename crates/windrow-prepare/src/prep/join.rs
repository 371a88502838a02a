//! The files of one run, out of the parts: they are packed and written by what `tokenize` packs and writes with.

use std::path::Path;
use std::sync::Arc;

use windrow_core::format::Table;
use windrow_core::format::in_parts;
use windrow_core::format::write::{PartFile, Parts};
use windrow_core::manifest::Part;
use windrow_core::output::hex;
use windrow_core::store::Object;
use windrow_core::{Error, Kind, Result, Watch, check};
use xxhash_rust::xxh3::Xxh3;

use super::job::{Job, JobInput};
use super::merge::job_at;
use super::part::{file_of, part_of, read_whole};
use super::place::Place;
use crate::Report;
use crate::encode::{Encode, EncodedChunk};
use crate::names::{Named, output_names};
use crate::pack::Packer;
use crate::skipped::Skipped;
use crate::tokenize::{Corpus, Done, TokenizeOptions, rules};

/// Bytes of a part that are handed on at a time, about.
const CHUNK: usize = 4 << 20;

/// Writes what [`tokenize`](crate::tokenize()) would have written into `out` in one run with these options, which are those of
/// the job. Nothing is tokenised: tokens are copied. A run that was stopped continues.
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
    let corpus =
        Corpus { table, out, options, rules: &rules, stems: output_names(&named)?, wanted, inputs: &[] };
    corpus.make(|work, packing, can_continue| {
        let mut packer = Packer::open(work, packing)?;
        let joining = Joining { layout: in_parts(table)?, place, job, width: rules.dtype.size(), watch };
        let resumed = packer.state().stored;
        match joining.run(&mut packer) {
            Ok(()) => {
                packer.judge(options.max_skipped, can_continue)?;
                let (state, writer) = packer.finish()?;
                Ok::<Done, Error>((state, writer, resumed))
            }
            Err(e) => {
                *can_continue = packer.is_worth_keeping(&e);
                Err(e)
            }
        }
    })
}

struct Joining<'a> {
    layout: &'static dyn Parts,
    place: &'a dyn Place,
    job: &'a Job,
    width: usize,
    watch: &'a dyn Watch,
}

/// What is packed: an input, and how much of it.
struct Packed {
    input: usize,
    byte: u64,
    /// Records of it, with those that are left out.
    records: u64,
}

impl Joining<'_> {
    fn run(&self, packer: &mut Packer) -> Result<()> {
        let state = packer.state();
        let mut packed = Packed { input: state.input, byte: state.byte, records: state.line };
        while let Some(of) = self.job.inputs.get(packed.input) {
            // Of the parts that follow, what an earlier run has packed.
            let mut skip = (packed.byte, packed.records);
            for task in of.first_task..of.first_task + of.tasks {
                let part = part_of(self.place, self.layout, self.job, task)?.ok_or_else(|| {
                    Error::new(
                        Kind::Stale,
                        format!("the preparation is not finished: task {task} is not done"),
                    )
                    .at(self.place.store().display(&self.layout.file(task, PartFile::Manifest)))
                    .hint(format!("windrow prep run {}", job_at(self.job, self.layout.job(&self.job.hash))))
                })?;
                let is_last = task + 1 == of.first_task + of.tasks;
                let bytes = part.values.saturating_mul(self.width as u64);
                let records = part.records.saturating_add(Skipped::read(&part.statistics).count);
                // The chunk that ends an input is always taken.
                if skip.1 >= records && skip.0 >= bytes && !is_last {
                    skip = (skip.0 - bytes, skip.1 - records);
                    continue;
                }
                self.part(packer, &part, std::mem::take(&mut skip), &mut packed, is_last)?;
                self.watch.counted(task + 1, self.job.tasks, "task");
            }
            packed = Packed { input: packed.input + 1, byte: 0, records: 0 };
        }
        check(self.watch)
    }

    // Packs a part, less the bytes and documents that are packed already. What it left out is counted with the end of it.
    fn part(
        &self,
        packer: &mut Packer,
        part: &Part,
        skip: (u64, u64),
        packed: &mut Packed,
        is_last: bool,
    ) -> Result<()> {
        let corrupt = |what: &str, object: &Hashed| {
            Error::corrupt(what).at(object.object.name()).hint("remove the part and run its task again")
        };
        let mut values = self.open(part, PartFile::Values, skip.0)?;
        let mut file = self.open(part, PartFile::Lengths, skip.1.saturating_mul(4))?;
        // Four bytes a document, which its text exceeds.
        let lengths = file.next(file.left())?;
        let mut left = lengths.as_chunks::<4>().0.iter().map(|length| u64::from(u32::from_le_bytes(*length)));
        let before = packed.records.saturating_sub(skip.1);
        let ends_all = is_last && packed.input + 1 == self.job.inputs.len();
        loop {
            check(self.watch)?;
            let (mut tokens, mut ends) = (0u64, Vec::new());
            while tokens < (CHUNK / self.width) as u64
                && let Some(length) = left.next()
            {
                tokens += length;
                ends.push(tokens);
            }
            let size = tokens.saturating_mul(self.width as u64);
            if size > values.left() {
                return Err(corrupt("the lengths of its records are more than its values", &file));
            }
            let ends_part = left.len() == 0;
            if ends_part && size < values.left() {
                return Err(corrupt("it has more values than the lengths of its records say", &values));
            }
            packed.byte += size;
            packed.records += ends.len() as u64;
            let mut skipped = Skipped::default();
            if ends_part {
                skipped = Skipped::read(&part.statistics);
                let is_rows = self.job.inputs.get(packed.input).is_some_and(JobInput::is_rows);
                // Rows have their numbers in all of the input already.
                skipped = skipped.behind(if is_rows { 0 } else { before });
                packed.records += skipped.count;
            }
            let chunk = EncodedChunk {
                input: packed.input,
                end_byte: packed.byte,
                end_line: packed.records,
                is_last: ends_part && is_last,
                stored: packed.byte,
                tokens: values.next(size)?,
                ends,
                most_id: part.most_id,
                skipped,
                ..EncodedChunk::default()
            };
            packer.take(&chunk, ends_part && ends_all)?;
            if ends_part {
                values.finish()?;
                return file.finish();
            }
        }
    }

    fn open(&self, part: &Part, what: PartFile, from: u64) -> Result<Hashed> {
        let store = self.place.store();
        let name = self.layout.file(part.task, what);
        let row = file_of(self.layout, part, what).ok_or_else(|| {
            Error::corrupt("the manifest of the part does not list it").at(store.display(&name))
        })?;
        let object = store.open(&name)?;
        row.check_size(Some(object.size()), object.name())?;
        // What an earlier run has read is not read again, and so not hashed.
        let hash = row.xxh3.clone().filter(|_| from == 0).map(|hash| (Xxh3::new(), hash));
        Ok(Hashed { object, at: from, hash })
    }
}

/// A file of a part, read from front to end and held against its hash.
struct Hashed {
    object: Arc<dyn Object>,
    at: u64,
    hash: Option<(Xxh3, String)>,
}

impl Hashed {
    fn left(&self) -> u64 {
        self.object.size().saturating_sub(self.at)
    }

    fn next(&mut self, size: u64) -> Result<Vec<u8>> {
        let bytes = read_whole(self.object.as_ref(), self.at, size)?;
        self.at += size;
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
