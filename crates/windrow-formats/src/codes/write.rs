//! Tracks of codes as torch saves them, with their prompts in `metadata.json`, which Dia's trainers read, and the side
//! file.

use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use windrow_core::format::Format;
use windrow_core::format::vocabulary::first_outside;
use windrow_core::format::write::{
    Begin, RecordWriter, Stored, Target, WriteFormat, WriteInfo, Written, no_records,
};
use windrow_core::manifest::{CHECKSUMS_FILE, FileRow, MANIFEST_FILE, MOST_BYTES, Manifest};
use windrow_core::output::{ChecksumsWriter, Disk, Growing, files};
use windrow_core::source::{Extras, MOST_CODEBOOKS};
use windrow_core::{DType, Decode, Element, Error, Result, Values};

use super::{CODEBOOK, Codes, FOLDER, METADATA, tensor_file};

/// Longer names do not fit a file system.
const MOST_NAME: usize = 240;

/// A torch tensor per record, and the prompts.
pub(super) struct WriteCodes;

impl WriteFormat for WriteCodes {
    fn info(&self) -> WriteInfo {
        WriteInfo { keeps_metadata: true, ..WriteInfo::of(Codes.name(), Target::Folder) }
    }

    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        if given == DType::Bool {
            return Err(Error::config("codes of bool, expected whole numbers")
                .hint("a mask is no track of codes; .astype(\"int16\") where true and false are meant as codes 1 and 0"));
        }
        Ok(asked.unwrap_or(DType::I16))
    }

    fn is_own(&self, name: &str) -> bool {
        [FOLDER, METADATA, MANIFEST_FILE, CHECKSUMS_FILE].contains(&name)
    }

    fn is_description(&self, name: &str) -> bool {
        [METADATA, MANIFEST_FILE].contains(&name)
    }

    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>> {
        // What cannot be stored is refused before a record is read.
        tensor_file("", begin.dtype, [0, 1], &[])?;
        if begin.appends_eos {
            return Err(Error::config("an EOS token after tracks of codes, which end where their file does")
                .field("eos"));
        }
        let channels = begin.channels.unwrap_or(1);
        if channels as u64 > MOST_CODEBOOKS {
            return Err(Error::config(format!(
                "records of {channels} codebooks, expected at most {MOST_CODEBOOKS} codebooks"
            ))
            .hint("codes are [frames, codebooks]: transpose what a codec gives; shards hold any numbers"));
        }
        let folder = begin.work.join(begin.name);
        files::make_folder(&folder)?;
        files::make_folder(&folder.join(FOLDER))?;
        let mut metadata = Growing::create(folder.join(METADATA))?;
        metadata.write(b"{")?;
        Ok(Box::new(Writer {
            sums: ChecksumsWriter::at(folder.join(CHECKSUMS_FILE), [])?,
            folder,
            dtype: begin.dtype,
            channels,
            vocab_size: begin.vocab_size,
            fsync: begin.fsync,
            disk: Disk::new(begin.fsync),
            metadata,
            names: HashSet::new(),
            bytes: 0,
            tracks: Vec::new(),
        }))
    }
}

struct Writer {
    folder: PathBuf,
    dtype: DType,
    channels: usize,
    vocab_size: Option<u64>,
    fsync: bool,
    disk: Disk,
    metadata: Growing,
    names: HashSet<String>,
    bytes: u64,
    /// Size and hash of each track.
    tracks: Vec<FileRow>,
    sums: ChecksumsWriter,
}

impl Writer {
    // That a record holds codes, which is what readers take it for.
    fn check(&self, record: &Stored<'_>) -> Result<()> {
        let (element, channels) = (Element::little(self.dtype), self.channels.max(1));
        let values = Values { bytes: record.bytes, element, channels, decode: Decode::Plain };
        // Codes are below this.
        let codebook = self.vocab_size.unwrap_or(CODEBOOK).max(1);
        let Some((at, code)) = first_outside(&values, codebook) else { return Ok(()) };
        let (frame, channel) = (at / channels, at % channels);
        Err(Error::config(format!(
            "{code} at frame {frame}, channel {channel} is not a code: expected 0 to {}",
            codebook - 1
        ))
        .record(record.number)
        .hint("tracks hold the codes of a codec; shards hold any numbers"))
    }
}

impl RecordWriter for Writer {
    fn takes_parts(&self) -> bool {
        false
    }

    fn add(&mut self, record: &Stored<'_>) -> Result<()> {
        let stem = stem(record.extras, record.number)?;
        if !self.names.insert(stem.clone()) {
            return Err(Error::config(format!("two records are called {stem:?}, and a file holds one"))
                .record(record.number)
                .field("name")
                .hint("give them other names, or write shards"));
        }
        self.check(record)?;
        let shape = [record.len, self.channels as u64];
        let file =
            tensor_file(&stem, self.dtype, shape, record.bytes).map_err(|e| e.record(record.number))?;
        self.bytes += file.len() as u64;
        let name = format!("{FOLDER}/{stem}.pt");
        let file = files::write_on(&self.folder.join(&name), &file, &mut self.disk)?;
        self.tracks.push(self.sums.add(name, file)?);
        let mut fields = Map::new();
        // Both sides are stored, and the name is the file's.
        for (field, value) in record.extras.iter().filter(|(field, _)| *field != "name" && *field != "mono") {
            fields.insert(field.to_string(), record.json(field, value)?);
        }
        fields.entry("text").or_insert_with(|| Value::String(String::new()));
        fields.insert("channels".to_string(), json!(self.channels));
        fields.insert("length".to_string(), json!(record.len));
        let comma = if self.names.len() == 1 { "" } else { "," };
        let key = Value::String(format!("{stem}.pt"));
        self.metadata.write(format!("{comma}\n{key}: {}", Value::Object(fields)).as_bytes())
    }

    fn finish(mut self: Box<Self>, mut manifest: Manifest) -> Result<Written> {
        if self.names.is_empty() {
            return Err(no_records());
        }
        self.metadata.write(b"\n}\n")?;
        let metadata = self.sums.add(METADATA, self.metadata.finish(self.fsync)?)?;
        let files = self.tracks.len() as u64;
        self.sums.finish(self.tracks.iter().chain([&metadata]), self.fsync)?;
        manifest.vocab_size = manifest.vocab_size.or(self.vocab_size);
        let mut manifest = Manifest { records: Some(files), files: self.tracks, ..manifest };
        let mut text = manifest.to_text();
        if text.len() as u64 > MOST_BYTES {
            windrow_core::warn!("{files} tracks are more than a manifest lists: no hashes of them are kept");
            manifest.files = Vec::new();
            text = manifest.to_text();
        }
        files::write(&self.folder.join(MANIFEST_FILE), text.as_bytes(), self.fsync)?;
        self.disk.wait()?;
        files::sync_folder(&self.folder.join(FOLDER), self.fsync)?;
        files::sync_folder(&self.folder, self.fsync)?;
        Ok(Written { files, bytes: self.bytes, manifest })
    }
}

// What the file of a record is called, without its ending.
fn stem(extras: &Extras, number: u64) -> Result<String> {
    let Some(name) = extras.get("name") else { return Ok(format!("{number:06}")) };
    let is_plain = |name: &&str| {
        let unfit = |c: char| c.is_control() || c == '/' || c == '\\';
        !name.is_empty() && name.len() <= MOST_NAME && !name.starts_with('.') && !name.contains(unfit)
    };
    match name.as_text().filter(is_plain) {
        Some(name) => Ok(name.to_string()),
        None => Err(Error::config(format!("{} is not the name of a file", name.shown()))
            .record(number)
            .field("name")
            .hint("a name has no / and no leading dot, and at most 240 bytes")),
    }
}
