//! A codec that is asked over its standard input, one line each; answers with one line, the seconds it took.
//!
//! ```text
//! cargo run --release -p windrow-dac --example codes -- weights.pth [threads [chunk]]
//! encode samples.f32 codes.u16
//! decode codes.u16 samples.f32
//! ```
//!
//! Samples and codes are raw little-endian numbers: what comparisons with other programs read and write.

use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Instant;
use std::{env, fs, io};

use windrow_dac::{Codec, Codes, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let mut given = env::args().skip(1);
    let weights = given.next().ok_or("which weights?")?;
    let mut options = Options::default();
    if let Some(threads) = given.next() {
        options = options.threads(threads.parse()?);
    }
    if let Some(chunk) = given.next() {
        options = options.chunk(chunk.parse()?);
    }
    let start = Instant::now();
    let codec = Codec::open(weights, &options)?;
    answer(start)?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let [what, from, to] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err("expected `encode FROM TO` or `decode FROM TO`".into());
        };
        let bytes = fs::read(from)?;
        let start = Instant::now();
        let out: Vec<u8> = match what {
            "encode" => {
                let samples: Vec<f32> = bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
                codec.encode(&samples)?.values().iter().flat_map(|code| code.to_le_bytes()).collect()
            }
            "decode" => {
                let codes = bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b)).collect();
                let samples = codec.decode(&Codes::new(codes, codec.codebooks())?)?;
                samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
            }
            other => return Err(format!("{other}?").into()),
        };
        answer(start)?;
        fs::write(to, out)?;
        // The line is answered when the file is there.
        writeln!(io::stdout(), "done")?;
    }
    Ok(())
}

fn answer(start: Instant) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", start.elapsed().as_secs_f64())?;
    out.flush()
}
