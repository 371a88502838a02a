//! Shards and their `meta.json`, as Time-MoE's converter lays them: all records as one row of numbers, cut into files of
//! equal length, and a list of where each record lies.

use serde_json::{Map, Value, json};

use super::{Begin, Body, Stored, Written, each_number};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::prepare::atomic::{self, Growing};

/// The file that lists shards and records.
pub(super) const META: &str = "meta.json";

/// What windrow writes into an entry of `scales`.
const OWN: [&str; 4] = ["offset", "length", "mean", "std"];

pub(super) struct Shards {
    folder: std::path::PathBuf,
    name: String,
    dtype: DType,
    /// Numbers per value, of records `[T, C]`.
    channels: Option<usize>,
    normalize: bool,
    durable: bool,
    /// Numbers in every shard but the last.
    full: u64,
    /// Numbers in each shard that is complete.
    done: Vec<u64>,
    shard: Option<(Growing, u64)>,
    meta: Growing,
    records: u64,
    offset: u64,
    /// What the records come from, in words of a side file.
    origin: Option<Map<String, Value>>,
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
        atomic::make_folder(&folder)?;
        let mut meta = Growing::create(folder.join(META))?;
        meta.write(b"{\"scales\": [")?;
        Ok(Shards {
            folder,
            name: begin.name.to_string(),
            dtype: begin.dtype,
            channels: begin.channels,
            normalize: begin.options.normalize,
            durable: begin.options.durable,
            full,
            done: Vec::new(),
            shard: None,
            meta,
            records: 0,
            offset: 0,
            origin: begin.origin.map(super::Origin::told_with_files),
        })
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
                true => {
                    file.finish(self.durable)?;
                    self.done.push(held);
                }
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
            let mut numbers = each_number(record.bytes, self.dtype)?;
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
        if let Some((file, held)) = self.shard.take() {
            file.finish(self.durable)?;
            self.done.push(held);
        }
        let n = self.done.len();
        let mut files = Map::new();
        for (i, held) in self.done.iter().enumerate() {
            let name = format!("data-{}-of-{n}.bin", i + 1);
            atomic::rename(&self.folder.join(part(i)), &self.folder.join(&name))?;
            files.insert(name, json!(held));
        }
        // In the description and not in a file of its own: other readers take every `.json` there for data.
        let origin =
            self.origin.map_or(String::new(), |told| format!(",\n\"windrow\": {}", Value::Object(told)));
        // Records [T] are described as the original describes them.
        let channels = self.channels.map_or(String::new(), |channels| format!("\n\"channels\": {channels},"));
        let end = format!(
            "],\n\"num_sequences\": {},\n\"dtype\": {:?},{channels}\n\"files\": {}{origin}}}\n",
            self.records,
            self.dtype.name(),
            Value::Object(files)
        );
        self.meta.write(end.as_bytes())?;
        self.meta.finish(self.durable)?;
        atomic::sync_folder(&self.folder, self.durable)?;
        Ok(Written {
            targets: vec![self.name],
            files: n as u64,
            bytes: self.offset * self.dtype.size() as u64,
        })
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
