//! Data sets that need nothing else: opened by a format, and put through everything that they can be asked.

use std::sync::Arc;

use windrow_core::format::{Options, Probe, Table, open};
use windrow_core::source::Kind;
use windrow_core::store::Memory;

use crate::{Cut, cached_alone, drive};

/// Records that are read by number.
const MOST_RECORDS: u64 = 300;

/// Opens what is at `key` by the format that the options name, with a cache of its own, and asks everything of what opens.
pub fn opened(table: Table, store: Memory, key: &str, options: &Options) {
    cached_alone(|| {
        let probe = Probe::at(table, Arc::new(store), key);
        let Ok(source) = probe.and_then(|probe| open(table, &probe, options)) else { return };
        let mut scratch = Vec::new();
        for record in 0..source.len().min(MOST_RECORDS) {
            match source.schema().kind {
                Kind::Rows => {
                    drop(source.row(record));
                    drop(source.value(record, Some(&[source.schema().columns.len().saturating_sub(1)])));
                }
                Kind::Json | Kind::Numbers => {
                    if source.schema().kind == Kind::Json {
                        drop(source.value(record, None));
                    }
                    let _ = source.extras(record);
                    let _ = source.read_whole(record, &mut scratch);
                }
            }
        }
        let cuts = [Cut::Windows { width: 5, stride: 3, pad: true }, Cut::Pack { length: 7, eos: None }];
        drive(&source, &cuts, None, 0);
    });
}
