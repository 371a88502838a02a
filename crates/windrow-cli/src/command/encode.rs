//! `windrow encode`: a folder of sound files into codes.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::{Map, json};
use windrow::DType;
use windrow::audio::Quality;
use windrow::dac::{Codec, Options, WHERE_WEIGHTS};
use windrow::dev::threads::cores;
use windrow::sound::{self, EncodeOptions, FolderOptions, Reading, Skip};

use crate::args::{Stores, no_stdin, no_stdout};
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
    audio_dir: PathBuf,
    /// The folder to write, or its URL: s3://, gs://, az://
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// The codec's weights: .pth of descript-audio-codec, or .safetensors
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// A folder of prompts, NAME.txt or NAME_prompt.txt; may be given again. By default audio_prompts beside the folder
    #[arg(long, value_name = "DIR")]
    prompts: Vec<PathBuf>,
    /// The format to write
    #[arg(long, value_name = "FORMAT", default_value = windrow::ENCODE_TO, value_parser = to::of_codes())]
    to: String,
    /// dtype of a stored code
    #[arg(long, value_enum, default_value = "int16")]
    dtype: CodeType,
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
    #[arg(long, value_enum, default_value = "high")]
    quality: Filter,
    /// Go on where part of a file cannot be read: silence in its place, or an earlier end
    #[arg(long)]
    skip_corrupt: bool,
    /// Threads; by default one for each core. Files are encoded side by side
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Replace an existing output
    #[arg(long)]
    overwrite: bool,
    /// Do not wait for the disk
    #[arg(long)]
    no_fsync: bool,
    #[command(flatten)]
    stores: Stores,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CodeType {
    /// 16 bits
    Int16,
    /// 64 bits
    #[value(alias = "int64")]
    Long,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Filter {
    /// Flat to 98 % of the band
    High,
    /// A quarter as long
    Fast,
}

pub(crate) fn run(args: &Encode, out: &mut Out) -> Result<i32, Failure> {
    no_stdin(std::slice::from_ref(&args.audio_dir))?;
    no_stdout(&args.out)?;
    let weights = weights(args.weights.as_deref())?;
    let folder = FolderOptions {
        prompts: args.prompts.clone(),
        skip: Skip {
            texts: args.skip_tags.clone(),
            words: args.skip_vocals.then(|| "vocals".to_string()).into_iter().collect(),
        },
        prompt_from_name: args.prompt_from_name,
    };
    let files = sound::sound_files(&args.audio_dir, &folder)?;
    let threads = args.threads.unwrap_or_else(cores);
    let at_a_time = threads.clamp(1, files.len());
    let codec = Codec::open(weights, &Options::default().threads(threads / at_a_time))?;
    let options = EncodeOptions {
        to: windrow::writer(&args.to, &Map::new())?,
        dtype: match args.dtype {
            CodeType::Int16 => DType::I16,
            CodeType::Long => DType::I64,
        },
        reading: Reading {
            quality: match args.quality {
                Filter::High => Quality::High,
                Filter::Fast => Quality::Fast,
            },
            skip_corrupt: args.skip_corrupt,
        },
        threads: Some(threads),
        overwrite: args.overwrite,
        durable: !args.no_fsync,
    };
    let interrupt = Interrupt::listen();
    let started = Instant::now();
    let progress = Progress::new("encode", out.quiet(), &interrupt).counting("track");
    let stores = args.stores.options();
    let done = sound::encode_with(&files, &codec, &args.out, &options, &stores, &progress)?;
    let seconds = started.elapsed().as_secs_f64();
    let how = match done.report.unchanged {
        true => "was up to date".to_string(),
        false => format!("{} in {seconds:.1} s", text::size(done.report.output_bytes)),
    };
    out.line(format_args!(
        "{}: {}, {:.1} s of sound; {how}",
        args.out.display(),
        text::counted(done.report.records, "track"),
        done.seconds
    ))?;
    for failure in &done.failed {
        log::warn!("not in it: {}: {}", failure.file.display(), failure.error);
    }
    out.object(json!({
        "report": done.report,
        "failed": done.failed,
        "seconds_of_sound": done.seconds,
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
