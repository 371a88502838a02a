//! Shards and their `meta.json`, as Time-MoE's converter writes them: all records as one row of numbers, cut into files of
//! equal length, and a list of where each record lies.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windrow_core::format::Format;
use windrow_core::format::write::{
    Begin, ID_DTYPES, OwnOptions, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written, each_number,
    no_ids,
};
use windrow_core::manifest::{CHECKSUMS_FILE, FileRow, Manifest};
use windrow_core::output::{ChecksumsWriter, Disk, Growing, files};
use windrow_core::{DType, Error, Result};

use super::{META, Shards, TOLD};

/// What windrow writes into an entry of `scales`.
const OWN: [&str; 4] = ["offset", "length", "mean", "std"];

/// What a shard holds by default.
const USUAL_SHARD: u64 = 5 << 30;

/// Shards of a largest size in bytes.
pub(super) struct WriteShards {
    max_shard_bytes: u64,
    /// They store `(x - mean) / std` as float32, and mean and standard deviation of each record beside it.
    normalize: bool,
}

impl WriteShards {
    /// With these options.
    pub(super) fn of(options: &mut OwnOptions) -> Result<WriteShards> {
        Ok(WriteShards {
            max_shard_bytes: options.bytes("max_shard_bytes")?.unwrap_or(USUAL_SHARD),
            normalize: options.switch("normalize")?,
        })
    }
}

impl WriteFormat for WriteShards {
    fn info(&self) -> WriteInfo {
        WriteInfo {
            keeps_metadata: true,
            // What is normalised keeps its digits until it is.
            handed_dtype: self.normalize.then_some(DType::F64),
            id_dtypes: ID_DTYPES,
            holds_any_numbers: true,
            ..WriteInfo::of(Shards.name(), Target::Folder)
        }
    }

    fn describe(&self) -> Map<String, Value> {
        Map::from_iter([("max_shard_bytes".to_string(), json!(self.max_shard_bytes))])
    }

    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        match asked {
            _ if !self.normalize => Ok(asked.unwrap_or(given)),
            None | Some(DType::F32) => Ok(DType::F32),
            Some(dtype) => Err(Error::config(format!("normalised values are float32, not {dtype}"))),
        }
    }

    fn is_own(&self, name: &str) -> bool {
        name == META || name == CHECKSUMS_FILE || (name.starts_with("data-") && name.ends_with(".bin"))
    }

    fn is_description(&self, name: &str) -> bool {
        name == META
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        if begin.dtype == DType::Bf16 {
            // Readers of the original know numpy's dtypes only.
            return Err(Error::config("NumPy has no bfloat16 dtype").hint("choose dtype float32"));
        }
        // In values, which are not cut in two; then in numbers.
        let channels = begin.channels.unwrap_or(1) as u64;
        let most = (self.max_shard_bytes / (begin.dtype.size() as u64 * channels)).max(1);
        // Shards of equal length where the end is known, full ones where it is not.
        let full = match begin.total_values.filter(|total| *total > 0) {
            Some(total) => total.div_ceil(total.div_ceil(most)),
            None => most,
        };
        let full = full.saturating_mul(channels);
        let folder = begin.work.join(begin.name);
        files::make_folder(&folder)?;
        let from: Kept = begin.continued("shards")?;
        for (i, (_, row)) in from.done.iter().enumerate() {
            let path = folder.join(part(i));
            if files::size(&path) != Some(row.size) {
                return Err(Error::corrupt(format!("expected {} bytes", row.size)).at(path));
            }
        }
        let mut meta = Growing::at(folder.join(META), from.meta_size)?;
        if from.meta_size == 0 {
            meta.write(b"{\"scales\": [")?;
        }
        let shard = match from.held {
            0 => None,
            held => {
                let size = held.saturating_mul(begin.dtype.size() as u64);
                Some((Growing::at(folder.join(part(from.done.len())), size)?, held))
            }
        };
        let sums = ChecksumsWriter::at(folder.join(CHECKSUMS_FILE), from.done.iter().map(|(_, row)| row))?;
        Ok(Box::new(Writer {
            folder,
            dtype: begin.dtype,
            channels: begin.channels,
            normalize: self.normalize,
            needs_values: begin.corpus.is_some(),
            fsync: begin.fsync,
            full,
            done: from.done,
            shard,
            sums,
            meta,
            records: from.records,
            offset: from.offset,
        }))
    }
}

struct Writer {
    folder: PathBuf,
    dtype: DType,
    /// Numbers per value, of records `[T, C]`.
    channels: Option<usize>,
    normalize: bool,
    /// A corpus without a token is an error.
    needs_values: bool,
    fsync: bool,
    /// Numbers in every shard but the last.
    full: u64,
    /// Each shard that is complete: numbers in it, size and hash.
    done: Vec<(u64, FileRow)>,
    shard: Option<(Growing, u64)>,
    sums: ChecksumsWriter,
    meta: Growing,
    records: u64,
    offset: u64,
}

impl Writer {
    // Its name is known when all are there.
    fn close(&mut self, file: Growing, held: u64) -> Result<()> {
        let row = self.sums.add("", file.finish(self.fsync)?)?;
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
            if held == self.full {
                self.close(file, held)?
            } else {
                self.shard = Some((file, held))
            }
            bytes = later;
        }
        Ok(())
    }
}

impl RecordWriter for Writer {
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
            // Handed over as float64.
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
        for (key, value) in record.extras.iter() {
            if OWN.contains(&key) {
                return Err(Error::config(format!(
                    "a record has {key:?} beside its numbers, which shards use themselves"
                ))
                .record(record.number)
                .field(key));
            }
            scale.insert(key.to_string(), record.json(key, value)?);
        }
        let comma = if self.records == 0 { "" } else { "," };
        self.meta.write(format!("{comma}\n{}", Value::Object(scale)).as_bytes())?;
        self.records += 1;
        self.offset += length;
        Ok(())
    }

    fn checkpoint(&mut self, disk: &mut Disk) -> Result<Value> {
        let shard = self.shard.as_mut().map(|(file, _)| file);
        for file in [&mut self.meta, self.sums.file()].into_iter().chain(shard) {
            disk.bring(file.unsynced()?)?;
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

    fn finish(mut self: Box<Self>, mut manifest: Manifest) -> Result<Written> {
        if self.needs_values && self.offset == 0 {
            return Err(no_ids());
        }
        let bytes = self.offset * self.dtype.size() as u64;
        let files = self.name_shards()?;
        manifest.records = Some(self.records);
        let manifest = self.complete(&files, manifest)?;
        Ok(Written { files: files.len() as u64, bytes, manifest })
    }
}

impl Writer {
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

    // Writes the end of the description, with what says where it comes from: in it and not in a file of its own,
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
            "],\n\"num_sequences\": {},\n\"dtype\": {:?},{channels}\n\"files\": {},{TOLD}{told}}}\n",
            self.records,
            self.dtype.name(),
            Value::Object(files)
        );
        self.meta.write(end.as_bytes())?;
        let meta = self.sums.add(META, self.meta.finish(self.fsync)?)?;
        self.sums.finish(manifest.files.iter().chain([&meta]), self.fsync)?;
        files::sync_folder(&self.folder, self.fsync)?;
        Ok(manifest)
    }
}

/// How much was written at a checkpoint.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    done: Vec<(u64, FileRow)>,
    /// Numbers in the shard that is being written.
    held: u64,
    meta_size: u64,
    records: u64,
    offset: u64,
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
