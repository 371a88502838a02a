//! Files of records in a folder, whose names may be those of shards: `train.tfrecord-00000-of-00002`.

use windrow_core::format::discover::refuse_missing_shards;
use windrow_core::format::verify::{Opened, Verifier};
use windrow_core::format::{Format, Options, Payload, Probe, splits};
use windrow_core::store::key;
use windrow_core::{Kind, Result};

use crate::token_runs::verify_each;

/// Whether a name ends in `suffix`, in small letters or in capitals, or in that and the number of a shard.
pub(crate) fn is_named(name: &str, suffix: &str) -> bool {
    let name = key::name_of(name).to_ascii_lowercase();
    let Some((_, rest)) = name.rsplit_once(suffix) else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let shard = rest.strip_prefix('-').and_then(|rest| rest.split_once("-of-"));
    rest.is_empty() || shard.is_some_and(|(number, of)| is_number(number) && is_number(of))
}

/// Refuses files of a folder that are of several splits, or not all shards which their names say there are.
///
/// # Errors
/// `Config` naming the splits; `NotFound` naming the first shard that is missing.
pub(crate) fn must_be_whole(probe: &Probe, keys: &[String]) -> Result<()> {
    if !probe.is_folder {
        return Ok(());
    }
    splits::refuse_in(probe, keys.iter().map(|key| probe.name_of(key)))?;
    none_missing(probe, keys)
}

fn none_missing(probe: &Probe, keys: &[String]) -> Result<()> {
    refuse_missing_shards(keys.iter().map(String::as_str), |key| probe.store.display(key))
}

/// Verifies files of records, each by itself, and that no shard is missing: files of several splits are no data set
/// together, but each is one.
///
/// # Errors
/// As [`Verify::records`](windrow_core::format::verify::Verify::records).
pub(crate) fn verify_shards(
    format: &dyn Format,
    probe: &Probe,
    keys: &[String],
    out: &mut Verifier<'_>,
) -> Result<()> {
    if probe.is_folder
        && let Err(missing) = none_missing(probe, keys)
    {
        out.found(missing, &probe.display(), "shards")?;
    }
    let as_bytes = Options { payload: Some(Payload::Bytes), ..Options::default() };
    for key in keys {
        let file = Probe::at(probe.table, probe.store.clone(), key)?;
        let refused = format.open(&file, &Options::default()).err();
        // What a record holds is not read here, which is no damage: it is whole as bytes.
        match refused.filter(|error| error.kind() == Kind::Unsupported) {
            None => verify_each(format, probe, std::slice::from_ref(key), out)?,
            Some(error) => match out.read_with(format, &file, &as_bytes)? {
                Opened::Not(_) => out.found(error, &file.display(), "content")?,
                Opened::Before => {}
                Opened::Read(_) => {
                    out.note(format!("{}: {}; payload=\"bytes\" opens it", file.display(), error.message()));
                }
            },
        }
    }
    Ok(())
}
