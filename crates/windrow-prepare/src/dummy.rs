//! Random tokens to try things with.

use std::path::Path;

use serde_json::json;
use windrow_core::array::reserve;
use windrow_core::format::Format;
use windrow_core::format::write::names_of_file;
use windrow_core::manifest::{MANIFEST_FILE, Manifest};
use windrow_core::output::{
    self, Finished, Growing, Site, absolute, files, hash_of, replaced, write_manifest_beside,
};
use windrow_core::record::keyed_hash;
use windrow_core::store::{Local, Store};
use windrow_core::{DType, Error, Result};

use super::Report;

/// `num_tokens` random IDs below `vocab_size`: the same ones for the same seed, and the first ones of any longer row.
///
/// # Errors
/// `Config` when there is no ID to choose from, or more than uint32 holds.
pub fn create_dummy_data(vocab_size: u64, num_tokens: usize, seed: u64) -> Result<Vec<u32>> {
    check_vocab(vocab_size)?;
    let mut tokens = Vec::new();
    reserve(&mut tokens, num_tokens).map_err(|e| e.hint("write them to a file with `windrow dummy`"))?;
    tokens.extend((0..num_tokens as u64).map(|i| token(vocab_size, seed, i)));
    Ok(tokens)
}

/// The bytes of the file that [`dummy`] writes, in blocks: to go elsewhere than into a file.
///
/// # Errors
/// `Config` as [`create_dummy_data`], or when `tokens` is 0.
pub fn dummy_blocks(vocab_size: u64, tokens: u64, seed: u64) -> Result<impl Iterator<Item = Vec<u8>>> {
    const AT_ONCE: u64 = 1 << 16;
    check_vocab(vocab_size)?;
    if tokens == 0 {
        return Err(Error::config("0 tokens; expected at least 1: an empty file is not data"));
    }
    let block = move |start: u64| {
        let ids = start..tokens.min(start.saturating_add(AT_ONCE));
        ids.flat_map(|i| token(vocab_size, seed, i).to_le_bytes()).collect()
    };
    Ok((0..tokens).step_by(AT_ONCE as usize).map(block))
}

/// Writes `tokens` random IDs as a headerless uint32 file, which `format` reads, and its manifest `<out>.windrow.json`.
///
/// # Errors
/// `Config` as [`create_dummy_data`], or when `tokens` is 0; `Exists` when the file is there, of other numbers, and
/// `overwrite` is not set; `Io`.
pub fn dummy(
    format: &dyn Format,
    out: &Path,
    vocab_size: u64,
    tokens: u64,
    seed: u64,
    overwrite: bool,
) -> Result<Report> {
    let blocks = dummy_blocks(vocab_size, tokens, seed)?;
    let path = absolute("write to", out)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
        return Err(Error::config("expected the path of a file").at(out));
    };
    let mut manifest = Manifest::new(format.name());
    (manifest.records, manifest.dtype, manifest.vocab_size) = (Some(1), Some(DType::U32), Some(vocab_size));
    manifest.options = serde_json::Map::from_iter([
        ("task".to_string(), json!("dummy")),
        ("vocab_size".to_string(), json!(vocab_size)),
        ("tokens".to_string(), json!(tokens)),
        ("seed".to_string(), json!(seed)),
    ]);
    let report = Report {
        output: out.to_path_buf(),
        files: 1,
        records: 1,
        tokens,
        output_bytes: tokens.saturating_mul(4),
        ..Report::default()
    };
    let hash = hash_of(manifest.to_text());
    let site = Site::enter(folder, name, &hash, true)?;
    replaced::file(&path)?;
    if files::exists(&path) && !overwrite {
        let found = Local::new(folder)
            .open(&format!("{name}.{}", MANIFEST_FILE))
            .and_then(|o| Manifest::read(o.as_ref()));
        let is_same = found.is_ok_and(|f| f.options == manifest.options)
            && files::size(&path) == Some(report.output_bytes);
        if !is_same {
            return Err(output::differs(out));
        }
        // Of a run that was killed while it tidied up.
        site.leftovers()?.iter().try_for_each(|left| site.discard(left))?;
        return Ok(Report { unchanged: true, ..report });
    }
    files::enough_room(folder, report.output_bytes)?;
    let work = site.work(&hash)?;
    let written = write_blocks(&work.join(name), blocks).and_then(|file| {
        write_manifest_beside(&work, name, manifest, file, true)?;
        let names = names_of_file(name);
        if !files::exists(&path) {
            // What describes a file that is gone.
            names.iter().try_for_each(|name| files::remove(&folder.join(name)))?;
        }
        let leaving = replaced::describing(folder, name);
        let [names, leaving] =
            [&names, &leaving].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
        site.commit(&work, &names, &leaving, overwrite)
    });
    if written.is_err() {
        // The error that is being reported matters more than one of tidying up.
        let _ = site.discard(&work);
    }
    written.map(|()| report)
}

fn check_vocab(vocab_size: u64) -> Result<()> {
    match vocab_size {
        0 => Err(Error::config("a vocabulary of 0 token IDs; expected at least 1").field("vocab_size")),
        1..=0x1_0000_0000 => Ok(()),
        _ => Err(Error::config(format!("a vocabulary of {vocab_size} IDs; uint32 holds 4294967296"))
            .field("vocab_size")),
    }
}

fn token(vocab_size: u64, seed: u64, number: u64) -> u32 {
    let hash = keyed_hash(seed, [number, 0, 0]);
    // The upper half of the product is below the vocabulary, which uint32 holds.
    ((u128::from(hash) * u128::from(vocab_size)) >> 64) as u32
}

fn write_blocks(path: &Path, blocks: impl Iterator<Item = Vec<u8>>) -> Result<Finished> {
    let mut file = Growing::create(path)?;
    for block in blocks {
        file.write(&block)?;
    }
    file.finish(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::Kind;
    use windrow_formats::Tokens;

    #[test]
    fn the_same_seed_gives_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.bin");
        assert!(!dummy(&Tokens, &path, 100, 70_000, 5, false).unwrap().unchanged);
        let want: Vec<u8> =
            create_dummy_data(100, 70_000, 5).unwrap().iter().flat_map(|t| t.to_le_bytes()).collect();
        assert_eq!(files::read(&path).unwrap(), want);
        assert!(dummy(&Tokens, &path, 100, 70_000, 5, false).unwrap().unchanged);
        assert_eq!(dummy(&Tokens, &path, 100, 70_000, 6, false).unwrap_err().kind(), Kind::Exists);
        dummy(&Tokens, &path, 100, 10, 6, true).unwrap();
        assert_eq!(files::size(&path), Some(40));
        assert_eq!(
            files::names(folder.path()).unwrap(),
            ["d.bin", "d.bin.windrow.json", "d.bin.windrow.sums"]
        );
    }

    #[test]
    fn ids_cover_the_vocabulary() {
        let mut seen = create_dummy_data(7, 1000, 0).unwrap();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(create_dummy_data(0, 1, 0).unwrap_err().kind(), Kind::Config);
    }
}
