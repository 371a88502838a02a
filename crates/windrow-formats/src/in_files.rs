//! Formats whose data are files of one kind: one of them, or those directly in a folder, in natural order, whose names may be
//! those of shards: `train.tfrecord-00000-of-00002`.

use windrow_core::format::data_files::{names_to_join, top_files};
use windrow_core::format::discover::refuse_missing_shards;
use windrow_core::format::verify::{Opened, Verifier, Verify};
use windrow_core::format::vocabulary::tokenizer_must_be;
use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{Confidence, Format, FormatInfo, Options, Payload, Probe, splits};
use windrow_core::source::SharedSource;
use windrow_core::store::{Object, key};
use windrow_core::{Error, Kind, Result};

use crate::token_runs::verify_each;

/// What files of a format are and how they are opened; [`InFiles`] makes a [`Format`] of it.
pub(crate) trait FileKind: Send + Sync + 'static {
    /// The description of the format.
    const INFO: &'static FormatInfo;

    /// How names of its files end, as the error says where there are none.
    const EXPECTED: &'static str = Self::INFO.data_suffixes[0];

    /// Tells its files by their first bytes, where files of others are called so, too.
    const BEGINS: Option<fn(&dyn Object) -> Result<bool>> = None;

    /// Tells its files by their content, whatever they are called.
    const BY_CONTENT: Option<fn(&dyn Object) -> Result<bool>> = None;

    /// What is compared whenever a record is read.
    const CHECKSUMS: Option<&'static str> = None;

    /// How the file ends, behind the name of its data, that says what that holds and is not one of the source.
    const METADATA: Option<&'static str> = None;

    /// Whether this is the name of one.
    fn is_data(probe: &Probe, name: &str) -> bool;

    /// How it is written.
    ///
    /// # Errors
    /// As [`Format::writer`].
    fn writer(options: &mut OwnOptions) -> Result<Box<dyn WriteFormat>>;

    /// Opens these files, one at least, of one split.
    ///
    /// # Errors
    /// As [`Format::open`].
    fn open(probe: &Probe, keys: Vec<String>, options: &Options) -> Result<SharedSource>;
}

/// A format of such files.
pub(crate) struct InFiles<K>(pub(crate) K);

fn named<K: FileKind>(probe: &Probe) -> Vec<String> {
    top_files(probe, |name| K::is_data(probe, name))
}

// Those of its name; where there are none, all of them, if the content of the first is its own: one that is not is an error
// when it is opened, as it would be under the right name.
fn keys<K: FileKind>(probe: &Probe) -> Vec<String> {
    let named = named::<K>(probe);
    let (true, Some(is_one)) = (named.is_empty(), K::BY_CONTENT) else { return named };
    let is_one =
        |key: &String| probe.store.open(key).and_then(|object| is_one(object.as_ref())).is_ok_and(|is| is);
    let all = top_files(probe, |_| true);
    if all.first().is_some_and(is_one) { all } else { Vec::new() }
}

impl<K: FileKind> Format for InFiles<K> {
    fn info(&self) -> &'static FormatInfo {
        K::INFO
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        let begins = |key: &String| match K::BEGINS {
            Some(begins) => {
                probe.store.open(key).is_ok_and(|object| begins(object.as_ref()).is_ok_and(|is| is))
            }
            None => true,
        };
        Confidence::yes_if(named::<K>(probe).first().is_some_and(begins))
    }

    fn is_content(&self, probe: &Probe) -> bool {
        K::BY_CONTENT.is_some() && !keys::<K>(probe).is_empty()
    }

    fn joins(&self, probe: &Probe) -> Vec<String> {
        names_to_join(probe, &keys::<K>(probe))
    }

    fn writer(&self, options: &mut OwnOptions) -> Result<Option<Box<dyn WriteFormat>>> {
        K::writer(options).map(Some)
    }

    fn verifier(&self) -> &dyn Verify {
        self
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        let keys = keys::<K>(probe);
        if keys.is_empty() {
            return Err(none_found(probe, K::EXPECTED, K::INFO.data_suffixes));
        }
        if probe.is_folder {
            splits::refuse_in(probe, keys.iter().map(|key| probe.name_of(key)))?;
        }
        if K::INFO.is_for_tokens() {
            let asked = options.tokenizer.as_deref();
            tokenizer_must_be(probe.manifest.as_ref(), asked, &probe.display())?;
        } else {
            none_missing(probe, &keys)?
        }
        K::open(probe, keys, options)
    }
}

impl<K: FileKind> Verify for InFiles<K> {
    // Each file by itself: those of several splits are no data set together, but each is one.
    fn records(&self, format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        let keys = keys::<K>(probe);
        for key in &keys {
            if let Some(checksums) = K::CHECKSUMS {
                out.covers(&probe.store.display(key), checksums);
            }
            if let Some(suffix) = K::METADATA
                && let Some(metadata) = probe.file(&format!("{key}{suffix}"))?
            {
                out.looks_at(&probe.store.display(&metadata.key));
            }
        }
        if K::INFO.is_for_tokens() {
            return verify_each(format, probe, &keys, out);
        }
        if let Err(missing) = none_missing(probe, &keys) {
            out.found(missing, &probe.display(), "shards")?;
        }
        let as_bytes = Options { payload: Some(Payload::Bytes), ..Options::default() };
        for key in &keys {
            let file = Probe::at(probe.table, probe.store.clone(), key)?;
            let refused = format.open(&file, &Options::default()).err();
            // What a record holds is not read here, which is no damage: it is whole as bytes.
            match refused.filter(|error| error.kind() == Kind::Unsupported) {
                None => verify_each(format, probe, std::slice::from_ref(key), out)?,
                Some(error) => match out.read_with(format, &file, &as_bytes)? {
                    Opened::Not(_) => out.found(error, &file.display(), "content")?,
                    Opened::Before => {}
                    Opened::Read(_) => {
                        let (file, what) = (file.display(), error.message());
                        out.note(format!("{file}: {what}; @payload=bytes@ opens it"));
                    }
                },
            }
        }
        Ok(())
    }
}

// That all shards of a folder are there which their names say.
fn none_missing(probe: &Probe, keys: &[String]) -> Result<()> {
    if probe.is_folder {
        refuse_missing_shards(keys.iter().map(String::as_str), |key| probe.store.display(key))
    } else {
        Ok(())
    }
}

/// Whether a name ends in `suffix`, in small letters or in capitals, or in that and the number of a shard.
pub(crate) fn is_named(name: &str, suffix: &str) -> bool {
    let name = key::name_of(name).to_ascii_lowercase();
    let Some((_, rest)) = name.rsplit_once(suffix) else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let shard = rest.strip_prefix('-').and_then(|rest| rest.split_once("-of-"));
    rest.is_empty() || shard.is_some_and(|(number, of)| is_number(number) && is_number(of))
}

/// The error of a folder that holds no files of a kind; where folders below it do, one of them is named.
pub(crate) fn none_found(probe: &Probe, expected: &str, suffixes: &[&str]) -> Error {
    let error = Error::not_found(format!("expected `{expected}` files, found none")).at(probe.display());
    let is_one = |name: &&str| suffixes.iter().any(|suffix| key::has_suffix(name, suffix));
    match probe.names().filter(is_one).find_map(|name| name.rsplit_once('/')) {
        Some((folder, _)) => {
            let folder = probe.store.display(&probe.below(folder));
            error.hint(format!(
                "there are such files in {folder}: open that folder, or name the files by a pattern"
            ))
        }
        None => error,
    }
}
