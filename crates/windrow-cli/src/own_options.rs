//! Options of one format that is written, as they can be typed: the table of formats says which there are.

use serde_json::{Map, Value};
use windrow::OptionRow;

use crate::options::{self, own_args};

/// Their heading in a help.
pub(crate) const OF_FORMAT: &str = "Of one format";

/// Options that belong to one format, by name; with `TOKENIZE` those that only `tokenize` has, too.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnOptions<const TOKENIZE: bool>(Map<String, Value>);

impl<const TOKENIZE: bool> OwnOptions<TOKENIZE> {
    /// Those that are given.
    pub(crate) fn given(&self) -> &Map<String, Value> {
        &self.0
    }

    // Each option with what the formats that have it say of it.
    fn all() -> Vec<(OptionRow, String)> {
        let formats = windrow::written().into_iter().filter(|format| format.is_for_tokenize || !TOKENIZE);
        let own = formats.flat_map(|format| {
            let of_tokenize = format.info.tokenize_options.iter().filter(|_| TOKENIZE);
            format.info.write_options.iter().chain(of_tokenize).map(move |row| (format.to, *row))
        });
        options::of_several(own, "--to ")
    }
}

own_args!(
    [const TOKENIZE: bool] OwnOptions<TOKENIZE>,
    |matches| OwnOptions(options::all_given(matches, Self::all().iter().map(|(row, _)| row))),
    |command| Self::all().into_iter().fold(command, |command, (row, help)| {
        command.arg(options::arg(row.name, row.takes).help(help).help_heading(OF_FORMAT))
    })
);
