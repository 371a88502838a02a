//! What is at a path: records of some format, or sound files.

use std::path::PathBuf;

use windrow::format::Options;
use windrow::{Dataset, Error, Kind, Paths, Result};

use crate::sound::{Files, has_content, has_name};

/// What a page is about.
pub enum Subject {
    /// Records, which a format reads.
    Records(Box<Dataset>),
    /// Sound files.
    Sound(Files),
}

impl Subject {
    /// Opens `paths` as records, or as sound files where it holds nothing else: sound is not a format of records, it is
    /// known by the names of files, or by the content of one. `sound`: as sound files, whatever else the folder holds.
    ///
    /// # Errors
    /// Those of [`Paths::open`]; `NotFound` where sound was asked for and there is none.
    pub fn open(paths: &Paths, options: &Options, sound: bool) -> Result<Subject> {
        // Sound is looked for at one path; several, or a pattern, are records.
        let Some(path) = paths.only() else { return Self::records(paths, options) };
        let is_named = options.format.is_none() && path.is_file() && has_name(path);
        if sound || is_named {
            let files = Files::find(path)?;
            return if files.is_empty() {
                Err(Error::not_found("the folder has no sound files").at(path))
            } else {
                Ok(Subject::Sound(files))
            };
        }
        let refused = match Self::records(paths, options) {
            Err(e) => e,
            opened => return opened,
        };
        // Notes beside sounds may look like some format: they are not what the folder is about.
        let is_unknown = refused.kind() == Kind::Unrecognised;
        let may_be_sound = match refused.kind() {
            Kind::Unrecognised => path.is_dir() || has_content(path),
            Kind::Corrupt | Kind::Unsupported | Kind::Mismatch => path.is_dir(),
            _ => false,
        };
        if may_be_sound && options.format.is_none() && options.split.is_none() {
            let files = Files::find(path)?;
            if !files.is_empty() && (is_unknown || files.are_most()) {
                if !is_unknown {
                    log::warn!("{}: read as sound files; as records: {refused:#}", path.display());
                }
                return Ok(Subject::Sound(files));
            }
        }
        Err(refused)
    }

    fn records(paths: &Paths, options: &Options) -> Result<Subject> {
        paths.open(options).map(|data| Subject::Records(Box::new(data)))
    }

    /// The files it is read from, which a page must not replace.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Subject::Records(data) => {
                data.source().files().into_iter().map(|f| PathBuf::from(f.file)).collect()
            }
            Subject::Sound(files) => files.paths(),
        }
    }
}
