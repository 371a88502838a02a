//! A folder of all records one after the other and the byte-offset index of them, as data-forager reads it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windrow_core::format::Format;
use windrow_core::format::write::{
    Begin, Corpus, CorpusPlace, ID_DTYPES, MaskTrack, OwnOptions, RecordWriter, Stored, Target, WriteFormat,
    WriteInfo, Written, only_of_tokenize,
};
use windrow_core::manifest::{CHECKSUMS_FILE, FileRow, MANIFEST_FILE, Manifest};
use windrow_core::output::{ChecksumsWriter, Disk, Finished, Growing, files, replaced};
use windrow_core::store::{Local, Store, key};
use windrow_core::{DType, Error, Result};

use super::line_index::{check_folder_name, is_of_index};
use super::{
    FILE_LIST, Forager, INDEX_FOLDER, LOCATIONS, Layout, LayoutArray, SAMPLE_SCHEMA, file_list, listed_files,
    location_row,
};

/// All samples of an output that is not a corpus.
const SAMPLES: &str = "samples.bin";
/// The array beside the tokens that has 1 for each that is not learned.
const LOSS_MASK: &str = "loss_mask";
/// What the folder of samples is called, and what follows the input's name in theirs.
const TOKENIZED: &str = "tokenized-samples";

/// Samples of token IDs with the index of them.
pub(super) struct WriteForager {
    samples_folder: String,
    postfix: String,
    index_folder: String,
    block_sums: bool,
    /// One of these that is given.
    given: Option<&'static str>,
}

impl WriteForager {
    /// With these options.
    pub(super) fn of(options: &mut OwnOptions) -> Result<WriteForager> {
        let names = ["samples_folder", "postfix", "index_folder", "block_sums"];
        let given = names.into_iter().find(|name| options.has(name));
        let mut name = |option: &str, usual: &str| -> Result<String> {
            let name = options.text(option)?.unwrap_or_else(|| usual.to_string());
            check_folder_name(option, &name)?;
            Ok(name)
        };
        let (samples_folder, postfix, index_folder) = (
            name("samples_folder", TOKENIZED)?,
            name("postfix", TOKENIZED)?,
            name("index_folder", INDEX_FOLDER)?,
        );
        if samples_folder == index_folder {
            return Err(Error::config("samples_folder and index_folder are the same"));
        }
        Ok(WriteForager {
            samples_folder,
            postfix,
            index_folder,
            block_sums: options.switch_on("block_sums")?,
            given,
        })
    }
}

impl WriteFormat for WriteForager {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            mask_track: Some(MaskTrack { name: LOSS_MASK, excludes: true }),
            id_dtypes: ID_DTYPES,
            holds_tracks: true,
            ..WriteInfo::of(Forager.name(), Target::Folder)
        }
    }

    fn describe(&self) -> Map<String, Value> {
        let said = [
            ("samples_folder", json!(self.samples_folder)),
            ("postfix", json!(self.postfix)),
            ("index_folder", json!(self.index_folder)),
            ("block_sums", json!(self.block_sums)),
        ];
        said.map(|(name, value)| (name.to_string(), value)).into_iter().collect()
    }

    fn is_own(&self, name: &str) -> bool {
        [SAMPLES, INDEX_FOLDER].contains(&name)
    }

    fn corpus_place(&self) -> CorpusPlace {
        CorpusPlace::Inside {
            names: vec![self.samples_folder.clone(), self.index_folder.clone()],
            leaving: Vec::new(),
            manifest: key::below(&self.index_folder, MANIFEST_FILE),
            others: vec![MANIFEST_FILE.to_string()],
        }
    }

    fn is_one(&self, out: &Path) -> bool {
        let is_indexed = || {
            replaced::folder(&out.join(INDEX_FOLDER), is_of_index).is_ok()
                && named(out, INDEX_FOLDER).contains(SAMPLES)
        };
        files::names(out).is_ok_and(|names| {
            names.is_empty() || (names.iter().all(|name| self.is_own(name)) && is_indexed())
        })
    }

    fn may_replace(&self, out: &Path) -> Result<()> {
        replaced::folder(&out.join(&self.index_folder), is_of_index)?;
        let named = named(out, &self.index_folder);
        replaced::folder(&out.join(&self.samples_folder), |name| {
            let name = key::below(&self.samples_folder, name);
            // data-forager makes a file for each input, and lists those that hold a sample.
            named.contains(&name) || files::size(&out.join(&name)) == Some(0)
        })
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        begin.only(self.info().id_dtypes, "token samples")?;
        if let Some(option) = self.given.filter(|_| begin.corpus.is_none()) {
            return Err(only_of_tokenize(option));
        }
        let from: Kept = begin.continued("samples with an index")?;
        let (folder, outputs, index_folder) = match begin.corpus {
            None => (begin.work.join(begin.name), vec![SAMPLES.to_string()], INDEX_FOLDER),
            Some(Corpus { inputs, .. }) => {
                let name = |stem| format!("{}/{stem}-{}.bin", self.samples_folder, self.postfix);
                (begin.work.to_path_buf(), inputs.iter().map(name).collect(), self.index_folder.as_str())
            }
        };
        let index = folder.join(index_folder);
        files::make_folder(&index)?;
        for path in &outputs {
            folder.join(path).parent().map_or(Ok(false), files::make_folder)?;
        }
        if begin.corpus.is_some() {
            files::make_folder(&folder.join(&self.samples_folder))?;
        }
        for row in &from.finished {
            let path = folder.join(&row.name);
            if files::size(&path) != Some(row.size) {
                return Err(Error::corrupt(format!("expected {} bytes", row.size)).at(path));
            }
        }
        let output = match (from.output_size, outputs.get(from.finished.len())) {
            (Some(size), Some(name)) => Some(Growing::at(folder.join(name), size)?),
            (Some(_), None) => return Err(Error::corrupt("a checkpoint of more files than there are")),
            (None, _) => None,
        };
        let sums = if self.block_sums || begin.corpus.is_none() {
            Some(ChecksumsWriter::at(index.join(CHECKSUMS_FILE), &from.finished)?)
        } else {
            None
        };
        Ok(Box::new(Writer {
            rows: Growing::at(index.join(LOCATIONS), from.records * location_row(0, 0, 0).len() as u64)?,
            layout: match begin.corpus {
                Some(corpus) => layout(corpus.tracks, corpus.sample_size, begin.dtype),
                None if begin.has_mask => layout(&[LOSS_MASK.to_string()], None, begin.dtype),
                None => None,
            },
            is_corpus: begin.corpus.is_some(),
            folder,
            index_folder: index_folder.to_string(),
            outputs,
            output,
            sums,
            finished: from.finished,
            listed: from.listed,
            records: from.records,
            dtype: begin.dtype,
            length: None,
            fsync: begin.fsync,
            disk: Disk::new(begin.fsync),
            warned: false,
        }))
    }
}

// The data files that an index names, windrow's or data-forager's. A damaged list or manifest names none.
fn named(base: &Path, index_folder: &str) -> HashSet<String> {
    let store = Local::new(base);
    let open = |name| store.open(&key::below(index_folder, name));
    let listed = open(FILE_LIST).and_then(|list| listed_files(list.as_ref(), true)).unwrap_or_default();
    let manifest = open(MANIFEST_FILE).and_then(|object| Manifest::read(object.as_ref()));
    let rows = manifest.map_or_else(|_| Vec::new(), |manifest| manifest.files);
    listed.into_iter().chain(rows.into_iter().map(|row| row.name)).collect()
}

// What `sample_schema.json` says of samples with further arrays.
fn layout(tracks: &[String], sample_size: Option<u64>, dtype: DType) -> Option<Layout> {
    if tracks.is_empty() {
        return None;
    }
    let tokens = sample_size.unwrap_or(1);
    let mut end = tokens * dtype.size() as u64;
    let mut arrays = vec![LayoutArray { name: "tokens".to_string(), dtype, offset: 0 }];
    for name in tracks {
        arrays.push(LayoutArray { name: name.clone(), dtype: DType::U8, offset: end });
        end += tokens;
    }
    Some(Layout { sample_size, arrays, total_bytes_per_sample: end })
}

/// How much was written at a checkpoint.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    /// Outputs that are complete.
    finished: Vec<FileRow>,
    /// Size of the output that is being written, where there is one.
    output_size: Option<u64>,
    listed: Vec<usize>,
    records: u64,
}

struct Writer {
    /// What the names of outputs and of the index folder are relative to.
    folder: PathBuf,
    index_folder: String,
    outputs: Vec<String>,
    /// The one that is being written, the first that is not finished.
    output: Option<Growing>,
    rows: Growing,
    sums: Option<ChecksumsWriter>,
    finished: Vec<FileRow>,
    /// Outputs that hold a sample, in the order of their first one.
    listed: Vec<usize>,
    records: u64,
    dtype: DType,
    layout: Option<Layout>,
    is_corpus: bool,
    /// Values in every record so far; `None` where they differ, or before the first.
    length: Option<u64>,
    fsync: bool,
    /// Brings complete outputs to the disk.
    disk: Disk,
    warned: bool,
}

impl Writer {
    // The output of an input; those before it are complete then.
    fn output_of(&mut self, input: usize) -> Result<&mut Growing> {
        while self.finished.len() < input {
            self.finish_output()?;
        }
        self.begun()
    }

    fn begun(&mut self) -> Result<&mut Growing> {
        let output = match self.output.take() {
            Some(output) => output,
            None => Growing::create(self.folder.join(&self.outputs[self.finished.len()]))?,
        };
        Ok(self.output.insert(output))
    }

    fn finish_output(&mut self) -> Result<()> {
        self.begun()?;
        if let Some(output) = self.output.take() {
            let name = self.outputs[self.finished.len()].clone();
            let file = output.finish_on(&mut self.disk)?;
            let row = row(&mut self.sums, name, file)?;
            self.finished.push(row);
        }
        Ok(())
    }
}

// The row of a complete file, whose checksums are kept where they are asked for.
fn row(sums: &mut Option<ChecksumsWriter>, name: String, file: Finished) -> Result<FileRow> {
    match sums {
        Some(sums) => sums.add(name, file),
        None => Ok(file.row_called(name)),
    }
}

impl RecordWriter for Writer {
    // What is beside the tokens of a record follows all of them.
    fn takes_parts(&self) -> bool {
        self.layout.is_none()
    }

    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if !record.extras.is_empty() && !self.warned {
            windrow_core::warn!("token samples hold token IDs only: the metadata of records is left out");
            self.warned = true;
        }
        let fsync = self.fsync;
        let output = self.output_of(record.input)?;
        let start = output.size();
        output.write(record.bytes)?;
        record.tracks.iter().try_for_each(|track| output.write(track))?;
        if fsync {
            output.begin_sync();
        }
        if record.is_first {
            if self.listed.last() != Some(&record.input) {
                self.listed.push(record.input);
            }
            let tracks: usize = record.tracks.iter().map(|track| track.len()).sum();
            let size = record.len * self.dtype.size() as u64 + tracks as u64;
            self.rows.write(&location_row(self.listed.len() as u64 - 1, start, size))?;
            self.length = Some(record.len).filter(|len| self.records == 0 || self.length == Some(*len));
            self.records += 1;
        }
        Ok(())
    }

    fn checkpoint(&mut self, disk: &mut Disk) -> Result<Value> {
        if let Some(sums) = &mut self.sums {
            // A thousandth of what is written would grow with it. A rerun that continues makes these again.
            sums.begin(&self.output.as_mut().map_or_else(Vec::new, Growing::take_sums))?;
        }
        self.disk.wait()?;
        let sums = self.sums.as_mut().map(ChecksumsWriter::file);
        for file in [&mut self.rows].into_iter().chain(&mut self.output).chain(sums) {
            disk.bring(file.unsynced()?)?;
        }
        Ok(json!(Kept {
            finished: self.finished.clone(),
            output_size: self.output.as_ref().map(Growing::size),
            listed: self.listed.clone(),
            records: self.records,
        }))
    }

    fn finish(mut self: Box<Self>, mut manifest: Manifest) -> Result<Written> {
        while self.finished.len() < self.outputs.len() {
            self.finish_output()?;
        }
        self.disk.wait()?;
        let (fsync, index) = (self.fsync, self.folder.join(&self.index_folder));
        let name_of = |name: &str| key::below(&self.index_folder, name);
        manifest.index = vec![row(&mut self.sums, name_of(LOCATIONS), self.rows.finish(fsync)?)?];
        if !self.is_corpus {
            // Also without a sample, so that readers find the file.
            self.listed = vec![0];
            manifest.record_length = self.length.filter(|_| self.layout.is_none());
        }
        let paths: Vec<String> = self.listed.iter().map(|n| self.outputs[*n].clone()).collect();
        let mut described = vec![(FILE_LIST, file_list(&paths)?.into_bytes())];
        if let Some(layout) = &self.layout {
            let text =
                serde_json::to_vec_pretty(layout).map_err(|e| Error::io("write it", &index, e.into()))?;
            described.push((SAMPLE_SCHEMA, text));
        }
        for (name, text) in described {
            let file = files::write(&index.join(name), &text, fsync)?;
            manifest.index.push(row(&mut self.sums, name_of(name), file)?);
        }
        manifest.files = self.finished;
        manifest.records = Some(self.records);
        self.sums.map_or(Ok(()), |sums| sums.finish(manifest.files.iter().chain(&manifest.index), fsync))?;
        files::write(&index.join(MANIFEST_FILE), manifest.to_text().as_bytes(), fsync)?;
        files::sync_folder(&index, fsync)?;
        let below = self.outputs.last().and_then(|name| name.rsplit_once('/'));
        let folder = below.map_or_else(|| self.folder.clone(), |(below, _)| self.folder.join(below));
        files::sync_folder(&folder, fsync)?;
        let bytes = manifest.files.iter().map(|row| row.size).sum();
        Ok(Written { files: manifest.files.len() as u64, bytes, manifest })
    }
}
