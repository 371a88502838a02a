//! How to open data; what is not given is found out.

use super::Format;
use crate::array::DType;
use crate::error::{Error, Result};
use crate::format::FormatInfo;

/// How to open; what is not said is found out.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Name of the format; `None` recognises it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// dtype of a stored number, where the files do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<DType>,
    /// Ids must be below this; checked once over all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocab_size: Option<u64>,
    /// The ID that ends each document of raw token files: documents are records then. Found once, kept in the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eos: Option<i64>,
    /// Name of the index folder of the byte-offset format, `index` if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_folder: Option<String>,
    /// Hash of the tokenizer that must have made the tokens; the face takes its name or path as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// Accept files that an index names outside its base folder.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_outside: bool,
    /// Accept data whose size or time differs from what the manifest says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trust: bool,
    /// Read missing chunks of a chunked array as zeros instead of refusing them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fill_missing: bool,
    /// Bytes that all of the cache may take, what is expanded, converted and fetched together; if not given what the environment
    /// says, and of one file 1,000 times a compressed one, 16 times a series that is converted, and 64 MiB. Of URLs, 0 keeps
    /// what is fetched in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_limit: Option<u64>,
    /// Of URLs, the folder in which what is fetched is kept; the usual cache folder if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<std::path::PathBuf>,
    /// Of URLs, what their store's own tools call them: `endpoint_url`, `region`, `anon`, `headers.NAME`. They may hold
    /// secrets, so no recipe has them.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub store_options: std::collections::BTreeMap<String, String>,
    /// Of URLs, the longest that a read may take with all its attempts; 300 seconds if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<std::time::Duration>,
    /// Of URLs, bytes that are fetched ahead and held in memory; 256 MiB if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<u64>,
    /// Bytes of decoded chunks that an opened chunked array keeps in memory; 256 MiB if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// The split that is meant, `train` or `validation`: the folder of that name below the path, where the face goes, else
    /// the files whose names say it ([`Probe::only_split`](crate::format::Probe::only_split)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Files of lines that are all empty hold no records, instead of being refused as unfinished copies.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_empty: bool,
    /// A part of the records, as a split made it; the face takes it out of what a format opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// Records that are left out, of those of the split where there is one, as `[from, to)`; ascending and apart from each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<(u64, u64)>,
    /// A part of each record in time, as a split by time made it; the face takes it out of what a format opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<PeriodOfEach>,
    /// The key whose values are the series, of records that are objects; `sequence` if not given, else the only key of
    /// numbers that the first record has. The others are extras.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Only these columns of records that are rows: a record is a row of them. Of CSV the channels, in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// Which of the columns beside token IDs say what is learned: masks of 0 and 1, or labels, joined by *and*. `None` finds those of
    /// [`MASK_COLUMNS`](crate::format::MASK_COLUMNS); an empty list is no mask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask_column: Option<Vec<String>>,
    /// What a record of bytes holds, where the format does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    /// What the first axis of an array is; if not given, `[N, T]` are N series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<Axis>,
    /// How local files are read.
    pub io: crate::store::Io,
    /// When what was written is compared with the block checksums that were kept of it.
    #[serde(skip_serializing_if = "is_at_opening")]
    pub verify: Verify,
}

/// What the first axis of an array `[T, C]` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Time: the array is one series of C channels.
    Time,
}

/// What a record of bytes holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// Bytes; with a dtype numbers.
    Bytes,
    /// UTF-8 text.
    Text,
    /// A JSON value.
    Json,
    /// A tf.train.Example.
    Example,
}

/// When damage is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Sizes, headers and indices when the data is opened.
    #[default]
    AtOpening,
    /// Also every block of 4 KiB that is read, each time, against its block checksum; data without them is refused.
    Always,
}

fn is_at_opening(verify: &Verify) -> bool {
    *verify == Verify::AtOpening
}

/// An option that only some formats follow.
struct OfSome {
    name: &'static str,
    is_given: fn(&Options) -> bool,
    /// Why a format does not follow it, and what to do.
    why: &'static str,
    hint: &'static str,
}

const OF_SOME: &[OfSome] = &[
    OfSome {
        name: "column",
        is_given: |options| options.column.is_some(),
        why: "has no columns",
        hint: "it names the key of a series in JSON, YAML and pickles, or a column of CSV",
    },
    OfSome {
        name: "columns",
        is_given: |options| options.columns.is_some(),
        why: "has no rows of columns",
        hint: "it names the keys or columns that make a row, or the channels of a CSV",
    },
    OfSome {
        name: "payload",
        is_given: |options| options.payload.is_some(),
        why: "says itself what a record holds",
        hint: "it is for records of bytes: TFRecord, ArrayRecord and Bagz",
    },
    OfSome {
        name: "axis",
        is_given: |options| options.axis.is_some(),
        why: "says itself what is a series",
        hint: "it is for arrays [T, C] that are one series",
    },
    OfSome {
        name: "eos",
        is_given: |options| options.eos.is_some(),
        why: "has records of its own",
        hint: "it splits raw token files into documents; the view pack puts an EOS token between records with @eos@",
    },
    OfSome {
        name: "index_folder",
        is_given: |options| options.index_folder.is_some(),
        why: "has no index folder",
        hint: "it names the folder of a byte-offset index; leave it out",
    },
    OfSome {
        name: "fill_missing",
        is_given: |options| options.fill_missing,
        why: "has no chunks that may be missing",
        hint: "it is for chunked arrays; leave it out",
    },
    OfSome {
        name: "memory_limit",
        is_given: |options| options.memory_limit.is_some(),
        why: "keeps no decoded chunks in memory",
        hint: "it is for chunked arrays; leave it out",
    },
];

impl Options {
    /// The format of `table` that one of the options means.
    pub fn chosen(&self, table: &[&dyn Format]) -> Option<&'static str> {
        let given = |name: &str| OF_SOME.iter().any(|option| option.name == name && (option.is_given)(self));
        table
            .iter()
            .map(|format| format.info())
            .find(|info| info.chosen_by.is_some_and(given))
            .map(|info| info.name)
    }

    /// That no option was given which `format` does not follow: it would be without effect.
    ///
    /// # Errors
    /// `Config` naming the option.
    pub fn only_those_of(&self, format: &FormatInfo) -> Result<()> {
        if let (Some(column), Some(columns)) = (&self.column, &self.columns) {
            return Err(Error::config(format!("@column={column:?}@ and @columns={columns:?}@ were given"))
                .field("columns")
                .hint("@column@ makes numbers of one column, @columns@ rows of several: give one of them"));
        }
        match OF_SOME.iter().find(|option| (option.is_given)(self) && !format.takes(option.name)) {
            None => Ok(()),
            Some(OfSome { name, why, hint, .. }) => {
                let option = if *name == "eos" { "document_eos" } else { name };
                let error = Error::config(format!("@the {option}@ was given, but {} {why}", format.name));
                Err(error.field(*name).hint(*hint))
            }
        }
    }

    /// That no option of token IDs was given, where records are none.
    ///
    /// # Errors
    /// `Config` naming the option.
    pub fn refuse_those_of_ids(&self, why: &str, hint: &str) -> Result<()> {
        let asked = [
            ("dtype", self.dtype.is_some()),
            ("vocab_size", self.vocab_size.is_some()),
            ("tokenizer", self.tokenizer.is_some()),
        ];
        match asked.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((name, _)) => {
                Err(Error::config(format!("@the {name}@ was given, but {why}")).field(*name).hint(hint))
            }
        }
    }
}

/// One of the parts that a split by time gives.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeriodOfEach {
    /// Where it begins, as a fraction of a record's values.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Values before it that windows may read as their context.
    #[serde(default, skip_serializing_if = "is_none")]
    pub before: u64,
    /// Where the first part ends, by whose statistics scalers scale all parts.
    pub fit: f64,
}

fn is_none(n: &u64) -> bool {
    *n == 0
}

/// One of the two parts that a seeded split by whole records gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// Records of the validation part.
    pub n_validation: u64,
    /// Keys which records these are.
    pub seed: u64,
    /// This is the validation part; else it is all that is left.
    pub is_validation: bool,
}
