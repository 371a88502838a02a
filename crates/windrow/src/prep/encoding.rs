//! How a job encodes sound: what a worker makes the codec and the options of, as the job keeps it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windrow_audio::Quality;
use windrow_core::format::write::WriteOptions;
use windrow_core::manifest::Manifest;
use windrow_core::source::SharedSource;
use windrow_core::store::{at_home, is_url};
use windrow_core::{DType, Error, Kind, Result};
use windrow_dac::{Codec, Device, Options};
use windrow_prepare::prep::{Job, check_files};
use windrow_prepare::{Report, Watch};

use crate::sound::{
    EncodeOptions, Failure, FolderOptions, Reading, Skip, SoundFile, Tracks, decides, join, sound_files,
};

/// How to encode, in words that a file can hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Encoding {
    /// The codec's weights, which every worker sees.
    pub weights: PathBuf,
    /// The kind of device that it runs on: `cpu`, `cuda` or `metal`.
    pub device: String,
    /// Folders of prompts; by default `audio_prompts` beside the folder.
    pub prompts: Vec<PathBuf>,
    /// The format of the files that [`Prep::join`](super::Prep::join) writes.
    pub to: String,
    /// dtype of a stored code: int16 or int64.
    pub dtype: DType,
    /// Leaves out files whose prompt contains one of these texts.
    pub skip_tags: Vec<String>,
    /// Leaves out files whose prompt contains the word "vocals".
    pub skip_vocals: bool,
    /// A file without a prompt has its name for one.
    pub prompt_from_name: bool,
    /// Of the filter where the rate of a file is not the codec's: `high` or `fast`.
    pub quality: String,
    /// Continues where part of a file cannot be read.
    pub skip_corrupt: bool,
}

impl Default for Encoding {
    fn default() -> Self {
        Encoding {
            weights: PathBuf::new(),
            device: "cpu".to_string(),
            prompts: Vec::new(),
            to: crate::prepare::write::ENCODE_TO.to_string(),
            dtype: DType::I16,
            skip_tags: Vec::new(),
            skip_vocals: false,
            prompt_from_name: false,
            quality: "high".to_string(),
            skip_corrupt: false,
        }
    }
}

impl Encoding {
    /// How the folder of sound is looked at.
    pub fn folder(&self) -> FolderOptions {
        let words = self.skip_vocals.then(|| "vocals".to_string()).into_iter().collect();
        FolderOptions {
            prompts: self.prompts.clone(),
            skip: Skip { texts: self.skip_tags.clone(), words },
            prompt_from_name: self.prompt_from_name,
        }
    }

    /// How its files are encoded.
    ///
    /// # Errors
    /// `Config` for a dtype, filter or format that cannot be.
    pub fn options(&self) -> Result<EncodeOptions> {
        let quality = match self.quality.as_str() {
            "high" => Quality::High,
            "fast" => Quality::Fast,
            other => {
                let what = format!("quality is {other:?}, expected \"high\" or \"fast\"");
                return Err(Error::config(what).field("quality"));
            }
        };
        if !matches!(self.dtype, DType::I16 | DType::I64) {
            let what = format!("codes are stored as int16 or int64, not as {}", self.dtype);
            return Err(Error::config(what).field("dtype"));
        }
        Ok(EncodeOptions {
            dtype: self.dtype,
            reading: Reading { quality, skip_corrupt: self.skip_corrupt },
            ..EncodeOptions::new(crate::prepare::write::writer(&self.to, &Map::new())?)
        })
    }

    /// The codec, with `threads` threads for each call.
    ///
    /// # Errors
    /// `Config` for an unknown device; as [`Codec::open`].
    pub fn codec(&self, threads: usize) -> Result<Codec> {
        let device = match self.device.as_str() {
            "cpu" => Device::Cpu,
            // The environment selects among several devices, as CUDA_VISIBLE_DEVICES does.
            "cuda" => Device::Cuda(0),
            "metal" => Device::Metal(0),
            other => {
                let what = format!("device is {other:?}, expected \"cpu\", \"cuda\" or \"metal\"");
                return Err(Error::config(what).field("device"));
            }
        };
        Codec::open(&self.weights, &Options::default().num_threads(threads).device(device))
    }

    /// What is to be planned for the sound at a path.
    ///
    /// # Errors
    /// As [`sound_files`] and [`Codec::open`]; `Unsupported` for a URL.
    pub(super) fn planned(&self, path: &Path) -> Result<Planned> {
        if is_url(path) {
            return Err(Error::unsupported(
                "sound is encoded from folders that every worker sees, not from URLs",
            )
            .at(path)
            .hint("download the folder to a shared disk first"));
        }
        let whole = absolute(path);
        let files = sound_files(&whole, &self.folder())?;
        let (codec, options) = (self.codec(1)?, self.options()?);
        let manifest = decides(&files, &codec, &options)?;
        let folder = match (whole.is_dir(), whole.parent()) {
            (false, Some(folder)) => folder.to_path_buf(),
            _ => whole,
        };
        let files = names(&folder, &files);
        Ok(Planned { folder, files, manifest })
    }

    // Paths are named so that they are found from any folder.
    pub(super) fn to_json(&self) -> Value {
        let kept = Encoding {
            weights: absolute(&self.weights),
            prompts: self.prompts.iter().map(|path| absolute(path)).collect(),
            ..self.clone()
        };
        serde_json::to_value(kept).unwrap_or_default()
    }

    /// What a worker of a job needs.
    ///
    /// # Errors
    /// `Mismatch` for a device that this machine, or this windrow, has not; as [`Codec::open`].
    pub(super) fn make(self, job: &Job) -> Result<Made> {
        let codec = self.codec(0).map_err(|e| match e.kind() {
            Kind::Unsupported if self.device != "cpu" => {
                let what = format!("the job was planned with device {:?}, which is not here", self.device);
                Error::mismatch(what).caused_by(e).hint("run it on machines with that device")
            }
            _ => e,
        })?;
        let options = self.options()?;
        // Prompts decide no code: they are read where these are joined.
        let mut here = decides(&[], &codec, &options)?;
        here.options.insert("prompts".to_string(), job.options.get("prompts").cloned().unwrap_or_default());
        Ok(Made { encoding: self, codec, options, here })
    }
}

/// What a job is made of.
pub(super) struct Planned {
    pub(super) folder: PathBuf,
    /// Their names in it.
    pub(super) files: Vec<String>,
    pub(super) manifest: Manifest,
}

/// What a worker of a job needs, made once.
pub(super) struct Made {
    encoding: Encoding,
    codec: Codec,
    options: EncodeOptions,
    /// What decides the codes here.
    pub(super) here: Manifest,
}

impl Made {
    /// What makes codes on `threads` threads, all cores by default.
    pub(super) fn tracks(&self, threads: Option<usize>) -> Tracks<'_> {
        Tracks { codec: &self.codec, options: EncodeOptions { num_threads: threads, ..self.options.clone() } }
    }

    /// How the files of one run are written.
    pub(super) fn writing(&self, overwrite: bool) -> (EncodeOptions, WriteOptions) {
        let options = EncodeOptions { overwrite, ..self.options.clone() };
        (options, WriteOptions { dtype: Some(self.options.dtype), overwrite, ..WriteOptions::default() })
    }

    /// Writes the files of one run, of the records of all parts and the manifest that says which files are left out.
    ///
    /// # Errors
    /// `Stale` when files or prompts changed; as [`encode`](crate::sound::encode).
    pub(super) fn join(
        &self,
        job: &Job,
        (manifest, codes): (Manifest, SharedSource),
        out: &Path,
        options: &EncodeOptions,
        watch: &dyn Watch,
    ) -> Result<Report> {
        let files = self.files(job)?;
        let folder = job.inputs.first().map(|input| input.path.clone()).unwrap_or_default();
        let text = |row: &Value, what: &str| row[what].as_str().unwrap_or_default().to_string();
        let left_out = manifest.statistics.get("failed").and_then(Value::as_array).into_iter().flatten();
        let failed = left_out
            .map(|row| Failure { file: folder.join(text(row, "file")), error: text(row, "error") })
            .collect();
        Ok(join(&files, &self.codec, (codes.as_ref(), failed), out, options, watch)?.report)
    }

    /// The files of a job with their prompts.
    ///
    /// # Errors
    /// `Stale` when they, or the prompts, are others.
    fn files(&self, job: &Job) -> Result<Vec<SoundFile>> {
        let Some(input) = job.inputs.first() else { return Ok(Vec::new()) };
        // One file may have been meant alone.
        let path = match &input.files[..] {
            [only] => input.path.join(&only.name),
            _ => input.path.clone(),
        };
        let files = sound_files(&path, &self.encoding.folder())?;
        check_files(job, &names(&input.path, &files))?;
        let found = decides(&files, &self.codec, &self.options)?;
        if found.options.get("prompts") == job.options.get("prompts") {
            Ok(files)
        } else {
            Err(Error::new(Kind::Stale, "the prompts changed since the job was planned")
                .at(&input.path)
                .hint("plan the job again into another folder; codes already made are in the cache"))
        }
    }
}

fn names(folder: &Path, files: &[SoundFile]) -> Vec<String> {
    let name = |file: &SoundFile| {
        let below = file.path.strip_prefix(folder).unwrap_or(&file.path);
        below.to_string_lossy().into_owned()
    };
    files.iter().map(name).collect()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(at_home(path)).unwrap_or_else(|_| path.to_path_buf())
}
