//! CSV (`c…`) or TSV (`t…`) of any bytes: one series or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_fuzz::series;

fuzz_target!(|data: &[u8]| match data.split_first() {
    Some((b't', tabs)) => series("csv", "a.tsv", tabs),
    Some((_, commas)) => series("csv", "a.csv", commas),
    None => {}
});
