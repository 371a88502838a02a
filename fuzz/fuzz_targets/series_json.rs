//! Series in JSON (`j…`) or JSON Lines (`l…`) of any bytes: series or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_fuzz::series;

fuzz_target!(|data: &[u8]| match data.split_first() {
    Some((b'l', lines)) => series("series-jsonl", "a.jsonl", lines),
    Some((_, list)) => series("series-json", "a.json", list),
    None => {}
});
