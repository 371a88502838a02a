//! How formats are written: what a format says of its writer, and what the writer is given and promises.

mod options;
mod parts;
mod record;

use std::path::Path;

use serde_json::{Map, Value};

pub use self::options::{OwnOptions, WriteOptions, not_an_option, only_of_tokenize, option_names, writer};
pub use self::parts::{PartFile, Parts};
pub use self::record::{Stored, TO_COLUMN_HINT, each_number, other_columns};
use crate::array::DType;
use crate::error::{Error, Result};
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::output::{self, Disk, files};
use crate::row::{self, Row};

/// Statistics of a manifest that lists no data files because there may be very many: how many there are, and their bytes.
pub const CHUNK_FILES: &str = "chunk_files";
/// See [`CHUNK_FILES`].
pub const CHUNK_BYTES: &str = "chunk_bytes";

/// Every dtype of whole numbers, those that token IDs usually have first.
pub const ID_DTYPES: &[DType] =
    &[DType::U16, DType::U32, DType::U8, DType::U64, DType::I8, DType::I16, DType::I32, DType::I64];

/// The description of how a format is written; all but name and target have defaults, see [`WriteInfo::of`].
#[derive(Clone, Copy, Debug)]
pub struct WriteInfo {
    /// Name of the format that reads it.
    pub name: &'static str,
    /// What the path of an output names.
    pub target: Target,
    /// It can hold rows of named columns, see [`RecordWriter::add_row`].
    pub holds_rows: bool,
    /// The metadata of records of numbers is kept beside them.
    pub keeps_metadata: bool,
    /// It can continue behind what is there.
    pub appends: bool,
    /// dtype in which the writer is handed numbers, where that is not the one that they are stored as.
    pub handed_dtype: Option<DType>,
    /// The fewest bytes that a stored number takes, where these are not those of its dtype.
    pub bytes_per_number: Option<u64>,
    /// The array of its own that says which token IDs of a record are learned, where the format has one.
    pub mask_track: Option<MaskTrack>,
    /// dtypes of a token ID that `tokenize` may choose, the first that holds the vocabulary; none where it does not write
    /// this format.
    pub id_dtypes: &'static [DType],
    /// Its numbers need not be token IDs, though `tokenize` writes it.
    pub holds_any_numbers: bool,
    /// The largest token ID, where that is less than the dtype holds.
    pub largest_id: Option<i64>,
    /// A corpus is one stream of all documents, without borders between records.
    pub is_stream: bool,
    /// A sample of a corpus may have arrays of a byte per token beside it.
    pub holds_tracks: bool,
}

impl WriteInfo {
    /// A format of numbers alone, written in one run.
    pub const fn of(name: &'static str, target: Target) -> WriteInfo {
        WriteInfo {
            name,
            target,
            holds_rows: false,
            keeps_metadata: false,
            appends: false,
            handed_dtype: None,
            bytes_per_number: None,
            mask_track: None,
            id_dtypes: &[],
            holds_any_numbers: false,
            largest_id: None,
            is_stream: false,
            holds_tracks: false,
        }
    }

    /// Whether its numbers are token IDs.
    pub fn holds_ids(&self) -> bool {
        !self.id_dtypes.is_empty() && !self.holds_any_numbers
    }
}

/// What the path of an output names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file whose name ends in one of these; the first is the usual one, `""` stands for any.
    File(&'static [&'static str]),
    /// A folder.
    Folder,
    /// Two files of one stem, whose names end so.
    Pair([&'static str; 2]),
}

impl Target {
    /// What an output called `name` is called without its ending: what both names of a pair begin with.
    pub fn stem(self, name: &str) -> &str {
        let Target::Pair(endings) = self else { return name };
        let stem = endings.iter().find_map(|ending| name.strip_suffix(ending));
        stem.filter(|stem| !stem.is_empty()).unwrap_or(name)
    }
}

/// A format that can be written, with the options of its own.
pub trait WriteFormat: Send + Sync {
    /// Its description.
    fn info(&self) -> WriteInfo;

    /// Name of the format that reads it.
    fn name(&self) -> &'static str {
        self.info().name
    }

    /// Its options that decide what is written.
    fn describe(&self) -> Map<String, Value> {
        Map::new()
    }

    /// dtype that numbers of `given` are stored as; `asked` is what the caller wants.
    ///
    /// # Errors
    /// `Config` for one that cannot be.
    fn stored_dtype(&self, given: DType, asked: Option<DType>) -> Result<DType> {
        Ok(asked.unwrap_or(given))
    }

    /// The names that become visible beside each other for an output called `name`, in this order.
    fn names(&self, name: &str) -> Vec<String> {
        match self.info().target {
            Target::File(_) => names_of_file(name),
            Target::Folder | Target::Pair(_) => vec![name.to_string()],
        }
    }

    /// Whether a folder of this format has a file or folder of this name: only then is it replaced.
    fn is_own(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Whether a file of this name says what the folder holds: data without any such file may be somebody's own.
    fn is_description(&self, name: &str) -> bool {
        name == MANIFEST_FILE
    }

    /// Where `tokenize` puts a corpus of this format.
    fn corpus_place(&self) -> CorpusPlace {
        CorpusPlace::Whole
    }

    /// That what `--overwrite` would replace in the folder is of this format; only of [`CorpusPlace::Inside`].
    ///
    /// # Errors
    /// `Exists` naming what is something else.
    fn may_replace(&self, out: &Path) -> Result<()> {
        let _ = out;
        Ok(())
    }

    /// Whether the folder holds such a data set and nothing else, so that it may be replaced; an empty one may be too.
    fn is_one(&self, out: &Path) -> bool {
        files::names(out).is_ok_and(|names| {
            let is_described = names.is_empty() || names.iter().any(|name| self.is_description(name));
            is_described && names.iter().all(|name| self.is_own(name))
        })
    }

    /// Begins to write, or continues from a checkpoint.
    ///
    /// # Errors
    /// `Config` when the format cannot hold such records; `Io`; any, when a checkpoint cannot be continued from.
    fn begin(&self, begin: &Begin<'_>) -> Result<Box<dyn RecordWriter>>;
}

impl std::fmt::Debug for dyn WriteFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.name(), self.describe())
    }
}

/// Records that are being written. Dropped, it leaves what it wrote to whoever owns the work folder.
pub trait RecordWriter: Send {
    /// Whether records may come in parts.
    fn takes_parts(&self) -> bool {
        true
    }

    /// Writes the next record, or the next part of it.
    ///
    /// # Errors
    /// `Config` for what the format cannot hold; `Io`.
    fn add(&mut self, record: &Stored<'_>) -> Result<()>;

    /// Writes the next record, where records are rows: only where [`WriteInfo::holds_rows`]. The first one decides what
    /// the columns hold.
    ///
    /// # Errors
    /// As [`RecordWriter::add`].
    fn add_row(&mut self, number: u64, row: &Row) -> Result<()> {
        let _ = row;
        Err(Error::unsupported("this format holds numbers, not rows").record(number))
    }

    /// Writes the next record, where records are JSON: only where [`WriteInfo::holds_rows`]. An object is a row of its keys,
    /// any other value one of the column `value`.
    ///
    /// # Errors
    /// As [`RecordWriter::add_row`]; `Corrupt` for what is not JSON.
    fn add_json(&mut self, number: u64, text: &str) -> Result<()> {
        let json: Value = serde_json::from_str(text).map_err(|e| not_json(number).caused_by(e))?;
        self.add_row(number, &row::Value::from(json).into_row())
    }

    /// Hands what is in memory to files, and these to `disk`, which brings them there; says how to continue behind it,
    /// whatever is written to them later.
    ///
    /// # Errors
    /// `Unsupported` where `tokenize` does not write this format; `Io`.
    fn checkpoint(&mut self, disk: &mut Disk) -> Result<Value> {
        let _ = disk;
        Err(Error::unsupported("this format is written in one run"))
    }

    /// Completes the files, and writes `manifest` with what is known of them now.
    ///
    /// # Errors
    /// `Config` when the format cannot be without records; `Io`.
    fn finish(self: Box<Self>, manifest: Manifest) -> Result<Written>;
}

/// What was written.
pub struct Written {
    /// Data files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The manifest as it was written.
    pub manifest: Manifest,
}

/// An array of a byte per token, by which a format says which tokens are learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskTrack {
    /// Its name.
    pub name: &'static str,
    /// Whether 1 is stored beside the tokens that are not learned, instead of beside those that are.
    pub excludes: bool,
}

/// Where `tokenize` puts a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorpusPlace {
    /// The folder appears, whole.
    Whole,
    /// Names appear in a folder that may hold other things.
    Inside {
        /// In this order.
        names: Vec<String>,
        /// Names that belong to an output of other options, or of another format with the same data file. They go: left there,
        /// they would describe the new file wrongly.
        leaving: Vec<String>,
        /// Where the manifest is below the folder.
        manifest: String,
        /// What makes the folder another data set: both in one folder would be read as one of them.
        others: Vec<String>,
    },
}

/// What `tokenize` says of the corpus that it writes.
#[derive(Clone, Copy)]
pub struct Corpus<'a> {
    /// What each input is called, without its ending.
    pub inputs: &'a [String],
    /// Tokens in every sample; where there is none, each document is a record.
    pub sample_size: Option<u64>,
    /// Names of the arrays of a byte per token that are stored after the tokens of a sample, in this order.
    pub tracks: &'a [String],
}

/// What every writer is given when it begins.
#[derive(Clone, Copy)]
pub struct Begin<'a> {
    /// Where it writes: a folder that nobody sees.
    pub work: &'a Path,
    /// What the output is called, below `work`.
    pub name: &'a str,
    /// Where it will be visible.
    pub out: &'a Path,
    /// The description of a corpus, which is a folder, of a format that is a file or a pair elsewhere, too.
    pub corpus: Option<Corpus<'a>>,
    /// dtype of a stored number.
    pub dtype: DType,
    /// Numbers per value, of records `[T, C]`.
    pub channels: Option<usize>,
    /// Records are rows; the fields about numbers have no meaning then.
    pub are_rows: bool,
    /// Token IDs are below this, where that is known.
    pub vocab_size: Option<u64>,
    /// An EOS token is put after every record.
    pub appends_eos: bool,
    /// The array of [`WriteInfo::mask_track`] is written beside the tokens of each record.
    pub has_mask: bool,
    /// Values of all records, where that is known.
    pub total_values: Option<u64>,
    /// Bring everything to the disk before it becomes visible.
    pub fsync: bool,
    /// The data set that the records are put behind; only where [`WriteInfo::appends`].
    pub append_to: Option<&'a Path>,
    /// What [`RecordWriter::checkpoint`] gave.
    pub checkpoint: Option<&'a Value>,
}

impl Begin<'_> {
    /// That the numbers are token IDs which a format can hold.
    ///
    /// # Errors
    /// `Config`.
    pub fn only(&self, dtypes: &[DType], what: &str) -> Result<()> {
        // First of all: no dtype helps.
        if let Some(channels) = self.channels {
            let error = Error::config(format!("{what} hold records [T], and these are [T, {channels}]"));
            return Err(error.hint("choose a format that holds records [T, C]"));
        }
        if dtypes.contains(&self.dtype) {
            return Ok(());
        }
        let names: Vec<_> = dtypes.iter().map(|d| d.name()).collect();
        Err(Error::config(format!("{what} hold no {} values", self.dtype))
            .hint(format!("records [T] of {}: choose dtype", names.join(", "))))
    }

    /// The checkpoint, read; the default where a run begins.
    ///
    /// # Errors
    /// `Corrupt` for something else.
    pub fn continued<T: Default + serde::de::DeserializeOwned>(&self, what: &str) -> Result<T> {
        match self.checkpoint {
            None => Ok(T::default()),
            Some(kept) => serde_json::from_value(kept.clone())
                .map_err(|e| Error::corrupt(format!("no checkpoint of {what}")).caused_by(e)),
        }
    }
}

/// The names of a single file, its block checksums and its manifest, in the order in which they become visible: without the
/// manifest it would open as something else.
pub fn names_of_file(name: &str) -> Vec<String> {
    let [file, checksums, manifest] = output::names_beside(name);
    vec![checksums, manifest, file]
}

/// The error of a format that nobody could open without a token ID.
pub fn no_ids() -> Error {
    Error::config("no token ID to write: an empty file is not data")
}

/// The error of a record that should be JSON.
pub fn not_json(number: u64) -> Error {
    Error::corrupt("expected JSON, found something else").record(number)
}

/// The error of a format that nobody could open without a record.
pub fn no_records() -> Error {
    Error::config("no record to write: nobody could open the output")
}
