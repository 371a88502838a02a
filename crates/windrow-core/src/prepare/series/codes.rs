//! Tracks of codes as torch saves them, with their prompts in `metadata.json`, which Dia's trainers read, and the side
//! file.

use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::body::{Begin, Body, Stored, Written};
use crate::array::{DType, Element};
use crate::error::{Error, Result};
use crate::format::{CODEBOOK, TRACKS_FOLDER, TRACKS_METADATA, first_outside, tensor_file};
use crate::manifest::CHECKSUMS_FILE;
use crate::manifest::{FileRow, MANIFEST_FILE, MOST_BYTES, Manifest};
use crate::output::ChecksumsWriter;
use crate::output::Disk;
use crate::output::{Growing, files};
use crate::prepare::no_records;
use crate::record::{Decode, Values};
use crate::source::Extras;

pub(super) struct Codes {
    folder: PathBuf,
    name: String,
    dtype: DType,
    channels: usize,
    /// Codes are below this.
    codebook: u64,
    durable: bool,
    disk: Disk,
    metadata: Growing,
    names: HashSet<String>,
    bytes: u64,
    /// What is told of them, without what is known at the end.
    manifest: Manifest,
    /// Size and hash of each track.
    tracks: Vec<FileRow>,
    sums: ChecksumsWriter,
}

/// Longer names do not fit a file system.
const MOST_NAME: usize = 240;

impl Codes {
    pub(super) fn begin(begin: &Begin<'_>) -> Result<Codes> {
        // What cannot be stored is refused before a record is read.
        tensor_file("", begin.dtype, [0, 1], &[])?;
        if begin.options.eos.is_some() {
            return Err(Error::config("an end id after tracks of codes, which end where their file does")
                .field("eos"));
        }
        let folder = begin.work.join(begin.name);
        files::make_folder(&folder)?;
        files::make_folder(&folder.join(TRACKS_FOLDER))?;
        let mut metadata = Growing::create(folder.join(TRACKS_METADATA))?;
        metadata.write(b"{")?;
        let mut manifest = begin.told.cloned().unwrap_or_else(|| begin.manifest("codes"));
        manifest.vocab_size = manifest.vocab_size.or(begin.vocab_size);
        Ok(Codes {
            sums: ChecksumsWriter::at(folder.join(CHECKSUMS_FILE), [])?,
            folder,
            name: begin.name.to_string(),
            dtype: begin.dtype,
            channels: begin.channels.unwrap_or(1),
            codebook: begin.vocab_size.unwrap_or(CODEBOOK).max(1),
            durable: begin.options.durable,
            disk: Disk::new(begin.options.durable),
            metadata,
            names: HashSet::new(),
            bytes: 0,
            manifest,
            tracks: Vec::new(),
        })
    }
}

impl Codes {
    // That a record holds codes, which is what readers take it for.
    fn check(&self, record: &Stored<'_>) -> Result<()> {
        let (element, channels) = (Element::little(self.dtype), self.channels.max(1));
        let values = Values { bytes: record.bytes, element, channels, decode: Decode::Plain };
        let Some((at, code)) = first_outside(&values, self.codebook) else { return Ok(()) };
        let (frame, channel) = (at / channels, at % channels);
        Err(Error::config(format!(
            "{code} at frame {frame}, channel {channel} is no code: expected 0 to {}",
            self.codebook - 1
        ))
        .record(record.number)
        .hint("tracks hold the codes of a codec; shards hold any numbers"))
    }
}

impl Body for Codes {
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
        let name = format!("{TRACKS_FOLDER}/{stem}.pt");
        let file = files::write_on(&self.folder.join(&name), &file, &mut self.disk)?;
        self.tracks.push(self.sums.add(name, file)?);
        let mut fields = record.extras.clone();
        // Both sides are stored, and the name is the file's.
        fields.retain(|field, _| field != "name" && field != "mono");
        fields.entry("text").or_insert_with(|| Value::String(String::new()));
        fields.insert("channels".to_string(), json!(self.channels));
        fields.insert("length".to_string(), json!(record.len));
        let comma = if self.names.len() == 1 { "" } else { "," };
        let key = Value::String(format!("{stem}.pt"));
        self.metadata.write(format!("{comma}\n{key}: {}", Value::Object(fields)).as_bytes())
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        if self.names.is_empty() {
            return Err(no_records());
        }
        self.metadata.write(b"\n}\n")?;
        let metadata = self.sums.add(TRACKS_METADATA, self.metadata.finish(self.durable)?)?;
        let files = self.tracks.len() as u64;
        self.sums.finish(self.tracks.iter().chain([&metadata]), self.durable)?;
        let manifest = Manifest { records: Some(files), files: self.tracks, ..self.manifest };
        let mut text = manifest.to_text();
        if text.len() as u64 > MOST_BYTES {
            log::warn!("{files} tracks are more than a manifest lists: no hashes of them are kept");
            text = Manifest { files: Vec::new(), ..manifest }.to_text();
        }
        files::write(&self.folder.join(MANIFEST_FILE), text.as_bytes(), self.durable)?;
        self.disk.wait()?;
        files::sync_folder(&self.folder.join(TRACKS_FOLDER), self.durable)?;
        files::sync_folder(&self.folder, self.durable)?;
        Ok(Written { targets: vec![self.name], files, bytes: self.bytes })
    }
}

// What the file of a record is called, without its ending.
fn stem(extras: &Extras, number: u64) -> Result<String> {
    let Some(name) = extras.get("name") else { return Ok(format!("{number:06}")) };
    let is_plain = |name: &&str| {
        let unfit = |c: char| c.is_control() || c == '/' || c == '\\';
        !name.is_empty() && name.len() <= MOST_NAME && !name.starts_with('.') && !name.contains(unfit)
    };
    match name.as_str().filter(is_plain) {
        Some(name) => Ok(name.to_string()),
        None => Err(Error::config(format!("{name} is no name of a file"))
            .record(number)
            .field("name")
            .hint("a name has no / and no leading dot, and at most 240 bytes")),
    }
}
