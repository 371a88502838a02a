//! stdout: aligned lines for people, or one JSON object.

use std::fmt::Display;
use std::io::{self, BufWriter, Stdout, Write};

use clap::builder::StyledStr;
use serde_json::{Map, Value, json};

use crate::colour;

/// Version of every JSON object printed.
const JSON_VERSION: u32 = 1;

/// Where a command's result goes.
pub(crate) struct Out {
    stdout: BufWriter<Stdout>,
    json: bool,
    quiet: bool,
    command: String,
    /// Whether whoever reads stdout is still there.
    has_reader: bool,
}

impl Out {
    pub(crate) fn new(json: bool, quiet: bool, command: impl Into<String>) -> Out {
        Out { stdout: BufWriter::new(io::stdout()), json, quiet, command: command.into(), has_reader: true }
    }

    /// Whether anybody still takes what is written. A reader that left, as `head` does, has what it wanted: what follows is
    /// dropped, and the command ends as it would have, unless what is left of it is output alone.
    pub(crate) fn has_reader(&self) -> bool {
        self.has_reader
    }

    /// Whether progress and warnings are unwanted.
    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// Whether one JSON object is wanted.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// A line for people; nothing with `--json`.
    pub(crate) fn line(&mut self, line: impl Display) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        self.put(|stdout| writeln!(stdout, "{line}"))
    }

    /// Names and values, aligned, for people.
    pub(crate) fn pairs(&mut self, pairs: &[(&str, String)]) -> io::Result<()> {
        let width = pairs.iter().map(|p| p.0.len()).max().unwrap_or(0);
        pairs.iter().try_for_each(|(name, value)| self.line(format_args!("{name:width$}  {value}")))
    }

    /// The object for `--json`; nothing without it. Once per command.
    pub(crate) fn object(&mut self, fields: Value) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        let mut object = self.head();
        match fields {
            Value::Object(fields) => object.extend(fields),
            other => object.extend([("result".to_string(), other)]),
        }
        self.write(object)
    }

    /// The object of a failure for `--json`; nothing without it.
    pub(crate) fn error(&mut self, error: Value) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        let mut object = self.head();
        object.insert("error".to_string(), error);
        self.write(object)
    }

    /// Bytes as they are, whether or not JSON is wanted.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put(|stdout| stdout.write_all(bytes))
    }

    /// A help, with its styles where stdout has colours.
    pub(crate) fn styled(&mut self, text: &StyledStr) -> io::Result<()> {
        self.raw(colour::shown(text, &io::stdout()).as_bytes())
    }

    /// Shows what was written so far.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.put(BufWriter::flush)
    }

    fn head(&self) -> Map<String, Value> {
        let mut head = Map::from_iter([("version".to_string(), json!(JSON_VERSION))]);
        if !self.command.is_empty() {
            head.insert("command".to_string(), json!(self.command));
        }
        head
    }

    fn write(&mut self, object: Map<String, Value>) -> io::Result<()> {
        self.put(|stdout| writeln!(stdout, "{}", Value::Object(object)))?;
        self.flush()
    }

    fn put(&mut self, write: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<()>) -> io::Result<()> {
        if !self.has_reader {
            return Ok(());
        }
        match write(&mut self.stdout) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.has_reader = false;
                Ok(())
            }
            written => written,
        }
    }
}
