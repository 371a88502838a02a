//! Every view over arbitrary lengths, up to the largest numbers there are.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use windrow_core::{Error, Lengths, Result};
use windrow_fuzz::{Cut, check_view};

#[derive(Arbitrary, Debug)]
struct Input {
    cut: Cut,
    small_cut: bool,
    lengths: Given,
}

#[derive(Arbitrary, Debug)]
enum Given {
    Listed(Vec<u64>),
    Small(Vec<u8>),
    Same { records: u64, length: u64, told: bool },
    SameSmall { records: u8, length: u8 },
}

/// Records that are all equal, without a list.
struct Same(u64, u64);

impl Lengths for Same {
    fn len(&self) -> u64 {
        self.0
    }

    fn length(&self, record: u64) -> Result<u64> {
        if record < self.0 { Ok(self.1) } else { Err(Error::out_of_range("record", record, self.0)) }
    }

    fn uniform(&self) -> Option<u64> {
        Some(self.1)
    }
}

fuzz_target!(|input: Input| {
    let lengths: Arc<dyn Lengths> = match input.lengths {
        Given::Listed(list) => Arc::new(list),
        Given::Small(list) => Arc::new(list.into_iter().map(u64::from).collect::<Vec<u64>>()),
        Given::Same { records, length, told: true } => Arc::new(Same(records, length)),
        Given::Same { records, length, .. } => Arc::new(vec![length; records as usize % 5_000]),
        Given::SameSmall { records, length } => Arc::new(Same(records.into(), length.into())),
    };
    let cut = if input.small_cut { input.cut.small() } else { input.cut };
    for made in [cut.view(lengths.clone()).map(Some), cut.apart(lengths.clone())] {
        match made {
            Ok(Some(view)) => check_view(cut, view.as_ref(), lengths.as_ref()),
            Ok(None) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
