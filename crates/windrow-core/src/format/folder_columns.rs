//! Data whose folders say columns of the rows in them: which of the columns that are asked for are theirs.

use super::Options;
use crate::error::{Error, Kind, Result};
use crate::source::{FolderColumns, SharedSource, said_by_folders};

/// Opens what has these `names` below `base`, by a function of options: with the columns that folders say, or those of them that
/// `columns` asks for. A column that the files have themselves is theirs, and numbers of one column get none.
///
/// # Errors
/// What opening says; of a column that neither has, what opening says of those of the files.
pub fn with_folder_columns<'n>(
    base: &str,
    names: impl Iterator<Item = &'n str>,
    options: &Options,
    open: impl Fn(&Options) -> Result<SharedSource>,
) -> Result<SharedSource> {
    let mut said: Vec<String> = Vec::new();
    for (name, _) in names.filter(|name| name.contains('=')).flat_map(said_by_folders) {
        if !said.contains(&name) {
            said.push(name);
        }
    }
    if said.is_empty() || options.column.is_some() {
        return open(options);
    }
    let with = |columns: Option<Vec<String>>| open(&Options { columns, ..options.clone() });
    let asked = options.columns.as_deref();
    let source = match (with(options.columns.clone()), asked) {
        (Err(e), Some(asked)) if is_missing(&e) => {
            let mut own = Vec::new();
            for name in asked {
                let is_of_folders = said.contains(name)
                    && with(Some(vec![name.clone()])).err().is_some_and(|missing| is_missing(&missing));
                if !is_of_folders {
                    own.push(name.clone());
                }
            }
            if own.len() == asked.len() {
                return Err(e);
            }
            // All of theirs, of which none is kept, where only folders are asked.
            with((!own.is_empty()).then_some(own))?
        }
        (opened, _) => opened?,
    };
    Ok(FolderColumns::around(source, base, asked))
}

fn is_missing(error: &Error) -> bool {
    error.kind() == Kind::Config && error.place().field.as_deref() == Some("columns")
}
