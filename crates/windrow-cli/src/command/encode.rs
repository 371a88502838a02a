//! `windrow encode`: a folder of sound files into codes.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::json;
use windrow::DType;
use windrow::dac::WHERE_WEIGHTS;
use windrow::dev::threads::cores;
use windrow::prep::Encoding;
use windrow::sound::{self, EncodeOptions};

use crate::args::{Stores, no_stdin, no_stdout, path};
use crate::failure::{DONE, Failure, PARTLY};
use crate::interrupt::Interrupt;
use crate::out::Out;
use crate::progress::Progress;
use crate::{text, to};

/// Encode sound files into the codes of the Descript Audio Codec, with their prompts
///
/// Takes .wav, .flac, .mp3, .m4a, .mp4, .aac, .ogg and .oga directly in the folder. The output appears complete or not at all; a
/// run that was stopped continues with the files that are left. Files that cannot be encoded (also sound of other kinds, and in
/// folders below) are listed at the end, and the rest is written.
#[derive(Args, Debug)]
pub(crate) struct Encode {
    /// The folder of sound files, or one of them
    #[arg(value_parser = path())]
    audio_dir: PathBuf,
    /// The folder to write, or its URL: s3://, gs://, az://
    #[arg(short, long, value_name = "DIR", value_parser = path())]
    out: PathBuf,
    #[command(flatten)]
    how: How,
    /// Threads; by default one for each core. Files are encoded side by side
    #[arg(long, value_name = "N")]
    num_threads: Option<usize>,
    /// Replace an existing output
    #[arg(long)]
    overwrite: bool,
    /// Do not wait for the disk
    #[arg(long)]
    no_fsync: bool,
    #[command(flatten)]
    stores: Stores,
}

/// What decides the codes, and the files that they are written to.
#[derive(Args, Debug)]
pub(crate) struct How {
    /// The codec's weights: .pth of descript-audio-codec, or .safetensors
    #[arg(long, value_name = "FILE", value_parser = path())]
    weights: Option<PathBuf>,
    /// A folder of prompts, NAME.txt or NAME_prompt.txt; may be given again. By default audio_prompts beside the folder
    #[arg(long, value_name = "DIR", value_parser = path())]
    prompts: Vec<PathBuf>,
    /// The format to write
    #[arg(long, value_name = "FORMAT", default_value = windrow::ENCODE_TO, value_parser = to::of_codes())]
    to: String,
    /// dtype of a stored code
    #[arg(long, default_value = "int16", value_parser = words(&[("int16", "16 bits"), ("long", "64 bits")]))]
    dtype: String,
    /// Leave out files whose prompt contains one of these texts, whatever their case
    #[arg(long, value_name = "TEXT,…", value_delimiter = ',')]
    skip_tags: Vec<String>,
    /// Leave out files whose prompt contains the word "vocals"
    #[arg(long)]
    skip_vocals: bool,
    /// The prompt of a file without one is its name
    #[arg(long)]
    prompt_from_name: bool,
    /// The filter that brings a sound to the codec's rate
    #[arg(long, default_value = "high", value_parser = words(&[("high", "Flat to 98 % of the band"), ("fast", "A quarter as long")]))]
    quality: String,
    /// Go on where part of a file cannot be read: silence in its place, or an earlier end
    #[arg(long)]
    skip_corrupt: bool,
    /// The kind of device that encodes; for cuda and metal windrow is built with the feature of that name. The environment says which
    /// of several, as CUDA_VISIBLE_DEVICES
    #[arg(long, default_value = "cpu", value_parser = ["cpu", "cuda", "metal"])]
    device: String,
}

/// The parser of one of these words, each with what it means.
fn words(words: &[(&'static str, &'static str)]) -> PossibleValuesParser {
    PossibleValuesParser::new(words.iter().map(|(word, help)| match *word {
        "long" => PossibleValue::new("long").help(*help).alias("int64"),
        word => PossibleValue::new(word).help(*help),
    }))
}

impl How {
    /// In words that a job keeps.
    pub(crate) fn encoding(&self) -> Result<Encoding, Failure> {
        Ok(Encoding {
            weights: weights(self.weights.as_deref())?.to_path_buf(),
            device: self.device.clone(),
            prompts: self.prompts.clone(),
            to: self.to.clone(),
            dtype: if self.dtype == "int16" { DType::I16 } else { DType::I64 },
            skip_tags: self.skip_tags.clone(),
            skip_vocals: self.skip_vocals,
            prompt_from_name: self.prompt_from_name,
            quality: self.quality.clone(),
            skip_corrupt: self.skip_corrupt,
        })
    }
}

pub(crate) fn run(args: &Encode, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(std::slice::from_ref(&args.audio_dir))?;
    no_stdout(&args.out)?;
    let how = args.how.encoding()?;
    let files = sound::sound_files(&args.audio_dir, &how.folder())?;
    let threads = args.num_threads.unwrap_or_else(cores);
    let codec = how.codec(threads / threads.clamp(1, files.len()))?;
    let options = EncodeOptions {
        num_threads: Some(threads),
        overwrite: args.overwrite,
        fsync: !args.no_fsync,
        ..how.options()?
    };
    let interrupt = Interrupt::listen();
    let started = Instant::now();
    let progress = Progress::new("encode", out.quiet(), &interrupt).counting("track");
    let stores = args.stores.options()?;
    let done = sound::encode_with(&files, &codec, &args.out, &options, &stores, &progress)?;
    let seconds = started.elapsed().as_secs_f64();
    let how = if done.report.unchanged {
        "was up to date".to_string()
    } else {
        format!("{} in {seconds:.1} s", text::size(done.report.output_bytes))
    };
    out.line(format_args!(
        "{}: {}, {:.1} s of sound; {how}",
        args.out.display(),
        text::counted(done.report.records, "track"),
        done.seconds
    ))?;
    if done.without_prompt > 0 && !done.report.unchanged {
        out.line(format_args!("  {} without a prompt", text::counted(done.without_prompt, "track")))?;
    }
    for failure in &done.failed {
        log::warn!("not in it: {}: {}", failure.file.display(), failure.error);
    }
    out.object(json!({
        "report": done.report,
        "failed": done.failed,
        "seconds_of_sound": done.seconds,
        "without_prompt": done.without_prompt,
        "seconds": seconds,
    }))?;
    Ok(if done.failed.is_empty() { DONE } else { PARTLY })
}

/// Where the weights are; without any, where they are to be had.
pub(crate) fn weights(given: Option<&Path>) -> Result<&Path, Failure> {
    given.ok_or_else(|| Failure::Usage {
        message: "--weights FILE is needed: the codec's weights do not come with windrow".to_string(),
        hint: Some(WHERE_WEIGHTS.to_string()),
    })
}
