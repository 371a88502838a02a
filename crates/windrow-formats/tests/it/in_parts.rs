//! Data sets in parts as tasks leave them and a merge joins them: files by name, for the tests of reading.

use serde_json::{Map, Value, json};
use windrow_core::DType;
use windrow_core::format::in_parts;
use windrow_core::format::write::{PartFile, Parts};
use windrow_core::manifest::{BlockChecksums, FileRow, Manifest, Part, PartRow};
use windrow_formats::FORMATS;
use xxhash_rust::xxh3::xxh3_64;

/// The hash of the job of every data set here.
pub(crate) const JOB: &str = "00c0ffee00c0ffee";

/// Names below the folder of a data set, and bytes.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// The layout.
pub(crate) fn layout() -> &'static dyn Parts {
    in_parts(FORMATS).unwrap()
}

/// Records of numbers of this dtype: of each part, of each record of it, its bytes.
pub(crate) struct Made {
    pub(crate) dtype: DType,
    pub(crate) channels: Option<u64>,
    pub(crate) vocab_size: Option<u64>,
    pub(crate) task: &'static str,
    pub(crate) parts: Vec<Vec<Vec<u8>>>,
}

impl Made {
    /// Documents of token IDs, in uint16.
    pub(crate) fn tokens(parts: &[Vec<Vec<u16>>]) -> Made {
        let bytes = |record: &Vec<u16>| record.iter().flat_map(|id| id.to_le_bytes()).collect();
        let parts = parts.iter().map(|part| part.iter().map(bytes).collect()).collect();
        Made { dtype: DType::U16, channels: None, vocab_size: Some(1000), task: "tokenize", parts }
    }

    /// The job: what a plan leaves.
    pub(crate) fn job(&self) -> (String, Vec<u8>) {
        let job =
            json!({ "version": 1, "task": self.task, "tasks": self.parts.len(), "hash": JOB, "out": "/out" });
        (layout().job(JOB), job.to_string().into_bytes())
    }

    /// The files of a part, and its row.
    pub(crate) fn part(&self, task: usize) -> (Files, PartRow) {
        let records = &self.parts[task];
        let width = self.dtype.size() * self.channels.unwrap_or(1) as usize;
        let values = records.concat();
        let lengths: Vec<u8> =
            records.iter().flat_map(|record| ((record.len() / width) as u32).to_le_bytes()).collect();
        let mut sums = BlockChecksums::default();
        sums.update(&values);
        let row = PartRow {
            records: records.len() as u64,
            values: (values.len() / width) as u64,
            bytes: values.len() as u64,
            xxh3: xxh3_64(&values),
            lengths_xxh3: xxh3_64(&lengths),
        };
        let name = |what| layout().file(task as u64, what);
        let mut files = vec![
            (name(PartFile::Values), values),
            (name(PartFile::Lengths), lengths),
            (name(PartFile::Sums), sums.finish()),
        ];
        let listed = |(name, bytes): &(String, Vec<u8>)| FileRow {
            name: name.rsplit('/').next().unwrap().to_string(),
            size: bytes.len() as u64,
            xxh3: Some(format!("{:016x}", xxh3_64(bytes))),
            ..FileRow::default()
        };
        let said = Part {
            version: 1,
            job: JOB.to_string(),
            task: task as u64,
            input: "a.jsonl".to_string(),
            records: row.records,
            values: row.values,
            dtype: Some(self.dtype),
            channels: self.channels,
            files: files.iter().map(listed).collect(),
            ..Part::default()
        };
        files.push((name(PartFile::Manifest), said.to_text().into_bytes()));
        (files, row)
    }

    /// What a merge adds.
    pub(crate) fn merged(&self, rows: &[PartRow]) -> Files {
        let manifest = Manifest {
            dtype: Some(self.dtype),
            channels: self.channels,
            vocab_size: self.vocab_size,
            options: Map::from_iter([("task".to_string(), Value::from(self.task))]),
            ..Manifest::new(layout().name())
        };
        layout().joined(manifest, rows).unwrap()
    }

    /// All files of a data set that is whole.
    pub(crate) fn whole(&self) -> Files {
        let (files, rows): (Vec<Files>, Vec<PartRow>) =
            (0..self.parts.len()).map(|task| self.part(task)).unzip();
        [vec![self.job()], files.concat(), self.merged(&rows)].concat()
    }
}
