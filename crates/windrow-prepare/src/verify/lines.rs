//! JSON records: every one is JSON.

use std::path::Path;

use super::Work;
use crate::chunks::Chunks;
use crate::input::Input;
use crate::text_input::TextInput;

/// Lines that were looked at, and problems that were found.
type SoFar = (u64, u64);

impl Work<'_> {
    pub(super) fn so_far(&self) -> SoFar {
        (self.out.findings.checked_records, self.out.findings.n_problems)
    }

    /// That lines were found in `path` since `before`, or why there are none: without any, opening refuses it.
    pub(super) fn needs_lines(&mut self, path: &Path, before: SoFar) {
        if self.so_far() == before {
            let (path, expected) = (path.display().to_string(), "at least one line".to_string());
            self.out.findings.problem(&path, None, "size", expected, "nothing".to_string());
        }
    }

    /// Every line of a file, plain or compressed.
    pub(super) fn json_lines(&mut self, path: &Path) -> windrow_core::Result<()> {
        let name = path.display().to_string();
        let called = path.file_name().unwrap_or_default().to_string_lossy();
        let input = Input::of(self.table, self.places, path, &called);
        let Some(input) = self.out.findings.take(&name, "file", "to be readable", input)? else {
            return Ok(());
        };
        self.out.looks_at(&name);
        let (mut before, checksum) = (0, input.checksum());
        let input = TextInput::Lines(input);
        let mut chunks = Chunks::new(std::slice::from_ref(&input), 1 << 20, 0, 0, 0);
        let mut room = Vec::new();
        while let Some(chunk) = chunks.read(room) {
            let Some(chunk) = self.out.findings.take(&name, "content", "to be whole", chunk)? else { break };
            let lines = chunk.bytes().split_inclusive(|b| *b == b'\n');
            for (number, line) in (chunk.line..).zip(lines) {
                self.out.json(&name, number, number == 0, line);
            }
            self.out.step(chunk.stored - before)?;
            before = chunk.stored;
            room = chunk.into_room();
        }
        // What is not whole was found.
        checksum.into_iter().for_each(|by| self.out.covers(&name, by));
        Ok(())
    }
}
