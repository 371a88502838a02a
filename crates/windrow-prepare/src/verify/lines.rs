//! JSON records: every one is JSON.

use std::path::Path;

use super::Work;
use crate::chunks::Chunks;
use crate::input::Input;
use crate::text_input::TextInput;

impl Work<'_> {
    /// Every line of a file, plain or compressed.
    pub(super) fn json_lines(&mut self, path: &Path) -> windrow_core::Result<()> {
        let name = path.display().to_string();
        let input = Input::of(self.places, path, &path.file_name().unwrap_or_default().to_string_lossy());
        let Some(input) = self.out.findings.take(&name, "file", "to be readable", input)? else {
            return Ok(());
        };
        self.out.findings.checked_files += 1;
        let mut before = 0;
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
        Ok(())
    }
}
