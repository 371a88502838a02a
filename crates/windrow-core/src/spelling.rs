//! How a frontend spells what a text names: an option, or something to call.
//!
//! The texts of errors, hints and warnings are for Rust, for Python and for a command line alike. What each of them spells in
//! its own way is a mark in the text:
//!
//! | mark | Rust | Python | command line |
//! |---|---|---|---|
//! | `@dtype@` | `.dtype(…)` | `dtype=` | `--dtype` |
//! | `@dtype=uint16@` | `.dtype("uint16")` | `dtype="uint16"` | `--dtype uint16` |
//! | `@trust=true@` | `.trust(true)` | `trust=True` | `--trust` |
//! | `@the dtype@` | `dtype` | `dtype` | `--dtype` |
//! | `@blocks=size=9,pool=2@` | `.shuffle(Blocks::new().size(9).pool(2))` | `shuffle=wr.Blocks(size=9, pool=2)` | `--shuffle blocks:size=9,pool=2` |
//! | `@read_record@`, a row of [`WORDS`] | `Dataset::row` | `ds[i]` | `` `windrow peek` `` |
//!
//! A value in quotes may be any text. Everything else with an `@` stays as it is.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

/// Who reads the texts of this process.
#[derive(Clone, Default)]
pub enum Frontend {
    /// A program in Rust.
    #[default]
    Rust,
    /// Python.
    Python,
    /// Somebody at a command line; the function spells an option.
    CommandLine(Arc<dyn Fn(&Mark<'_>) -> String + Send + Sync>),
}

impl std::fmt::Debug for Frontend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Frontend::Rust => "Rust",
            Frontend::Python => "Python",
            Frontend::CommandLine(_) => "CommandLine",
        })
    }
}

/// An option that a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark<'a> {
    /// Its name.
    pub name: &'a str,
    /// The value that it is to have.
    pub value: Option<&'a str>,
    /// Whether it is spoken of, not to be typed: `dtype was given`.
    pub is_spoken_of: bool,
}

/// Something that is not an option, or an option whose name says too little, with its three spellings.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// What a mark has between its `@`.
    pub mark: &'static str,
    /// What Rust calls it.
    pub rust: &'static str,
    /// What Python calls it.
    pub python: &'static str,
    /// What is typed for it.
    pub command_line: &'static str,
}

const fn word(
    mark: &'static str,
    rust: &'static str,
    python: &'static str,
    command_line: &'static str,
) -> Word {
    Word { mark, rust, python, command_line }
}

/// What is spelt as a whole.
pub const WORDS: &[Word] = &[
    word("drop_last=true", ".drop_last(true)", "drop_last=True", "no --no-drop-last"),
    word("dropping_last", "with .drop_last(true)", "with drop_last", "without --no-drop-last"),
    word("last=repeat", ".last(LastBatch::Repeat)", "last=\"repeat\"", "--last repeat"),
    word("shuffle=true", ".shuffle(true)", "shuffle=True", "--shuffle on"),
    word("shuffle=false", ".shuffle(false)", "shuffle=False", "--no-shuffle"),
    word("shuffle=blocks", ".shuffle(Blocks::new())", "shuffle=wr.Blocks()", "--shuffle blocks"),
    word("read_record", "Dataset::row", "ds[i]", "`windrow peek`"),
    word("mix", "windrow::mix", "wr.mix", "`wr.mix` in Python"),
    word("trace", "Plan::trace", "wr.trace", "`windrow trace`"),
    word("state", "Loader::state", "state_dict()", "state_dict() of a loader in Python"),
    word("read_rows", "Dataset::row gives rows", "ds[i] gives rows", "`windrow peek` shows rows"),
    word("extras", "Dataset::extras", "ds.extras(i)", "`windrow peek` shows it"),
    word("select_numbers", "Recipe::fill_numbers", "select=numbers", "--select numbers.npy"),
    word("from_frame", "Dataset::in_memory", "wr.from_frame", "wr.from_frame in Python"),
    word("write", "windrow::prepare::convert_with", "wr.write", "`windrow convert`"),
    word("read_audio", "the crate windrow-audio", "wr.read_audio", "wr.read_audio in Python"),
    word("coverage", "Samples::coverage", "view.coverage()", "`windrow coverage`"),
    word(
        "diff_recipe",
        "windrow::compare, with the recipe of that run,",
        "wr.diff(loader, recipe), with the recipe() of the loader of that run,",
        "`windrow diff`, with the recipe of that run,",
    ),
    word("rows_view", "Dataset::rows", "rows()", "--rows"),
    word("open_with_time", ".axis(\"time\")", "wr.open(x, axis=\"time\")", "--axis time"),
    word("open_with_eos", ".document_eos(ID)", "wr.open(path, document_eos=ID)", "--document-eos ID"),
    word("pack_when_read", "the view pack", "ds.pack(N)", "--pack N of other commands"),
    word("ranks", ".rank(rank, world_size)", "rank=, world_size=", "--rank, --world-size"),
    word("one_rank", ".rank(0, 1)", "rank=0, world_size=1", "--rank 0 --world-size 1"),
];

/// Options that frontends call by names of their own: of the mark, of Rust, of Python. What is typed for one is a matter of the
/// command line.
pub const NAMES: &[(&str, &str, &str)] = &[
    // The dtype of values that are delivered or written; `dtype` is that of the files.
    ("as_dtype", "dtype", "dtype"),
    // The columns of the view of rows; `columns` are those that are opened.
    ("row_columns", "columns", "columns"),
    // Of batches; `multiple` is that of documents in a row.
    ("batch_multiple", "multiple", "multiple"),
];

static FRONTEND: RwLock<Frontend> = RwLock::new(Frontend::Rust);

/// Spells texts for this frontend from now on, and gives the one before.
///
/// ```
/// use windrow_core::{Error, spelling};
///
/// let before = spelling::speak(spelling::Frontend::Python);
/// assert_eq!(Error::config("leave @dtype@ out").message(), "leave dtype= out");
/// spelling::speak(before);
/// assert_eq!(Error::config("leave @dtype@ out").message(), "leave .dtype(…) out");
/// ```
pub fn speak(frontend: Frontend) -> Frontend {
    let mut spoken = FRONTEND.write().unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut spoken, frontend)
}

/// A text with its marks as the frontend of this process spells them.
pub fn spelt(text: String) -> String {
    if text.contains('@') {
        let frontend = FRONTEND.read().unwrap_or_else(PoisonError::into_inner).clone();
        frontend.spell(&text)
    } else {
        text
    }
}

impl Frontend {
    /// A text with its marks as this frontend spells them.
    pub fn spell(&self, text: &str) -> String {
        let mut said = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('@') {
            let (before, from) = rest.split_at(at);
            said.push_str(before);
            // Within a word it is an address.
            let is_apart = !said.ends_with(|c: char| c.is_alphanumeric());
            match mark_at(from).filter(|_| is_apart) {
                Some((mark, behind)) => {
                    said.push_str(&self.one(&mark));
                    rest = behind;
                }
                None => {
                    said.push('@');
                    rest = &from[1..];
                }
            }
        }
        said + rest
    }

    fn one(&self, mark: &Mark<'_>) -> String {
        let whole = match mark.value {
            Some(value) => Cow::from(format!("{}={value}", mark.name)),
            None => Cow::from(mark.name),
        };
        if let Some(word) = WORDS.iter().find(|word| word.mark == whole) {
            return match self {
                Frontend::Rust => word.rust,
                Frontend::Python => word.python,
                Frontend::CommandLine(_) => word.command_line,
            }
            .to_string();
        }
        if let ("blocks", Some(numbers)) = (mark.name, mark.value) {
            return self.blocks(numbers);
        }
        let own = NAMES.iter().find(|(name, ..)| *name == mark.name);
        match self {
            Frontend::Rust => in_rust(own.map_or(mark.name, |own| own.1), mark),
            Frontend::Python => in_python(own.map_or(mark.name, |own| own.2), mark),
            Frontend::CommandLine(typed) => typed(mark),
        }
    }
}

impl Frontend {
    // The order by blocks of these numbers, as `size=2048,lanes=64`.
    fn blocks(&self, numbers: &str) -> String {
        match self {
            Frontend::Rust => {
                let set =
                    |number: &str| number.split_once('=').map(|(name, number)| format!(".{name}({number})"));
                let set: String = numbers.split(',').filter_map(set).collect();
                format!(".shuffle(Blocks::new(){set})")
            }
            Frontend::Python => format!("shuffle=wr.Blocks({})", numbers.replace(',', ", ")),
            Frontend::CommandLine(_) => format!("--shuffle blocks:{numbers}"),
        }
    }
}

/// The mark that a text begins with, and what comes after it.
fn mark_at(text: &str) -> Option<(Mark<'_>, &str)> {
    let text = text.strip_prefix('@')?;
    let (is_spoken_of, text) = match text.strip_prefix("the ") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let end = text.find(|c: char| !c.is_ascii_lowercase() && c != '_').filter(|end| *end > 0)?;
    let (name, rest) = text.split_at(end);
    let (value, behind) = match rest.strip_prefix('=').filter(|_| !is_spoken_of) {
        Some(from) => {
            let value = value_at(from)?;
            (Some(value), from[value.len()..].strip_prefix('@')?)
        }
        None => (None, rest.strip_prefix('@')?),
    };
    if behind.starts_with(|c: char| c.is_alphanumeric()) {
        None
    } else {
        Some((Mark { name, value, is_spoken_of }, behind))
    }
}

// In quotes as `{:?}` writes it, or up to the `@`.
fn value_at(text: &str) -> Option<&str> {
    if !text.starts_with('"') {
        return text.split_once('@').map(|(value, _)| value).filter(|value| !value.contains('\n'));
    }
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return Some(&text[..=at]),
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    None
}

// Whether a value is written without quotes: a number, a word of the language, several values, or one that is not named.
fn is_bare(value: &str) -> bool {
    value.parse::<f64>().is_ok()
        || ["true", "false", "none"].contains(&value)
        || value.contains(['"', '(', '[', '{', '…'])
}

fn in_rust(name: &str, mark: &Mark<'_>) -> String {
    match mark.value {
        _ if mark.is_spoken_of => name.to_string(),
        None => format!(".{name}(…)"),
        Some("none") => format!(".{name}(None)"),
        Some(value) if is_bare(value) => format!(".{name}({value})"),
        Some(value) => format!(".{name}(\"{value}\")"),
    }
}

fn in_python(name: &str, mark: &Mark<'_>) -> String {
    match mark.value {
        _ if mark.is_spoken_of => name.to_string(),
        None => format!("{name}="),
        Some("true") => format!("{name}=True"),
        Some("false") => format!("{name}=False"),
        Some("none") => format!("{name}=None"),
        Some(value) if is_bare(value) => format!("{name}={value}"),
        Some(value) => format!("{name}=\"{value}\""),
    }
}

/// Warns of something; marks in the text are spelt.
#[macro_export]
macro_rules! warn {
    ($($text:tt)+) => {
        $crate::log::warn!("{}", $crate::spelling::spelt(format!($($text)+)))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(mark: &Mark<'_>) -> String {
        format!("<{} {:?}>", mark.name, mark.value)
    }

    fn check(text: &str, rust: &str, python: &str, command_line: &str) {
        assert_eq!(Frontend::Rust.spell(text), rust);
        assert_eq!(Frontend::Python.spell(text), python);
        assert_eq!(Frontend::CommandLine(Arc::new(typed)).spell(text), command_line);
    }

    #[test]
    fn marks_are_spelt() {
        check("leave @dtype@ out", "leave .dtype(…) out", "leave dtype= out", "leave <dtype None> out");
        check(
            "@dtype=uint16@, @size=3@",
            ".dtype(\"uint16\"), .size(3)",
            "dtype=\"uint16\", size=3",
            "<dtype Some(\"uint16\")>, <size Some(\"3\")>",
        );
        check("@trust=true@.", ".trust(true).", "trust=True.", "<trust Some(\"true\")>.");
        check(
            "(@mask_column=none@)",
            "(.mask_column(None))",
            "(mask_column=None)",
            "(<mask_column Some(\"none\")>)",
        );
        check("@fit=(0.0, 0.7)@", ".fit((0.0, 0.7))", "fit=(0.0, 0.7)", "<fit Some(\"(0.0, 0.7)\")>");
        check(
            r#"@split="a@\"b"@ here"#,
            r#".split("a@\"b") here"#,
            r#"split="a@\"b" here"#,
            r#"<split Some("\"a@\\\"b\"")> here"#,
        );
        check("@the eos@ was given", "eos was given", "eos was given", "<eos None> was given");
        check("@last=repeat@", ".last(LastBatch::Repeat)", "last=\"repeat\"", "--last repeat");
        check(
            "@blocks=size=9,pool=2@",
            ".shuffle(Blocks::new().size(9).pool(2))",
            "shuffle=wr.Blocks(size=9, pool=2)",
            "--shuffle blocks:size=9,pool=2",
        );
        check("read @read_record@", "read Dataset::row", "read ds[i]", "read `windrow peek`");
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "me@mail@host",
            "a@b.c, d@e.f",
            "@ @@ @Big@ @a b@ @9@",
            "@a",
            "@a=",
            "@a=\"b@",
            "@dtype@s",
            "@a=b\nc@",
            "@the@n",
            "@the a=b@",
        ] {
            check(text, text, text, text);
        }
    }
}
