//! What manifests say of token files: one for the folder, or one beside each file.

use std::collections::{HashMap, HashSet};

use windrow_core::format::vocabulary::tokenizer_must_be;
use windrow_core::format::{Format, Options, Probe, manifest_beside};
use windrow_core::manifest::{FileRow, MANIFEST_FILE, Manifest};
use windrow_core::store::{key, open_if_there, plain_name};
use windrow_core::{DType, Error, Kind, Result};

use super::Tokens;
use windrow_core::format::data_files::DataFiles;

/// What is known of the files of one data set without a look at their IDs.
pub(super) struct Claims {
    /// dtype of an ID.
    pub(super) dtype: Option<DType>,
    /// Ids of all files are below this.
    pub(super) vocab_size: Option<u64>,
    rows: Vec<FileRow>,
    /// The manifest speaks for all of a folder.
    is_whole: bool,
}

impl Claims {
    /// What the manifests beside `keys` say. The tokenizer that `options` name must be that of each.
    ///
    /// # Errors
    /// `Mismatch` when two manifests differ in their dtype, or the tokenizer is another one; `Corrupt`, `Unsupported`
    /// for a manifest that cannot be read.
    pub(super) fn of(probe: &Probe, keys: &[String], options: &Options) -> Result<Claims> {
        let hash = options.tokenizer.as_deref();
        if let Some(manifest) = &probe.manifest {
            // Another format's manifest knows its numbers, too.
            tokenizer_must_be(Some(manifest), hash, &probe.display())?;
            return Ok(Claims {
                dtype: manifest.dtype,
                vocab_size: manifest.vocab_size,
                rows: manifest.files.clone(),
                is_whole: manifest.format == Tokens.name() && probe.is_folder,
            });
        }
        let mut claims = Claims { dtype: None, vocab_size: Some(0), rows: Vec::new(), is_whole: false };
        for key in keys {
            claims.add(probe, key, hash)?;
        }
        Ok(claims)
    }

    // What the manifest beside one file says, where there is one; of a compressed file, which keeps what was beside it
    // before, that of its folder too.
    fn add(&mut self, probe: &Probe, key: &str, hash: Option<&str>) -> Result<()> {
        let plain = plain_name(key);
        let side_key = format!("{plain}.{MANIFEST_FILE}");
        let beside = open_if_there(probe.store.as_ref(), &side_key)?;
        let beside = beside.map(|object| manifest_beside(probe.table, object.as_ref(), key::name_of(plain)));
        let manifest = match beside.transpose()? {
            None if plain != key && !probe.is_folder => {
                let names = |manifest: &Manifest| {
                    manifest.format == Tokens.name()
                        && manifest.files.iter().any(|row| row.name == key::name_of(plain))
                };
                let of_folder = key::below(key::folder_of(key), MANIFEST_FILE);
                let object = open_if_there(probe.store.as_ref(), &of_folder)?;
                object.map(|object| Manifest::read(object.as_ref())).transpose()?.filter(names)
            }
            manifest => manifest,
        };
        tokenizer_must_be(manifest.as_ref(), hash, &probe.store.display(key))?;
        self.vocab_size = match (self.vocab_size, manifest.as_ref().and_then(|s| s.vocab_size)) {
            (Some(so_far), Some(more)) => Some(so_far.max(more)),
            _ => None,
        };
        let Some(manifest) = manifest else { return Ok(()) };
        match (self.dtype, manifest.dtype) {
            (Some(others), Some(this)) if others != this => {
                return Err(Error::mismatch(format!(
                    "the token IDs are {this}, those of the files before are {others}"
                ))
                .at(probe.store.display(&side_key))
                .hint("open the files one by one"));
            }
            (None, Some(this)) => self.dtype = Some(this),
            _ => {}
        }
        self.rows.extend(manifest.files);
        Ok(())
    }

    /// Whether one manifest speaks for all files of the folder.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The files of which a manifest says that they hold IDs.
    pub(super) fn names(&self) -> HashSet<&str> {
        self.rows.iter().map(|row| row.name.as_str()).collect()
    }

    /// The files have the sizes that were written, none is missing and none was added.
    ///
    /// # Errors
    /// `Stale` naming the file.
    pub(super) fn check(&self, probe: &Probe, files: &DataFiles) -> Result<()> {
        let rows: HashMap<&str, &FileRow> = self.rows.iter().map(|row| (row.name.as_str(), row)).collect();
        let names: Vec<&str> = files.keys().map(|key| plain_name(key::name_of(key))).collect();
        for (file, name) in names.iter().enumerate() {
            match rows.get(name) {
                Some(row) => row.check_size(Some(files.size(file)?), &files.name(file))?,
                None if self.is_whole => {
                    return Err(Error::new(
                        Kind::Stale,
                        "the manifest of the folder does not name this file",
                    )
                    .at(files.name(file))
                    .hint("move it to another folder; @trust=true@ reads it too"));
                }
                None => {}
            }
        }
        let there: HashSet<&str> = names.into_iter().collect();
        match self.rows.iter().find(|row| self.is_whole && !there.contains(row.name.as_str())) {
            Some(gone) => gone.check_size(None, &probe.store.display(&probe.below(&gone.name))),
            None => Ok(()),
        }
    }
}
