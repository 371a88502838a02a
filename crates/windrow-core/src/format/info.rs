//! The description of a format in tables, help and errors, and which options it follows.

use super::foreign::Foreign;
use super::option::{OpenOption, OptionRow};
use crate::store::key;

/// What a format is, in words and lists: recognising, `inspect`, `--to`, errors about options, the docs and the tests
/// walk it.
#[derive(Clone, Copy, Debug)]
pub struct FormatInfo {
    /// What `format=` takes and `inspect` prints.
    pub name: &'static str,
    /// What it is called in a sentence.
    pub title: &'static str,
    /// Files and folders that make it up.
    pub layout: &'static str,
    /// What a record is.
    pub records: &'static str,
    /// Which command or function writes it.
    pub written_by: &'static str,
    /// What its records can be.
    pub holds: &'static [Holds],
    /// How the names of its files end, where they hold series of numbers that a folder may mix with those of other
    /// formats. Empty for a format whose folders are of one kind.
    pub series_suffixes: &'static [&'static str],
    /// Of a folder, its files are series only where no other format's are: as tables they often describe those.
    pub gives_way: bool,
    /// How the names of its files end, where nothing else is called so: `verify` reports those that nothing describes.
    pub data_suffixes: &'static [&'static str],
    /// How names begin and end that other programs give to what is no data, beside it: a walk passes over them too.
    pub hidden: &'static [(&'static str, &'static str)],
    /// It has no type for text: a text is bytes, alone in a list.
    pub text_is_bytes: bool,
    /// A file of no byte is a part without records where there are other files.
    pub may_be_empty: bool,
    /// What names of its files say.
    pub names: FileNames,
    /// [`Format::open`](super::Format::open) itself compares the files with their manifest: more closely than by size and
    /// number of records, or only the part of them that is opened.
    pub checks_manifest: bool,
    /// What it finds in the files of a folder is declared in a manifest, so that opening the folder in a store asks for none of them.
    pub is_declared: bool,
    /// It holds checksums of its own, which say more than the hash of a manifest.
    pub has_own_checksums: bool,
    /// Below its folder there may be what does not belong to it.
    pub shares_folder: bool,
    /// What other programs write that it could take for its own.
    pub foreign: &'static [Foreign],
    /// Options of opening that it follows, of those that only some formats do.
    pub open_options: &'static [OpenOption],
    /// An option of opening that means this format, whatever else is there.
    pub chosen_by: Option<&'static str>,
    /// What `--to` says it writes; empty where it is only read.
    pub written_as: &'static str,
    /// Options of writing that it has beside those of every format; of [`Takes::Off`](super::Takes::Off) the help says what leaving it on
    /// does not.
    pub write_options: &'static [OptionRow],
    /// Those that only `tokenize` has.
    pub tokenize_options: &'static [OptionRow],
}

impl FormatInfo {
    /// Nothing but empty lists and texts: what a format leaves out.
    pub const NONE: FormatInfo = FormatInfo {
        name: "",
        title: "",
        layout: "",
        records: "",
        written_by: "",
        holds: &[],
        series_suffixes: &[],
        gives_way: false,
        data_suffixes: &[],
        hidden: &[],
        text_is_bytes: false,
        may_be_empty: false,
        names: FileNames::NONE,
        checks_manifest: false,
        is_declared: false,
        has_own_checksums: false,
        shares_folder: false,
        foreign: &[],
        open_options: &[],
        chosen_by: None,
        written_as: "",
        write_options: &[],
        tokenize_options: &[],
    };

    /// Whether it follows this option of opening.
    pub fn takes(&self, option: &str) -> bool {
        self.open_options.iter().any(|own| own.row.name == option)
    }

    /// Options of writing and tokenising that it has of its own.
    pub fn own_options(&self) -> impl Iterator<Item = &'static OptionRow> {
        self.write_options.iter().chain(self.tokenize_options)
    }

    /// Whether its whole numbers are token IDs, not measurements.
    pub fn is_for_tokens(&self) -> bool {
        self.holds.contains(&Holds::Tokens) && !self.holds.contains(&Holds::Series)
    }

    /// Whether records `[T, C]` of whole numbers are audio codes, where `is_grid` says that these are such.
    pub fn holds_codes(&self, is_grid: bool) -> bool {
        self.holds == [Holds::Codes] || (is_grid && self.holds.contains(&Holds::Codes))
    }

    /// Whether it can be written.
    pub fn is_written(&self) -> bool {
        !self.written_as.is_empty()
    }

    /// Whether a walk passes over a name, as it is no data of this format.
    pub fn hides(&self, name: &str) -> bool {
        let fits = |(start, end): &(&str, &str)| {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        };
        self.hidden.iter().any(fits)
    }

    /// Whether this is one of its series files, by its name, which may be in capitals.
    pub fn is_series_name(&self, name: &str) -> bool {
        self.series_suffixes.iter().any(|suffix| key::has_suffix(name, suffix))
    }
}

/// What names of a format's files say.
#[derive(Clone, Copy, Debug)]
pub struct FileNames {
    /// The file that is one data set together with the file of this name.
    pub other_half: fn(&str) -> Option<String>,
    /// Files besides that half which are read with the one of this name, where they are there.
    pub companions: fn(&str) -> Vec<String>,
    /// What a compressed file was called before, where its manifest still describes it as it was.
    pub before: fn(&str) -> Option<&str>,
    /// What to do about a file beside the data that is not as it was written.
    pub edited: fn(&str) -> Option<&'static str>,
    /// Whether a file may lack block checksums; `None` for a name that none of its files has.
    pub may_lack_checksums: fn(&str) -> Option<bool>,
    /// The file beside one that keeps the block checksums of both.
    pub checksums_beside: fn(&str) -> Option<String>,
    /// The file beside one that is its block checksums and nothing else.
    pub bare_checksums: fn(&str) -> Option<String>,
    /// The folder that keeps the block checksums of the data beside it, where no other one is named for the index.
    pub checksums_folder: Option<&'static str>,
}

impl FileNames {
    /// Nothing.
    pub const NONE: FileNames = FileNames {
        other_half: |_| None,
        companions: |_| Vec::new(),
        before: |_| None,
        edited: |_| None,
        may_lack_checksums: |_| None,
        checksums_beside: |_| None,
        bare_checksums: |_| None,
        checksums_folder: None,
    };
}

/// What a record can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holds {
    /// Token IDs `[T]`.
    Tokens,
    /// Numbers `[T]` or `[T, C]`.
    Series,
    /// Audio codes `[T, C]`.
    Codes,
    /// JSON values, or rows of named columns.
    Rows,
}

impl Holds {
    /// `tokens`, `series`, `codes` or `rows`.
    pub fn name(self) -> &'static str {
        match self {
            Holds::Tokens => "tokens",
            Holds::Series => "series",
            Holds::Codes => "codes",
            Holds::Rows => "rows",
        }
    }
}
