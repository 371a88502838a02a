//! The sound of a record of codes.

use std::path::Path;

use windrow::audio::Waveform;
use windrow::dac::{Codec, Codes, Options};
use windrow::dev::output::write_whole;
use windrow::preview::numbers;
use windrow::{Dataset, Error, Kind, Span};

use crate::codes;
use crate::command::encode::weights;
use crate::failure::Failure;

/// Decodes a record and writes it to `to`.
pub(crate) fn play(
    data: &Dataset,
    record: u64,
    given: Option<&Path>,
    to: &Path,
    overwrite: bool,
) -> Result<(), Failure> {
    let source = data.source().as_ref();
    if !codes::are_codes(source) {
        return Err(Failure::usage("--play: the records are not audio codes"));
    }
    Waveform::check_name(to)?;
    if to.exists() && !overwrite {
        return Err(Error::new(Kind::Exists, "the output exists already")
            .at(to)
            .hint("write elsewhere, or replace it with --overwrite")
            .into());
    }
    let codec = Codec::open(weights(given)?, &Options::default())?;
    let channels = source.schema().channels.unwrap_or(1);
    let n = codec.codebooks();
    if channels != n && channels != 2 * n {
        return Err(Error::mismatch(format!(
            "frames of {channels} codes; the codec has {n} for each of one or two sides"
        ))
        .at(data.paths().to_string())
        .hint("give the weights of the codec that made the codes")
        .into());
    }
    let span = Span { record, start: 0, len: data.length(record)? };
    let all = numbers::whole_numbers(source, span)?;
    let outside = |code: &i64| !(0..codec.codebook_size() as i64).contains(code);
    if let Some(at) = all.iter().position(outside) {
        return Err(Error::corrupt(format!(
            "code {} in frame {}, channel {}; the codebooks have {} codes",
            all[at],
            at / channels,
            at % channels,
            codec.codebook_size()
        ))
        .at(data.paths().to_string())
        .record(record)
        .into());
    }
    let mut sound = Waveform { sample_rate_hz: codec.sample_rate(), channels: Vec::new() };
    for side in 0..channels / n {
        let of_side = all.chunks_exact(channels).flat_map(|frame| &frame[side * n..(side + 1) * n]);
        // Compared above: none is larger.
        let codes = Codes::new(of_side.map(|code| *code as u16).collect(), n)?;
        sound.channels.push(codec.decode(&codes)?);
    }
    write_whole(to, &sound.to_wav()?)?;
    Ok(())
}
