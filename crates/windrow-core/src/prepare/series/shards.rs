//! Shards and their `meta.json`, as Time-MoE's converter lays them: all records as one row of numbers, cut into files of
//! equal length, and a list of where each record lies.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::body::{Begin, Body, Stored, Written, each_number};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::format::SHARDS_TOLD;
use crate::manifest::CHECKSUMS_FILE;
use crate::manifest::{FileRow, Manifest};
use crate::output::ChecksumsWriter;
use crate::output::{Growing, files};
use crate::prepare::documents::{DocumentLayout, DocumentPlace, DocumentWriter};
use crate::prepare::no_ids;
use crate::source::Extras;

/// The file that lists shards and records.
pub(super) const META: &str = "meta.json";

/// Name of the format.
const FORMAT: &str = "shards";

/// What windrow writes into an entry of `scales`.
const OWN: [&str; 4] = ["offset", "length", "mean", "std"];

pub(super) struct Shards {
    folder: PathBuf,
    name: String,
    dtype: DType,
    /// Numbers per value, of records `[T, C]`.
    channels: Option<usize>,
    normalize: bool,
    durable: bool,
    /// Numbers in every shard but the last.
    full: u64,
    /// Each shard that is complete: numbers in it, size and hash.
    done: Vec<(u64, FileRow)>,
    shard: Option<(Growing, u64)>,
    sums: ChecksumsWriter,
    meta: Growing,
    records: u64,
    offset: u64,
    /// What is told of them, without what is known at the end.
    manifest: Manifest,
}

impl Shards {
    pub(super) fn begin(begin: &Begin<'_>) -> Result<Shards> {
        if begin.dtype == DType::Bf16 {
            // Readers of the original know numpy's dtypes only.
            return Err(Error::config("bfloat16 is none of numpy's dtypes").hint("choose dtype float32"));
        }
        // In values, which are not cut in two; then in numbers.
        let channels = begin.channels.unwrap_or(1) as u64;
        let most = (begin.options.max_shard_bytes / (begin.dtype.size() as u64 * channels)).max(1);
        // Shards of equal length where the end is known, full ones where it is not.
        let full = match begin.total_values.filter(|total| *total > 0) {
            Some(total) => total.div_ceil(total.div_ceil(most)),
            None => most,
        };
        let full = full.saturating_mul(channels);
        let folder = begin.work.join(begin.name);
        files::make_folder(&folder)?;
        let mut new = Shards::at(folder, begin.dtype, full, begin.options.durable, Kept::default())?;
        (new.name, new.normalize) = (begin.name.to_string(), begin.options.normalize);
        new.channels = begin.channels;
        new.manifest = begin.told.cloned().unwrap_or_else(|| begin.manifest(FORMAT));
        Ok(new)
    }

    // Empty, or behind what was kept.
    fn at(folder: PathBuf, dtype: DType, full: u64, durable: bool, from: Kept) -> Result<Shards> {
        let mut meta = Growing::at(folder.join(META), from.meta_size)?;
        if from.meta_size == 0 {
            meta.write(b"{\"scales\": [")?;
        }
        let shard = match from.held {
            0 => None,
            held => {
                let size = held.saturating_mul(dtype.size() as u64);
                Some((Growing::at(folder.join(part(from.done.len())), size)?, held))
            }
        };
        let sums = ChecksumsWriter::at(folder.join(CHECKSUMS_FILE), from.done.iter().map(|(_, row)| row))?;
        Ok(Shards {
            folder,
            name: String::new(),
            dtype,
            channels: None,
            normalize: false,
            durable,
            full,
            done: from.done,
            shard,
            sums,
            meta,
            records: from.records,
            offset: from.offset,
            manifest: Manifest::new(FORMAT),
        })
    }

    // Its name is known when all are there.
    fn close(&mut self, file: Growing, held: u64) -> Result<()> {
        let row = self.sums.add("", file.finish(self.durable)?)?;
        self.done.push((held, row));
        Ok(())
    }

    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        let width = self.dtype.size() as u64;
        while !bytes.is_empty() {
            let (mut file, held) = match self.shard.take() {
                Some(shard) => shard,
                None => (Growing::create(self.folder.join(part(self.done.len())))?, 0),
            };
            let room = usize::try_from((self.full - held).saturating_mul(width)).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            file.write(now)?;
            let held = held + now.len() as u64 / width;
            match held == self.full {
                true => self.close(file, held)?,
                false => self.shard = Some((file, held)),
            }
            bytes = later;
        }
        Ok(())
    }
}

impl Body for Shards {
    fn takes_parts(&self) -> bool {
        // Mean and deviation are those of the whole record.
        !self.normalize
    }

    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        if !record.is_last {
            return self.put(record.bytes);
        }
        let mut scale = Map::new();
        scale.insert("offset".to_string(), json!(self.offset));
        let length = record.len * self.channels.unwrap_or(1) as u64;
        scale.insert("length".to_string(), json!(length));
        if self.normalize {
            // Given as float64: see the writer.
            let mut numbers = each_number(record.bytes, DType::F64)?;
            let (mean, std) = mean_and_std(&numbers);
            for (key, number) in [("mean", mean), ("std", std)] {
                let number = serde_json::Number::from_f64(number).ok_or_else(|| {
                    Error::config(format!("the {key} of the record is not finite"))
                        .record(record.number)
                        .hint("remove NaN and infinity, or write without normalising")
                })?;
                scale.insert(key.to_string(), Value::Number(number));
            }
            numbers.iter_mut().for_each(|x| *x = if std > 0.0 { (*x - mean) / std } else { 0.0 });
            let bytes: Vec<u8> = numbers.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect();
            self.put(&bytes)?;
        } else {
            self.put(record.bytes)?;
        }
        for (key, value) in record.extras {
            if OWN.contains(&key.as_str()) {
                return Err(Error::config(format!(
                    "a record has {key:?} beside its numbers, which shards use themselves"
                ))
                .record(record.number)
                .field(key));
            }
            scale.insert(key.clone(), value.clone());
        }
        let comma = if self.records == 0 { "" } else { "," };
        self.meta.write(format!("{comma}\n{}", Value::Object(scale)).as_bytes())?;
        self.records += 1;
        self.offset += length;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        let (name, bytes) = (self.name.clone(), self.offset * self.dtype.size() as u64);
        let files = self.name_shards()?;
        let mut manifest = std::mem::take(&mut self.manifest);
        manifest.records = Some(self.records);
        self.complete(&files, manifest)?;
        Ok(Written { targets: vec![name], files: files.len() as u64, bytes })
    }
}

impl Shards {
    // Gives the shards their names, and says what is in each.
    fn name_shards(&mut self) -> Result<Vec<(u64, FileRow)>> {
        if self.shard.is_none() && self.done.is_empty() {
            // Of no numbers, too: readers know a folder of shards by one.
            self.shard = Some((Growing::create(self.folder.join(part(0)))?, 0));
        }
        if let Some((file, held)) = self.shard.take() {
            self.close(file, held)?;
        }
        let n = self.done.len();
        let mut files = std::mem::take(&mut self.done);
        for (i, (_, row)) in files.iter_mut().enumerate() {
            row.name = format!("data-{}-of-{n}.bin", i + 1);
            files::rename(&self.folder.join(part(i)), &self.folder.join(&row.name))?;
        }
        Ok(files)
    }

    // Writes the end of the description, with what is told of where it comes from: in it and not in a file of its own,
    // because other readers take every `.json` there for data.
    fn complete(mut self, files: &[(u64, FileRow)], manifest: Manifest) -> Result<Manifest> {
        let manifest = Manifest { files: files.iter().map(|(_, row)| row.clone()).collect(), ..manifest };
        let told =
            serde_json::to_value(&manifest).map_err(|e| Error::io("write it", &self.folder, e.into()))?;
        let files: Map<String, Value> =
            files.iter().map(|(held, row)| (row.name.clone(), json!(held))).collect();
        // Records [T] are described as the original describes them.
        let channels = self.channels.map_or(String::new(), |channels| format!("\n\"channels\": {channels},"));
        let end = format!(
            "],\n\"num_sequences\": {},\n\"dtype\": {:?},{channels}\n\"files\": {},{SHARDS_TOLD}{told}}}\n",
            self.records,
            self.dtype.name(),
            Value::Object(files)
        );
        self.meta.write(end.as_bytes())?;
        let meta = self.sums.add(META, self.meta.finish(self.durable)?)?;
        self.sums.finish(manifest.files.iter().chain([&meta]), self.durable)?;
        files::sync_folder(&self.folder, self.durable)?;
        Ok(manifest)
    }
}

/// Shards of at most this many bytes, a record per document.
pub(in crate::prepare) struct ShardDocuments {
    pub(in crate::prepare) max_shard_bytes: u64,
}

/// How much was written at a restart point.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    done: Vec<(u64, FileRow)>,
    /// Numbers in the shard that is being written.
    held: u64,
    meta_size: u64,
    records: u64,
    offset: u64,
}

impl DocumentLayout for ShardDocuments {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn dtypes(&self) -> &[DType] {
        &[DType::U16, DType::U32, DType::U8, DType::U64, DType::I8, DType::I16, DType::I32, DType::I64]
    }

    fn describe(&self) -> Map<String, Value> {
        Map::from_iter([("max_shard_bytes".to_string(), json!(self.max_shard_bytes))])
    }

    fn begin(&self, at: &DocumentPlace<'_>, kept: Option<&Value>) -> Result<Box<dyn DocumentWriter>> {
        let from = match kept {
            None => Kept::default(),
            Some(kept) => serde_json::from_value(kept.clone())
                .map_err(|e| Error::corrupt("no restart point of shards").caused_by(e))?,
        };
        let folder = at.work.join(at.name);
        files::make_folder(&folder)?;
        for (i, (_, row)) in from.done.iter().enumerate() {
            let path = folder.join(part(i));
            if files::size(&path) != Some(row.size) {
                return Err(Error::corrupt(format!("expected {} bytes", row.size)).at(path));
            }
        }
        let full = (self.max_shard_bytes / at.dtype.size() as u64).max(1);
        Ok(Box::new(Shards::at(folder, at.dtype, full, at.durable, from)?))
    }

    fn is_one(&self, out: &Path) -> bool {
        files::names(out).is_ok_and(|names| names.iter().all(|name| is_own(name)))
    }
}

/// Whether shards have files of this name.
pub(super) fn is_own(name: &str) -> bool {
    name == META || name == CHECKSUMS_FILE || (name.starts_with("data-") && name.ends_with(".bin"))
}

impl DocumentWriter for Shards {
    fn add(&mut self, ids: &[u8]) -> Result<()> {
        let len = (ids.len() / self.dtype.size()) as u64;
        let (number, extras) = (self.records, Extras::new());
        Body::add(self, &Stored { number, bytes: ids, len, extras: &extras, is_first: true, is_last: true })
    }

    fn keep(&mut self) -> Result<Value> {
        self.meta.sync(self.durable)?;
        self.sums.file().sync(self.durable)?;
        if let Some((file, _)) = &mut self.shard {
            file.sync(self.durable)?;
        }
        let kept = Kept {
            done: self.done.clone(),
            held: self.shard.as_ref().map_or(0, |(_, held)| *held),
            meta_size: self.meta.size(),
            records: self.records,
            offset: self.offset,
        };
        serde_json::to_value(kept).map_err(|e| Error::io("write it", &self.folder, e.into()))
    }

    fn finish(mut self: Box<Self>, manifest: Manifest) -> Result<Manifest> {
        if self.offset == 0 {
            return Err(no_ids());
        }
        let files = self.name_shards()?;
        self.complete(&files, manifest)
    }
}

fn part(number: usize) -> String {
    format!("part-{number}")
}

// Mean and population standard deviation, in two passes; 0 and 0 of nothing.
fn mean_and_std(numbers: &[f64]) -> (f64, f64) {
    let n = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let variance = numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    (mean, variance.sqrt())
}
