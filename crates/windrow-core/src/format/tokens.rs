//! Headerless token files: ids one after the other, little-endian, one stream per file.

use std::sync::Arc;

use super::data_files::DataFiles;
use super::discover::natural_order;
use super::vocabulary::{check_ids, tokenizer_must_be};
use super::{About, Certainty, Format, Look, Options, SideFile};
use crate::array::{DType, Element};
use crate::error::{Error, Kind, Result};
use crate::record::{Decode, Lengths, Span, Values};
use crate::source::{FileInfo, Location, Schema, SharedSource, Source, check_span};

/// Headerless token files.
#[derive(Clone, Copy, Debug)]
pub struct Tokens;

const DTYPES: [DType; 5] = [DType::U8, DType::U16, DType::U32, DType::I32, DType::I64];

impl Format for Tokens {
    fn name(&self) -> &'static str {
        "tokens"
    }

    fn about(&self) -> About {
        About {
            title: "Raw tokens",
            layout: "headerless `.bin` files of little-endian uint8, uint16, uint32, int32 or int64",
            records: "one stream of ids per file",
            written_by: "`windrow tokenize --to tokens`, `windrow dummy`, numpy's tofile",
        }
    }

    fn recognise(&self, look: &Look) -> Certainty {
        let is_bin = |name: &str| name.ends_with(".bin");
        let named = match look.is_folder {
            true => {
                look.names.iter().any(|name| is_bin(name) && !name.contains('/'))
                    && !look.names.iter().any(|name| name == "meta.json")
            }
            false => is_bin(&look.file_name()),
        };
        match (&look.side, named) {
            (Some(side), _) if side.format == self.name() => Certainty::Yes,
            (_, true) => Certainty::Maybe,
            _ => Certainty::No,
        }
    }

    fn open(&self, look: &Look, options: &Options) -> Result<SharedSource> {
        let side = look.side.as_ref().filter(|s| s.format == self.name());
        let keys = keys(look, side)?;
        tokenizer_must_be(side, options.tokenizer.as_deref(), &look.display())?;
        let dtype = dtype(side.and_then(|s| s.dtype), options.dtype, look)?;
        let files = DataFiles::open(look.store.clone(), keys, |_, _| {
            Error::not_found("expected a token file, found nothing").hint("the copy looks unfinished")
        })?;
        let mut lengths = Vec::with_capacity(files.count());
        for file in 0..files.count() {
            lengths.push(length(&files, file, dtype)?);
        }
        if let Some(side) = side
            && !options.trust
        {
            for (file, key) in files.keys().iter().enumerate() {
                let size = lengths[file] * dtype.size() as u64;
                if let Some(row) = side.files.iter().find(|row| ends_in(key, &row.name) && row.size != size) {
                    return Err(Error::new(
                        Kind::Stale,
                        format!("the file has {size} bytes, the side file says {}", row.size),
                    )
                    .at(files.name(file))
                    .hint("the copy looks unfinished; trust=True reads it as it is"));
                }
            }
        }
        let mut schema = Schema::numbers(Element::little(dtype));
        let known = side.and_then(|s| s.vocab_size);
        schema.vocab_size = options.vocab_size.or(known);
        let source = Streams { files, lengths, schema };
        if let Some(vocab_size) = options.vocab_size.filter(|v| known.is_none_or(|known| known > *v)) {
            check_ids(&source, vocab_size)?;
        }
        Ok(Arc::new(source))
    }
}

/// The files of a data set in natural order. Of a folder those that the side file lists, where it lists any: one that is
/// missing must not make the data quietly shorter, nor a stray one longer.
fn keys(look: &Look, side: Option<&SideFile>) -> Result<Vec<String>> {
    if !look.is_folder {
        return Ok(vec![look.key.clone()]);
    }
    let mut names: Vec<&String> = match side.map(|side| &side.files) {
        Some(files) if !files.is_empty() => files.iter().map(|file| &file.name).collect(),
        _ => look.names.iter().filter(|name| name.ends_with(".bin") && !name.contains('/')).collect(),
    };
    if names.is_empty() {
        return Err(Error::not_found("expected `.bin` files, found none").at(look.display()));
    }
    let leads_out =
        |name: &str| name.contains('\0') || name.split('/').any(|part| matches!(part, "" | "." | ".."));
    if let Some(name) = names.iter().find(|name| leads_out(name)) {
        return Err(Error::config(format!(
            "the side file names {name:?}: expected the name of a file in its folder"
        ))
        .at(look.display())
        .field("files"));
    }
    names.sort_by(|a, b| natural_order(a, b).then_with(|| a.cmp(b)));
    names.dedup();
    Ok(names.into_iter().map(|name| look.below(name)).collect())
}

fn ends_in(key: &str, name: &str) -> bool {
    key.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

fn dtype(written: Option<DType>, asked: Option<DType>, look: &Look) -> Result<DType> {
    let dtype = match (written, asked) {
        (Some(written), Some(asked)) if written != asked => {
            return Err(Error::mismatch(format!(
                "dtype {asked} was asked for, the side file says {written}"
            ))
            .at(look.display())
            .hint("leave dtype= out"));
        }
        (Some(dtype), _) | (None, Some(dtype)) => dtype,
        (None, None) => {
            log::warn!(
                "{}: a .bin without a side file is read as uint32; dtype= says otherwise",
                look.display()
            );
            DType::U32
        }
    };
    match DTYPES.contains(&dtype) {
        true => Ok(dtype),
        false => {
            let names: Vec<_> = DTYPES.iter().map(|d| d.name()).collect();
            Err(Error::config(format!("token files do not hold {dtype}"))
                .at(look.display())
                .hint(format!("one of {}", names.join(", "))))
        }
    }
}

fn length(files: &DataFiles, file: usize, dtype: DType) -> Result<u64> {
    let (size, width) = (files.get(file)?.size(), dtype.size() as u64);
    if size == 0 {
        return Err(Error::corrupt(format!(
            "the file is empty: expected at least one {dtype} of {width} bytes"
        ))
        .at(files.name(file))
        .hint("the copy looks unfinished"));
    }
    match size % width {
        0 => Ok(size / width),
        over => Err(Error::corrupt(format!(
            "the file has {size} bytes: {over} more than whole {dtype} ids of {width} bytes"
        ))
        .at(files.name(file))
        .byte(size - over)
        .hint("the copy looks unfinished, or the ids are of another dtype=")),
    }
}

struct Streams {
    files: DataFiles,
    lengths: Vec<u64>,
    schema: Schema,
}

impl Streams {
    // A record's number is its file's.
    fn file(&self, span: Span) -> Result<usize> {
        check_span(span, self.length(span.record)?)?;
        Ok(span.record as usize)
    }
}

impl Lengths for Streams {
    fn len(&self) -> u64 {
        self.lengths.len() as u64
    }

    fn length(&self, record: u64) -> Result<u64> {
        let found = usize::try_from(record).ok().and_then(|r| self.lengths.get(r).copied());
        found.ok_or_else(|| Error::out_of_range("record", record, self.len()))
    }

    fn uniform(&self) -> Option<u64> {
        self.lengths.first().copied().filter(|first| self.lengths.iter().all(|l| l == first))
    }
}

impl Source for Streams {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let file = self.file(span)?;
        let width = self.schema.element.size() as u64;
        let size = usize::try_from(span.len * width)
            .map_err(|_| Error::unsupported(format!("{} values at once on this machine", span.len)))?;
        let bytes = self.files.get(file)?.read(span.start * width, size, scratch)?;
        Ok(Values { bytes, element: self.schema.element, channels: 1, decode: Decode::Plain })
    }

    fn touch(&self, span: Span) {
        let width = self.schema.element.size() as u64;
        if let Ok(file) = self.file(span)
            && let Ok(object) = self.files.get(file)
        {
            object.touch(span.start * width, span.len * width);
        }
    }

    fn advise(&self, spans: &[Span]) {
        let width = self.schema.element.size() as u64;
        for span in spans {
            if let Ok(file) = self.file(*span)
                && let Ok(object) = self.files.get(file)
            {
                object.advise(span.start * width, span.len * width);
            }
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let file = self.file(span)?;
        let width = self.schema.element.size() as u64;
        Ok(vec![Location { file: self.files.name(file), start: span.start * width, size: span.len * width }])
    }

    fn files(&self) -> Vec<FileInfo> {
        self.files.infos()
    }

    fn fingerprint(&self) -> Result<u64> {
        self.files.fingerprint(&[Tokens.name().as_bytes(), self.schema.element.dtype.name().as_bytes()])
    }

    fn format(&self) -> &'static str {
        Tokens.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FORMATS, FileRow, open};
    use crate::store::Memory;

    const IDS: [u8; 4] = [1, 0, 2, 0];

    fn listing(names: &[&str]) -> Memory {
        let mut side = SideFile::new("tokens");
        side.dtype = Some(DType::U16);
        side.files = names
            .iter()
            .map(|name| FileRow { name: name.to_string(), size: 4, ..FileRow::default() })
            .collect();
        Memory::new().with("d/windrow.json", side.to_text().into_bytes())
    }

    fn opened(store: Memory) -> Result<SharedSource> {
        open(FORMATS, &Look::at(Arc::new(store), "d")?, &Options::default())
    }

    #[test]
    fn the_files_that_the_side_file_lists_are_the_records() {
        let part = listing(&["b10.bin", "b2.bin"]).with("d/b2.bin", IDS);
        let e = opened(part.clone()).err().unwrap();
        assert_eq!(e.kind(), Kind::NotFound, "{e}");
        assert!(e.to_string().contains("d/b10.bin"), "{e}");

        let whole = opened(part.with("d/b10.bin", IDS).with("d/stray.bin", IDS)).unwrap();
        let names: Vec<_> = whole.files().into_iter().map(|file| file.file).collect();
        assert_eq!(names, ["d/b2.bin", "d/b10.bin"]);

        let e = opened(listing(&["a.bin"]).with("d/a.bin", [1, 0])).err().unwrap();
        assert_eq!(e.kind(), Kind::Stale, "{e}");
        assert!(e.message().contains('2') && e.message().contains('4'), "{e}");
    }

    #[test]
    fn without_a_list_the_token_files_of_the_folder_are_the_records() {
        let store = listing(&[]).with("d/a10.bin", IDS).with("d/a9.bin", IDS).with("d/sub/x.bin", IDS);
        let names: Vec<_> = opened(store).unwrap().files().into_iter().map(|file| file.file).collect();
        assert_eq!(names, ["d/a9.bin", "d/a10.bin"]);
    }

    #[test]
    fn a_side_file_names_files_of_its_own_folder_only() {
        for name in ["../b.bin", "/b.bin", "sub/../../b.bin", "", "a.bin\0"] {
            let store = listing(&[name]).with("d/a.bin", IDS).with("b.bin", IDS).with("d/../b.bin", IDS);
            let e = opened(store).err().unwrap();
            assert_eq!(
                (e.kind(), e.place().field.as_deref()),
                (Kind::Config, Some("files")),
                "{name:?}: {e}"
            );
        }
    }
}
