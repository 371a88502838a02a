//! A sound file of any bytes, block by block: sound or an error, little memory. The first byte chooses options and name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_audio::{Decoder, Options, Quality};
use windrow_core::store::{Memory, Store};
// For its allocator.
use windrow_fuzz as _;

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let options = Options {
        sample_rate_hz: (choice & 1 == 1).then_some(44_100),
        quality: Quality::Fast,
        skip_corrupt: choice & 2 == 2,
    };
    let name = if choice & 4 == 4 { "a.mp3" } else { "a" };
    let object = Memory::new().with(name, bytes).open(name).expect("just put there");
    match Decoder::new(object, &options) {
        // Silence packs well: a small file may hold days of it.
        Ok(decoder) => decoder.take(1_000).for_each(|block| match block {
            Ok(block) => {
                assert!(block.n_samples() > 0);
                assert!(block.channels.iter().all(|c| c.len() == block.n_samples()));
            }
            Err(error) => assert_eq!(error.place().file.as_deref(), Some(name)),
        }),
        Err(error) => assert_eq!(error.place().file.as_deref(), Some(name)),
    }
});
