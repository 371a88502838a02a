//! JSON records: every one is JSON.

use std::path::Path;

use serde::de::IgnoredAny;

use super::Work;
use crate::error::Result;
use crate::prepare::chunks::Chunks;
use crate::prepare::input::Input;

impl Work<'_> {
    /// Every line of a file, plain or compressed.
    pub(super) fn json_lines(&mut self, path: &Path) -> Result<()> {
        let name = path.display().to_string();
        let input = Input::look(path, &path.file_name().unwrap_or_default().to_string_lossy());
        let Some(input) = self.findings.take(&name, "file", "to be readable", input)? else { return Ok(()) };
        self.findings.checked_files += 1;
        let mut before = 0;
        let mut chunks = Chunks::new(std::slice::from_ref(&input), 1 << 20, 0, 0, 0);
        let mut room = Vec::new();
        while let Some(chunk) = chunks.read(room) {
            let Some(chunk) = self.findings.take(&name, "content", "to be whole", chunk)? else { break };
            let lines = chunk.bytes().split_inclusive(|b| *b == b'\n');
            for (number, line) in (chunk.line..).zip(lines) {
                self.json(&name, number, number == 0, line);
            }
            self.step(chunk.stored - before)?;
            before = chunk.stored;
            room = chunk.into_room();
        }
        Ok(())
    }

    /// One record; a byte-order mark is forgiven at the beginning of a file.
    pub(super) fn json(&mut self, name: &str, record: u64, is_first: bool, line: &[u8]) {
        self.findings.checked_records += 1;
        let line = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(unmarked) if is_first => unmarked,
            _ => line,
        };
        let found = match simdutf8::compat::from_utf8(line) {
            Err(e) => Some(format!("invalid UTF-8 at byte {} of the line", e.valid_up_to())),
            Ok(text) if text.trim_ascii().is_empty() => Some("a blank line".to_string()),
            Ok(text) => serde_json::from_str::<IgnoredAny>(text).err().map(|e| e.to_string()),
        };
        if let Some(found) = found {
            self.findings.problem(name, Some(record), "JSON", "a JSON value".to_string(), found);
        }
    }
}
