//! OLMo's and dolma's token files: headerless numbers called `.npy`, documents in a `.csv.gz` beside them.

mod documents;
mod table;
mod write;

use std::sync::Arc;

use windrow_core::format::write::{OwnOptions, WriteFormat};
use windrow_core::format::{FileNames, FormatInfo, Holds, Options, Probe};
use windrow_core::source::{Schema, SharedSource};
use windrow_core::store::{Object, key};
use windrow_core::{DType, Element, Error, Result};

use self::documents::Documents;
use self::table::Table;
use self::write::WriteOlmo;
use crate::foreign;
use crate::in_files::FileKind;
use crate::token_runs::TokenRuns;
use windrow_core::format::data_files::{DataFiles, gone};

const DATA: &str = ".npy";
const DOCUMENTS: &str = ".csv.gz";
/// How an array of numpy begins, which these files are not.
const NUMPY: &[u8] = b"\x93NUMPY";
const DTYPES: [DType; 4] = [DType::U8, DType::U16, DType::U32, DType::U64];

/// Token files of OLMo and dolma.
pub(crate) struct Olmo;

static INFO: FormatInfo = FormatInfo {
    name: "olmo",
    title: "OLMo, dolma",
    layout: "headerless `.npy` files of uint8, uint16, uint32 or uint64, with `.csv.gz` where documents are known",
    records: "a document with id, src and loc beside it; without a `.csv.gz` the token IDs of a file",
    written_by: "dolma tokens, OLMo-core, `windrow convert --to olmo`, `wr.write`",
    holds: &[Holds::Tokens],
    data_suffixes: &[".npy"],
    written_as: "a folder with one headerless `.npy` and its `.csv.gz`",
    names: FileNames { companions, ..FileNames::NONE },
    ..FormatInfo::NONE
};

impl FileKind for Olmo {
    const INFO: &'static FormatInfo = &INFO;
    const BEGINS: Option<fn(&dyn Object) -> Result<bool>> = Some(is_headerless);

    fn is_data(_: &Probe, name: &str) -> bool {
        key::has_suffix(name, DATA)
    }

    fn writer(_: &mut OwnOptions) -> Result<Box<dyn WriteFormat>> {
        Ok(Box::new(WriteOlmo))
    }

    fn open(probe: &Probe, keys: Vec<String>, options: &Options) -> Result<SharedSource> {
        let files = DataFiles::listed(probe, keys.clone(), gone)?;
        let tables = tables(probe, &keys)?;
        // Documents are compared with the size of their file.
        let files = if tables.is_empty() && !options.trust {
            files.checked_by(refuse_others)?
        } else {
            files.checked_by(refuse_header)?
        };
        // An error says so, rather than ask for the dtype of another kind of file.
        if tables.is_empty() {
            files.get(0)?;
        }
        let written = probe.manifest.as_ref().and_then(|manifest| manifest.dtype);
        let dtype = dtype(probe, &files, &tables, options.dtype.or(written))?;
        let index_keys: Vec<String> = tables.iter().map(|table| table.key().to_string()).collect();
        let documents = Documents::open(&files, tables, dtype)?;
        let indices = Arc::new(DataFiles::listed(probe, index_keys, gone)?);
        let schema = Schema::numbers(Element::little(dtype));
        TokenRuns { files, header: 0, track: None, indices, runs: documents, schema, format: INFO.name }
            .open(probe, options)
    }
}

fn companions(name: &str) -> Vec<String> {
    key::without_suffix(name, DATA).map(|stem| format!("{stem}{DOCUMENTS}")).into_iter().collect()
}

fn refuse_others(object: &dyn Object) -> Result<()> {
    refuse_header(object)?;
    foreign::refuse_as_ids(object)
}

fn refuse_header(object: &dyn Object) -> Result<()> {
    if object.size() == 0 || is_headerless(object)? {
        Ok(())
    } else {
        Err(Error::corrupt("expected token IDs without a header, found an array of numpy's")
            .at(object.name())
            .byte(0)
            .hint("files that numpy.save wrote open by themselves, or in a folder of their own"))
    }
}

// Whether a file is numbers from its first byte on. A header of numpy's that was damaged or cut short is one all the same:
// nothing of it is taken for numbers.
fn is_headerless(object: &dyn Object) -> Result<bool> {
    const LOOKED_AT: u64 = 128;
    let mut scratch = Vec::new();
    let head = object.read(0, object.size().min(LOOKED_AT) as usize, &mut scratch)?;
    let alike = head.iter().zip(NUMPY).filter(|(found, expected)| found == expected).count();
    let describes = [&b"'descr'"[..], b"'shape'", b"fortran_order"];
    let is_numpy = if head.len() < NUMPY.len() {
        NUMPY.starts_with(head)
    } else {
        alike + 2 >= NUMPY.len() || describes.iter().any(|word| memchr::memmem::find(head, word).is_some())
    };
    Ok(!head.is_empty() && !is_numpy)
}

// The documents of each file: of all of them, or of none.
fn tables(probe: &Probe, keys: &[String]) -> Result<Vec<Table>> {
    let names: Vec<String> = keys
        .iter()
        .map(|key| format!("{}{DOCUMENTS}", key::without_suffix(key, DATA).unwrap_or(key)))
        .collect();
    let (store, mut there) = (probe.store.as_ref(), Vec::new());
    for name in &names {
        there.extend(probe.file(name)?.map(|_| name));
    }
    if there.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(gone) = names.iter().find(|name| !there.contains(name)) {
        return Err(Error::not_found(format!("the `{DOCUMENTS}` file is gone, which other files have"))
            .at(store.display(gone))
            .hint("the copy looks unfinished"));
    }
    names.iter().map(|name| Table::open(store.open(name)?, name)).collect()
}

// What was asked for, or what the last end and the size of each file say together.
fn dtype(probe: &Probe, files: &DataFiles, tables: &[Table], said: Option<DType>) -> Result<DType> {
    if let Some(dtype) = said {
        return if DTYPES.contains(&dtype) {
            Ok(dtype)
        } else {
            Err(Error::config(format!("these token files do not hold {dtype}"))
                .at(probe.display())
                .field("dtype")
                .hint("one of uint8, uint16, uint32, uint64"))
        };
    }
    let mut fitting = DTYPES.to_vec();
    for (file, table) in tables.iter().enumerate() {
        let size = files.size(file)?;
        fitting.retain(|dtype| table.last_end().checked_mul(dtype.size() as u64) == Some(size));
    }
    match (tables.is_empty(), fitting.as_slice()) {
        (false, [dtype]) => Ok(*dtype),
        (is_alone, _) => {
            let why = if is_alone {
                "nothing says how wide a token ID is"
            } else {
                "how wide a token ID is does not follow: the documents do not end where the files do"
            };
            Err(Error::config(why)
                .at(probe.display())
                .field("dtype")
                .hint("@dtype=uint16@ or @dtype=uint32@"))
        }
    }
}
