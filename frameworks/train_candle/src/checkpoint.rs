//! One file holds weights, moments, step and the loader's state. It is written beside its name and renamed when whole.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windrow::{Error, Kind, Result, State};

use crate::adam::Adam;
use crate::config::Model;
use crate::model::{Gpt, Parameter};

const VERSION: u32 = 1;
/// Where the description is in the file's metadata.
const KEY: &str = "train_candle";
const UNFINISHED: &str = ".unfinished";

/// What is stored beside the tensors.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    version: u32,
    /// Steps done.
    step: u64,
    /// The model's configuration.
    model: Map<String, Value>,
    /// The loader's state.
    loader: State,
}

/// The checkpoints of one run. No other process writes there meanwhile.
pub(crate) struct Folder {
    path: PathBuf,
    /// How many are kept; 0 keeps all.
    most: usize,
    _lock: File,
}

impl Folder {
    /// Makes the folder and takes its lock; what a killed run left unfinished is removed.
    ///
    /// # Errors
    /// `Exists` when another run has the lock; `Io`.
    pub(crate) fn enter(path: &Path, most: usize) -> Result<Folder> {
        fs::create_dir_all(path).map_err(|e| Error::io("make the folder of checkpoints", path, e))?;
        let name = path.join(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&name);
        let lock = lock.map_err(|e| Error::io("open the lock", &name, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::new(Kind::Exists, "another run writes its checkpoints here")
                    .at(path)
                    .hint("wait for it, or name another checkpoint_dir"));
            }
            Err(TryLockError::Error(e)) => return Err(Error::io("take the lock", &name, e)),
        }
        let folder = Folder { path: path.to_path_buf(), most, _lock: lock };
        for name in folder.names()?.iter().filter(|name| name.ends_with(UNFINISHED)) {
            remove(&folder.path.join(name))?;
        }
        Ok(folder)
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The checkpoints that are whole, by step.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn list(&self) -> Result<Vec<(u64, PathBuf)>> {
        let step = |name: &str| name.strip_prefix("step-")?.strip_suffix(".safetensors")?.parse().ok();
        let names = self.names()?;
        let mut found: Vec<(u64, PathBuf)> =
            names.iter().filter_map(|name| Some((step(name)?, self.path.join(name)))).collect();
        found.sort();
        Ok(found)
    }

    /// Writes a checkpoint after `step` steps; a reader sees all of it or nothing. Removes the oldest beyond the limit.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn save(
        &self,
        gpt: &Gpt,
        adam: &Adam,
        config: &Model,
        step: u64,
        loader: &State,
    ) -> Result<PathBuf> {
        let description =
            Description { version: VERSION, step, model: as_map(config), loader: loader.clone() };
        let text = serde_json::to_string(&description).map_err(|e| {
            Error::new(Kind::Io, "the checkpoint's description could not be written").caused_by(e)
        })?;
        let path = self.path.join(format!("step-{step:08}.safetensors"));
        let unfinished = self.path.join(format!("step-{step:08}{UNFINISHED}"));
        let tensors = named(gpt, adam).map(|(name, tensor)| (name, tensor.clone()));
        safetensors::serialize_to_file(tensors, Some(HashMap::from([(KEY.to_string(), text)])), &unfinished)
            .map_err(|e| Error::new(Kind::Io, "cannot write the checkpoint").at(&unfinished).caused_by(e))?;
        // On the disk before it has its name, and the name before an older one goes.
        sync(&unfinished)?;
        fs::rename(&unfinished, &path).map_err(|e| Error::io("rename the checkpoint", &path, e))?;
        sync(&self.path)?;
        if self.most > 0 {
            let all = self.list()?;
            for (_, old) in all.iter().rev().skip(self.most) {
                remove(old)?;
            }
        }
        Ok(path)
    }

    fn names(&self) -> Result<Vec<String>> {
        let listed = |e| Error::io("list the checkpoints", &self.path, e);
        let entries = fs::read_dir(&self.path).map_err(listed)?;
        entries.map(|entry| Ok(entry.map_err(listed)?.file_name().to_string_lossy().into_owned())).collect()
    }
}

/// Where a run was: the steps done and the loader's state. Sets weights and moments.
///
/// # Errors
/// `NotFound`; `Corrupt` when the file is not whole; `Mismatch` naming what of the model differs.
pub(crate) fn load(path: &Path, gpt: &Gpt, adam: &mut Adam, config: &Model) -> Result<(u64, State)> {
    let bytes = fs::read(path).map_err(|e| Error::io("read the checkpoint", path, e))?;
    let damaged = |e: Box<dyn std::error::Error + Send + Sync>| {
        Error::corrupt(format!("this is no whole checkpoint ({} bytes)", bytes.len()))
            .at(path)
            .caused_by(e)
            .hint("name an earlier one: --resume PATH")
    };
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| damaged(e.into()))?;
    let text = header.metadata().as_ref().and_then(|texts| texts.get(KEY));
    let text = text.ok_or_else(|| damaged(format!("its metadata has no {KEY:?}").into()))?;
    let description: Description = serde_json::from_str(text).map_err(|e| damaged(e.into()))?;
    if description.version != VERSION {
        let found = description.version;
        return Err(Error::unsupported(format!(
            "a checkpoint of version {found}; this program reads {VERSION}"
        ))
        .at(path));
    }
    same_model(&description.model, &as_map(config)).map_err(|e| e.at(path))?;

    let tensors = SafeTensors::deserialize(&bytes).map_err(|e| damaged(e.into()))?;
    let read = |name: String, like: &Tensor| -> Result<Tensor> {
        let found = tensors.tensor(&name).map_err(|e| damaged(e.into()))?;
        if found.dtype() != safetensors::Dtype::F32 || found.shape() != like.dims() {
            let (dtype, shape) = (found.dtype(), found.shape());
            return Err(damaged(
                format!("{name} is {dtype:?} {shape:?}, expected F32 {:?}", like.dims()).into(),
            ));
        }
        Tensor::from_raw_buffer(found.data(), DType::F32, found.shape(), &Device::Cpu)
            .map_err(|e| damaged(e.into()))
    };
    for (Parameter { name, var }, (first, second)) in
        gpt.parameters().iter().zip(adam.first.iter_mut().zip(&mut adam.second))
    {
        let weights = read(format!("weights.{name}"), var)?;
        var.set(&weights).map_err(|e| damaged(e.into()))?;
        *first = read(format!("first_moment.{name}"), var)?;
        *second = read(format!("second_moment.{name}"), var)?;
    }
    Ok((description.step, description.loader))
}

fn named<'a>(gpt: &'a Gpt, adam: &'a Adam) -> impl Iterator<Item = (String, &'a Tensor)> {
    let parts = gpt.parameters().iter().zip(adam.first.iter().zip(&adam.second));
    parts.flat_map(|(Parameter { name, var }, (first, second))| {
        [
            (format!("weights.{name}"), var.as_tensor()),
            (format!("first_moment.{name}"), first),
            (format!("second_moment.{name}"), second),
        ]
    })
}

fn as_map(config: &Model) -> Map<String, Value> {
    match serde_json::to_value(config) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn same_model(saved: &Map<String, Value>, here: &Map<String, Value>) -> Result<()> {
    let nothing = Value::Null;
    let keys = here.keys().chain(saved.keys().filter(|key| !here.contains_key(*key)));
    let differences: Vec<String> = keys
        .map(|key| (key, saved.get(key).unwrap_or(&nothing), here.get(key).unwrap_or(&nothing)))
        .filter(|(_, saved, here)| saved != here)
        .map(|(key, saved, here)| {
            format!("model.{key} is {saved} in the checkpoint, {here} in the configuration")
        })
        .collect();
    if differences.is_empty() {
        Ok(())
    } else {
        Err(Error::mismatch(format!("the checkpoint is of another model: {}", differences.join("; "))).hint(
            "resume with the configuration of the run that wrote it, or start again in another checkpoint_dir",
        ))
    }
}

// A file's bytes, or the names in a folder.
fn sync(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|e| Error::io("bring it to the disk", path, e))
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|e| Error::io("remove it", path, e))
}
