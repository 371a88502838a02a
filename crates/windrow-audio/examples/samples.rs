//! The samples of a sound file as little-endian 32-bit floats on stdout, channel after channel.
//!
//!     cargo run --release -p windrow-audio --example samples -- IN [RATE]

use std::io::Write;

use windrow_audio::{Options, decode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: samples IN [RATE]")?;
    let sample_rate_hz = arguments.next().map(|rate| rate.parse()).transpose()?;
    let sound = decode(path, &Options { sample_rate_hz, ..Options::default() })?;
    let mut out = std::io::stdout().lock();
    for channel in &sound.channels {
        let bytes: Vec<u8> = channel.iter().flat_map(|s| s.to_le_bytes()).collect();
        out.write_all(&bytes)?;
    }
    Ok(())
}
