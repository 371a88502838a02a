//! Errors that say what, where and how to fix it: kind + place (file · record · byte) + cause + hint.

use std::fmt;

use crate::secrets::{text_without_secrets, without_secrets};
use crate::spelling::spelt;

/// What went wrong, as far as a caller can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A path, record name or tokenizer that is not there.
    NotFound,
    /// No format recognises what is at the path.
    Unrecognised,
    /// The bytes contradict the format, the manifest or each other.
    Corrupt,
    /// The data changed after it was indexed.
    Stale,
    /// A number outside `0..len`.
    OutOfRange,
    /// Understood, but not readable or writable by this build.
    Unsupported,
    /// Two things that must agree do not: a state and a plan, a tokenizer and its data.
    Mismatch,
    /// An option or a combination of options that cannot work.
    Config,
    /// The output exists already.
    Exists,
    /// An operating-system call failed.
    Io,
    /// Out of memory.
    Memory,
    /// The user asked to stop.
    Interrupted,
}

impl Kind {
    /// The kind's name as `--json` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::NotFound => "not_found",
            Kind::Unrecognised => "unrecognised",
            Kind::Corrupt => "corrupt",
            Kind::Stale => "stale",
            Kind::OutOfRange => "out_of_range",
            Kind::Unsupported => "unsupported",
            Kind::Mismatch => "mismatch",
            Kind::Config => "config",
            Kind::Exists => "exists",
            Kind::Io => "io",
            Kind::Memory => "memory",
            Kind::Interrupted => "interrupted",
        }
    }
}

/// Where it went wrong; each part is known or absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Path or key of the file.
    pub file: Option<String>,
    /// Record number, from 0.
    pub record: Option<u64>,
    /// Byte offset in the file.
    pub byte: Option<u64>,
    /// Field of a header, an index or a manifest.
    pub field: Option<String>,
}

/// windrow's only error.
///
/// `{}` is one line: what happened, and its cause. `{:#}` adds lines for the place and the hint. The cause is in both, so
/// [`source`](std::error::Error::source) begins after it, and reporters that print a chain of sources say it once; it is
/// [`Error::cause`].
///
/// ```
/// use std::error::Error as _;
///
/// let cause = std::io::Error::other("the disk is gone");
/// let error = windrow_core::Error::corrupt("shard holds 1 value, meta.json promises 5")
///     .at("corpus/a.bin")
///     .record(3)
///     .caused_by(cause)
///     .hint("copy it again");
/// assert_eq!(error.to_string(), "shard holds 1 value, meta.json promises 5: the disk is gone");
/// assert_eq!(
///     format!("{error:#}"),
///     "shard holds 1 value, meta.json promises 5: the disk is gone\n  at: corpus/a.bin (record 3)\n  hint: copy it again"
/// );
/// assert!(error.source().is_none() && error.cause().is_some());
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    message: String,
    place: Place,
    hint: Option<String>,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    is_like_absent: bool,
}

/// `std::result::Result` with windrow's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of this kind; the message quotes what was found and what was expected.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            message: shown(message.into()),
            place: Place::default(),
            hint: None,
            cause: None,
            is_like_absent: false,
        }))
    }

    /// A [`Kind::Corrupt`] error.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(Kind::Corrupt, message)
    }

    /// A [`Kind::Config`] error.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(Kind::Config, message)
    }

    /// A [`Kind::NotFound`] error.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    /// A [`Kind::Unsupported`] error.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, message)
    }

    /// A [`Kind::Unsupported`] error: `feature` is a cargo feature of `windrow` that this build does not have.
    pub fn built_without(feature: &str) -> Self {
        Self::unsupported(format!(
            "windrow was built without `{feature}`: `cargo add windrow --features {feature}`"
        ))
        .hint(format!("for the command: `cargo install windrow-cli --features {feature}`"))
    }

    /// A [`Kind::Mismatch`] error.
    pub fn mismatch(message: impl Into<String>) -> Self {
        Self::new(Kind::Mismatch, message)
    }

    /// A [`Kind::Memory`] error: there is not so much.
    pub fn memory(what: impl fmt::Display) -> Self {
        Self::new(Kind::Memory, format!("no memory for {what}"))
    }

    /// A [`Kind::OutOfRange`] error for `index` in something of `len` parts.
    pub fn out_of_range(what: &str, index: impl fmt::Display, len: u64) -> Self {
        Self::new(Kind::OutOfRange, format!("{what} {index} is out of range: there are {len}"))
    }

    /// An operating-system error about `file`.
    pub fn io(doing: &str, file: impl AsRef<std::path::Path>, cause: std::io::Error) -> Self {
        let kind = match cause.kind() {
            // Below a file there is nothing either.
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Kind::NotFound,
            std::io::ErrorKind::AlreadyExists => Kind::Exists,
            _ => Kind::Io,
        };
        let error = Self::new(kind, format!("cannot {doing}")).at(file);
        match cause.raw_os_error() {
            Some(libc::EMFILE) => error.hint("raise the limit of open files: `ulimit -n`"),
            Some(libc::ENFILE) => error.hint("too many files are open on this machine: close other programs"),
            _ => error,
        }
        .caused_by(cause)
    }

    /// Names the file; of a URL without a query or a password, since errors are read by others.
    #[must_use]
    pub fn at(mut self, file: impl AsRef<std::path::Path>) -> Self {
        self.0.place.file = Some(without_secrets(&file.as_ref().display().to_string()));
        self
    }

    /// Names the record.
    #[must_use]
    pub fn record(mut self, record: u64) -> Self {
        self.0.place.record = Some(record);
        self
    }

    /// Names the byte.
    #[must_use]
    pub fn byte(mut self, byte: u64) -> Self {
        self.0.place.byte = Some(byte);
        self
    }

    /// Names the field of a header, index or manifest.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.0.place.field = Some(field.into());
        self
    }

    /// Says how to fix it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(shown(hint.into()));
        self
    }

    /// Adds the cause, printed once at the edge.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Adds what is missing in the place, keeps what is there.
    #[must_use]
    pub fn or_at(self, file: impl AsRef<std::path::Path>) -> Self {
        if self.0.place.file.is_some() { self } else { self.at(file) }
    }

    /// Renames record `inside`, as a source counts it, to `outside`, as its caller counts it.
    #[must_use]
    pub(crate) fn renumbered(self, inside: u64, outside: u64) -> Self {
        if self.place().record == Some(inside) { self.record(outside) } else { self }
    }

    /// Marks the refusal of a store that refuses what is not there, too: whoever may read objects but not list them gets 403
    /// for both. What need not be there [is absent](Error::is_absent) then.
    #[must_use]
    pub fn like_absent(mut self) -> Self {
        self.0.is_like_absent = true;
        self
    }

    /// Nothing is there; or a store refuses to say so, as [`Error::like_absent`] has it.
    pub fn is_absent(&self) -> bool {
        self.kind() == Kind::NotFound || self.0.is_like_absent
    }

    /// Stopped, or refused by the system, as when too many files are open or a store does not answer: nothing is known of the
    /// data then. Not what [is absent](Error::is_absent).
    pub fn is_of_the_run(&self) -> bool {
        matches!(self.kind(), Kind::Interrupted | Kind::Io | Kind::Memory) && !self.is_absent()
    }

    /// Copies the error for another caller who waited for it; of its cause only the text.
    #[must_use]
    pub fn again(&self) -> Self {
        let Inner { kind, message, place, hint, cause, is_like_absent } = self.0.as_ref();
        let cause = cause.as_ref().map(|cause| cause.to_string().into());
        Error(Box::new(Inner {
            kind: *kind,
            message: message.clone(),
            place: place.clone(),
            hint: hint.clone(),
            cause,
            is_like_absent: *is_like_absent,
        }))
    }

    /// What a caller can act on.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What happened, without place and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// What caused it.
    pub fn cause(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.0.cause.as_deref()
    }

    /// How to fix it.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

// Most texts name no URL.
fn shown(text: String) -> String {
    let text = spelt(text);
    if text.contains("://") { text_without_secrets(&text) } else { text }
}

// File names and file content reach error texts: control characters must not reach a terminal, nor those that turn the
// direction of text, nor a megabyte.
fn safe(text: &str) -> String {
    const MOST: usize = 2_000;
    let mut out = String::with_capacity(text.len().min(MOST));
    for c in text.chars().take(MOST) {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if turns || c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    if text.chars().nth(MOST).is_some() {
        out.push('…');
    }
    out
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.record.map(|r| format!("record {r}")));
        parts.extend(self.byte.map(|b| format!("byte {b}")));
        parts.extend(self.field.as_deref().map(safe));
        match (&self.file, parts.is_empty()) {
            (Some(file), true) => f.write_str(&safe(file)),
            (Some(file), false) => write!(f, "{} ({})", safe(file), parts.join(", ")),
            (None, _) => f.write_str(&parts.join(", ")),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&safe(&self.0.message))?;
        if let Some(cause) = &self.0.cause {
            write!(f, ": {}", safe(&shown(cause.to_string())))?;
        }
        if !f.alternate() {
            return Ok(());
        }
        if self.0.place != Place::default() {
            write!(f, "\n  at: {}", self.0.place)?;
        }
        if let Some(hint) = &self.0.hint {
            write!(f, "\n  hint: {}", safe(hint))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self:#}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // `Display` names the cause itself.
        self.0.cause.as_deref()?.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_what_where_hint() {
        let e = Error::corrupt("shard holds 1 value, meta.json promises 5")
            .at("a/b.bin")
            .record(3)
            .hint("copy again");
        assert_eq!(e.to_string(), "shard holds 1 value, meta.json promises 5");
        assert_eq!(
            format!("{e:#}"),
            "shard holds 1 value, meta.json promises 5\n  at: a/b.bin (record 3)\n  hint: copy again"
        );
    }

    #[test]
    fn urls_are_shown_without_what_lets_others_in() {
        let url = "https://me:word@host/a.bin?sig=SECRET";
        let e = Error::corrupt(format!("{url} is short"))
            .at(url)
            .hint(format!("fetch {url}"))
            .caused_by(Error::config(format!("sent for url ({url})")));
        assert_eq!(
            format!("{e:#}"),
            "https://host/a.bin is short: sent for url (https://host/a.bin)\n  at: https://host/a.bin\n  hint: fetch https://host/a.bin"
        );
        assert_eq!(e.place().file.as_deref(), Some("https://host/a.bin"));
        assert_eq!(Error::corrupt("").at("a?b@c:d").place().file.as_deref(), Some("a?b@c:d"));
    }

    #[test]
    fn a_chain_of_sources_says_each_cause_once() {
        let io = std::io::Error::other("no space");
        let error = Error::config("cannot write").caused_by(Error::corrupt("a part").caused_by(io));
        let mut said = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(next) = source {
            said.push_str(&format!(": {next}"));
            source = next.source();
        }
        assert_eq!(said, "cannot write: a part: no space");
    }

    #[test]
    fn control_characters_and_length_are_tamed() {
        let e = Error::corrupt("x\u{1b}[31m\n\u{202e}".to_string() + &"y".repeat(10_000));
        let text = e.to_string();
        assert!(text.starts_with("x\\u{1b}[31m\\n\\u{202e}y"), "{text}");
        assert!(text.len() < 4_096);
    }
}
