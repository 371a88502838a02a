//! ArrayRecord with right hashes and wrong contents: each is refused where it is found, and nothing is allocated for it.

use highway::{HighwayHash, HighwayHasher, Key};
use windrow_core::format::{Options, Payload};
use windrow_core::{DType, Error, Kind, Span};

use super::alone::{alone, most_memory};
use super::disk::{open, open_with};
use super::folder::folder_of;

const BLOCK: usize = 1 << 16;
const MAGIC: u64 = 0x7193_0e70_4fda_e05e;

fn hash(bytes: &[u8]) -> [u8; 8] {
    let key = [0x2f69_6c65_6765_6952, 0x0a73_6472_6f63_6572, 0x2f69_6c65_6765_6952, 0x0a73_6472_6f63_6572];
    HighwayHasher::new(Key(key)).hash64(bytes).to_le_bytes()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

fn message(numbers: &[u64]) -> Vec<u8> {
    (1u64..).zip(numbers).flat_map(|(field, number)| [varint(field << 3), varint(*number)].concat()).collect()
}

/// Data of a chunk: sizes and values, each as it is stored.
fn data(codec: u8, sizes: &[u8], values: &[u8]) -> Vec<u8> {
    [&[codec][..], &varint(sizes.len() as u64), sizes, values].concat()
}

/// A chunk, and what its header says.
#[derive(Clone)]
struct Chunk {
    kind: u8,
    data: Vec<u8>,
    records: u64,
    decoded: u64,
}

fn plain(records: &[Vec<u8>]) -> Chunk {
    let sizes: Vec<u8> = records.iter().flat_map(|record| varint(record.len() as u64)).collect();
    let values = records.concat();
    Chunk {
        kind: b'r',
        data: data(0, &sizes, &values),
        records: records.len() as u64,
        decoded: values.len() as u64,
    }
}

/// A file of these chunks, all of it as the writer makes it where nothing is changed.
#[derive(Clone)]
struct File {
    chunks: Vec<Chunk>,
    version: u64,
    /// Added to the numbers of chunks and records.
    more: [u64; 2],
    /// Changes rows of the footer: place, bytes, records.
    row: fn(usize, [u64; 3]) -> [u64; 3],
    /// Changes what the postscripts say.
    postscript: fn(usize, [u64; 2]) -> [u64; 2],
}

impl File {
    fn of(chunks: Vec<Chunk>) -> File {
        File { chunks, version: 1, more: [0; 2], row: |_, row| row, postscript: |_, said| said }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&[0; 40], &mut out);
        let (mut rows, mut total) = (Vec::new(), 0);
        for (number, chunk) in self.chunks.iter().enumerate() {
            rows.push(message(&(self.row)(number, [out.len() as u64, chunk.decoded, chunk.records])));
            total += chunk.records;
            put_chunk(chunk, &mut out);
        }
        let metadata =
            message(&[self.version, self.chunks.len() as u64 + self.more[0], total + self.more[1]]);
        rows.insert(0, [&[10][..], &varint(metadata.len() as u64), &metadata].concat());
        let at = out.len() as u64;
        put_chunk(&plain(&rows), &mut out);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
        let said: Vec<Vec<u8>> =
            (0..3).map(|number| message(&(self.postscript)(number, [at, MAGIC]))).collect();
        put_chunk(&plain(&said), &mut out);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
        out
    }
}

fn put(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        if out.len().is_multiple_of(BLOCK) {
            out.extend(hash(&[0; 16]));
            out.extend([0; 16]);
        }
        out.push(*byte);
    }
}

fn put_chunk(chunk: &Chunk, out: &mut Vec<u8>) {
    let header = [
        (chunk.data.len() as u64).to_le_bytes(),
        hash(&chunk.data),
        (chunk.records << 8 | u64::from(chunk.kind)).to_le_bytes(),
        chunk.decoded.to_le_bytes(),
    ]
    .concat();
    put(&hash(&header), out);
    put(&header, out);
    put(&chunk.data, out);
}

fn records() -> Vec<Vec<u8>> {
    (0..6).map(|i| vec![i as u8; 3 * i]).collect()
}

fn sound() -> File {
    let records = records();
    File::of(vec![plain(&records[..3]), plain(&records[3..5]), plain(&records[5..])])
}

/// The error of opening these bytes, or of reading their first record.
fn error_of(bytes: &[u8]) -> Error {
    let folder = folder_of(&[("a.array_record", bytes)]);
    let options = Options { payload: Some(Payload::Bytes), ..Options::default() };
    let path = folder.path().join("a.array_record");
    let (error, memory) = most_memory(|| match open_with(&path, &options) {
        Err(error) => error,
        Ok(source) => {
            let read = (0..source.len()).find_map(|record| source.row(record).err());
            let error = read.expect("an error");
            assert_eq!(error.kind(), Kind::Corrupt, "{error}");
            error
        }
    });
    assert!(memory < 8 << 20, "{error}: {memory} bytes for a file of {}", bytes.len());
    error
}

fn refused(file: &File, says: &str) {
    let error = error_of(&file.bytes());
    assert!(format!("{error:#}").contains(says), "{says}: {error}");
    let place = error.place();
    assert!(place.file.as_deref().is_some_and(|file| file.ends_with("a.array_record")), "{error}");
    assert!(place.byte.is_some(), "{error}");
}

#[test]
fn a_sound_file_is_read() {
    alone("array_record::a_sound_file_is_read", |_| {
        let big = vec![vec![7; 200_000], vec![], vec![8; BLOCK]];
        let groups: Vec<Vec<u8>> = records().into_iter().chain(big.clone()).collect();
        for chunks in [
            sound().chunks,
            big.iter().map(|one| plain(std::slice::from_ref(one))).collect(),
            vec![plain(&groups)],
        ] {
            let count: u64 = chunks.iter().map(|chunk| chunk.records).sum();
            let folder = folder_of(&[("a.array_record", &File::of(chunks).bytes())]);
            let source = open(folder.path()).unwrap();
            assert_eq!(source.len(), count);
            for record in 0..count {
                source.row(record).unwrap();
            }
        }
    });
}

#[test]
fn lengths_are_known_without_the_values() {
    alone("array_record::lengths_are_known_without_the_values", |_| {
        let mut bytes = sound().bytes();
        let values = bytes.windows(15).rposition(|window| window == [5; 15]).unwrap();
        bytes[values + 3] ^= 1;
        let more = bytes.windows(12).position(|window| window == [4; 12]).unwrap();
        bytes[more + 3] ^= 1;
        let folder = folder_of(&[("a.array_record", &bytes)]);
        let options = Options { dtype: Some(DType::U8), ..Options::default() };
        let source = open_with(folder.path(), &options).unwrap();
        let mut lengths = [0; 6];
        source.lengths(0, &mut lengths).unwrap();
        assert_eq!(lengths, [0, 3, 6, 9, 12, 15]);
        for record in 3..6 {
            let span = Span { record, start: 0, len: lengths[record as usize] };
            let error = source.read(span, &mut Vec::new()).unwrap_err();
            assert_eq!((error.kind(), error.place().record), (Kind::Corrupt, Some(record)), "{error}");
        }
    });
}

#[test]
fn a_footer_that_does_not_fit_its_file_is_refused() {
    alone("array_record::a_footer_that_does_not_fit_its_file_is_refused", |_| {
        let with = |change: fn(&mut File)| {
            let mut file = sound();
            change(&mut file);
            file
        };
        refused(&with(|file| file.version = 2), "version 2");
        refused(&with(|file| file.more = [1, 0]), "says there are 4");
        refused(&with(|file| file.more = [0, 1]), "says there are 7");
        refused(&with(|file| file.row = |_, [at, size, count]| [at + 9_000_000, size, count]), "chunk 2");
        refused(&with(|file| file.row = |_, [_, size, count]| [64, size, count]), "chunk 0");
        refused(&with(|file| file.row = |_, [_, size, count]| [0, size, count]), "chunk 0");
        refused(&with(|file| file.row = |n, [at, size, count]| [at + n as u64, size, count]), "hash");
        refused(&with(|file| file.row = |_, [at, size, _]| [at, size, 1 << 50]), "chunk 0");
        refused(&with(|file| file.row = |_, [at, _, count]| [at, 1 << 60, count]), "chunk 0");
        refused(&with(|file| file.row = |_, [at, size, count]| [at, size + 1, count]), "the footer says");
        refused(&with(|file| file.row = |n, [at, size, _]| [at, size, [2, 3, 1][n]]), "the footer says");
    });
}

#[test]
fn a_postscript_that_does_not_fit_its_file_is_refused() {
    alone("array_record::a_postscript_that_does_not_fit_its_file_is_refused", |_| {
        let with = |postscript: fn(usize, [u64; 2]) -> [u64; 2]| File { postscript, ..sound() };
        refused(&with(|_, [at, magic]| [at, magic + 1]), "magic");
        refused(&with(|n, [at, magic]| [at, if n == 2 { 0 } else { magic }]), "magic");
        refused(&with(|n, [at, magic]| [at + n as u64, magic]), "two places");
        refused(&with(|_, [_, magic]| [0, magic]), "a footer at byte 0");
        refused(&with(|_, [_, magic]| [u64::MAX, magic]), "a footer at byte");
        refused(&with(|_, [_, magic]| [BLOCK as u64, magic]), "a footer at byte");
        refused(&with(|_, [_, magic]| [64, magic]), "expected the footer");
        let bytes = sound().bytes();
        for size in [0, 1, BLOCK, bytes.len() - 1, bytes.len() - BLOCK] {
            let error = error_of(&bytes[..size]);
            assert!(error.hint_text().is_some_and(|hint| hint.contains("unfinished")), "{error}");
        }
    });
}

#[test]
fn chunks_that_do_not_hold_what_they_say_are_refused() {
    alone("array_record::chunks_that_do_not_hold_what_they_say_are_refused", |_| {
        let good = plain(&[b"barley".to_vec()]);
        let with = |change: &dyn Fn(&mut Chunk)| {
            let mut chunk = good.clone();
            change(&mut chunk);
            // As the only one, and behind others.
            [File::of(vec![chunk.clone()]), File::of(vec![plain(&records()), chunk])]
        };
        let all = |change: &dyn Fn(&mut Chunk), says: &str| {
            with(change).iter().for_each(|file| refused(file, says));
        };
        all(&|chunk| chunk.kind = b't', "transposed");
        let [alone, _] = with(&|chunk| chunk.kind = b't');
        assert_eq!(error_of(&alone.bytes()).kind(), Kind::Unsupported);
        all(&|chunk| chunk.kind = b'p', "kind 'p'");
        all(&|chunk| chunk.data[0] = b'q', "codec");
        all(&|chunk| chunk.data.clear(), "without data");
        all(&|chunk| chunk.data = vec![0, 200], "cut short");
        all(&|chunk| chunk.data = data(0, &[6], b"barle"), "records of 5 bytes");
        all(&|chunk| chunk.data = data(0, &[5], b"barley"), "records of 5 bytes");
        all(&|chunk| chunk.data = data(0, &[3, 3], b"barley"), "more sizes");
        all(&|chunk| chunk.data = data(0, &[], b"barley"), "whose sizes are 0 bytes");
        all(&|chunk| chunk.data = data(0, &[0xff; 11], b"barley"), "64 bits");
        all(&|chunk| chunk.data[1] = 100, "pass its end");
        all(&|chunk| (chunk.records, chunk.data) = (3, data(0, &[2, 2, 3], b"barley")), "records of 7 bytes");
        all(&|chunk| chunk.decoded = 5, "records of 6 bytes");
    });
}

#[test]
fn compressed_chunks_expand_to_what_they_declare() {
    alone("array_record::compressed_chunks_expand_to_what_they_declare", |_| {
        let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 3).unwrap();
        let snappy = |bytes: &[u8]| snap::raw::Encoder::new().compress_vec(bytes).unwrap();
        let declared = |size: u64, packed: &[u8]| [&varint(size), packed].concat();
        let one = |codec: u8, sizes: &[u8], values: &[u8], decoded: u64| {
            File::of(vec![Chunk { kind: b'r', data: data(codec, sizes, values), records: 1, decoded }])
        };
        let size = |of: u8| declared(1, &zstd(&[of]));
        let text = zstd(b"barley");
        refused(&one(b'z', &size(7), &declared(7, &text), 7), "declares");
        refused(&one(b'z', &size(5), &declared(5, &text), 5), "declares");
        refused(&one(b'z', &size(6), &declared(5, &text), 6), "records of 5 bytes");
        refused(&one(b'z', &size(6), &declared(6, b"straw"), 6), "zstd");
        refused(&one(b'z', &declared(1, b"straw"), &declared(6, &text), 6), "zstd");
        refused(&one(b'z', &[], &declared(6, &text), 6), "cut short");
        // 60 MiB of zeros in a few kilobytes, of which one byte more is said than there is, and one byte less.
        let zeros = zstd(&vec![0; 60 << 20]);
        for said in [(60 << 20) - 1, (60 << 20) + 1] {
            let size = declared(4, &zstd(&varint(said)));
            let bytes = one(b'z', &size, &declared(said, &zeros), said).bytes();
            let folder = folder_of(&[("a.array_record", &bytes)]);
            let options = Options { payload: Some(Payload::Bytes), ..Options::default() };
            let error = open_with(folder.path(), &options).unwrap().row(0).unwrap_err();
            assert!(format!("{error:#}").contains("declare"), "{error}");
        }
        let said = 1 << 40;
        refused(&one(b'z', &declared(6, &zstd(&varint(said))), &declared(said, &zeros), said), "chunk 0");
        refused(&one(b'z', &declared(said, &zstd(&[6])), &declared(6, &text), 6), "expand to");
        let size = |of: u64| declared(varint(of).len() as u64, &snappy(&varint(of)));
        refused(&one(b's', &size(7), &declared(7, &snappy(b"barley")), 7), "6 bytes of snappy, expected 7");
        refused(&one(b's', &size(1 << 20), &declared(1 << 20, &[128, 128, 64, 0]), 1 << 20), "snappy");
        refused(&one(b's', &size(6), &declared(6, b"straw"), 6), "snappy");
        refused(&one(b'b', &declared(1, b"\xff\xff"), &declared(6, b"\xff\xff"), 6), "brotli");
    });
}

#[test]
fn every_flipped_bit_of_chunks_and_footer_is_found() {
    alone("array_record::every_flipped_bit_of_chunks_and_footer_is_found", |_| {
        let bytes = sound().bytes();
        let end = BLOCK - bytes[..BLOCK].iter().rev().take_while(|byte| **byte == 0).count();
        let last = bytes.len() - bytes[BLOCK..].iter().rev().take_while(|byte| **byte == 0).count();
        // The signature and the first block's header are not read.
        for at in (64..end).chain(bytes.len() - BLOCK..last) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 16;
            assert!(!error_of(&flipped).to_string().is_empty());
        }
        // The header of a block inside a record.
        let mut big = File::of(vec![plain(&[vec![7; 200_000]])]).bytes();
        big[BLOCK + 9] ^= 16;
        assert!(error_of(&big).to_string().contains("header of a block"));
    });
}
