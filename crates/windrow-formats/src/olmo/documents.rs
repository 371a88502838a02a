//! The documents of token files by number, as their tables say.

use windrow_core::source::Extras;
use windrow_core::{DType, Error, Result};

use super::table::Table;
use crate::firsts::Firsts;
use crate::token_runs::{Run, Runs};
use windrow_core::format::data_files::DataFiles;

/// The documents of some files.
pub(super) struct Documents {
    /// One for each file; none where a file is a record.
    tables: Vec<Table>,
    firsts: Firsts,
    /// Token IDs of each file.
    tokens: Vec<u64>,
}

impl Documents {
    /// Those of `files`, whose token IDs are of this dtype.
    ///
    /// # Errors
    /// `Corrupt` when a file is not whole numbers, or a document is not in it.
    pub(super) fn open(files: &DataFiles, tables: Vec<Table>, dtype: DType) -> Result<Documents> {
        let mut documents = Documents { tables: Vec::new(), firsts: Firsts::new(), tokens: Vec::new() };
        for file in 0..files.count() {
            let (size, width) = (files.size(file)?, dtype.size() as u64);
            if size % width != 0 {
                return Err(Error::corrupt(format!(
                    "the file has {size} bytes: not whole {dtype} IDs of {width} bytes"
                ))
                .at(files.name(file))
                .byte(size - size % width)
                .hint("the copy looks unfinished, or the token IDs are of another @dtype@"));
            }
            let (tokens, table) = (size / width, tables.get(file));
            if let Some(table) = table.filter(|table| table.largest_end() > tokens) {
                return Err(table.error(format!(
                    "a document ends at token {}, the file has {tokens} of {dtype}",
                    table.largest_end()
                )));
            }
            documents.firsts.push(table.map_or(1, Table::count));
            documents.tokens.push(tokens);
        }
        documents.tables = tables;
        Ok(documents)
    }
}

impl Runs for Documents {
    fn count(&self) -> u64 {
        self.firsts.count()
    }

    fn run(&self, record: u64) -> Result<Run> {
        let (file, document) = self.firsts.find(record)?;
        let Some(table) = self.tables.get(file) else {
            return Ok(Run { file, start: 0, len: self.tokens[file] });
        };
        let (start, end) = table.place(document)?;
        Ok(Run { file, start, len: end - start })
    }

    fn metadata(&self, record: u64) -> Result<Extras> {
        let (file, document) = self.firsts.find(record)?;
        self.tables.get(file).map_or_else(|| Ok(Extras::new()), |table| table.metadata(document))
    }
}
