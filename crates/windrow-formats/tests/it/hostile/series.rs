//! Series that are no series, text that stands for more than it is, and pickles that would do more than hold data: an
//! error that names the place, little memory, and an empty cache.

use std::path::Path;

use windrow_core::format::Options;
use windrow_core::source::conformance;
use windrow_core::{Kind, Result};

use super::refused;
use crate::alone::{alone, most_memory};
use crate::disk::{Wanted, both_ways, open_with};
use crate::folder::{folder_of, names, put};

const MILLION: usize = 1 << 20;

/// Opening the file fails as wanted, and leaves nothing in the cache.
#[track_caller]
fn check(cache: &Path, name: &str, bytes: &[u8], record: Option<u64>, byte: Option<u64>, says: &[&str]) {
    let folder = folder_of(&[(name, bytes)]);
    let wanted = Wanted { kind: Some(Kind::Corrupt), file: name, record, byte, says };
    // An array of objects without a key that names a series holds records, unless it is said to hold series.
    let format = bytes.starts_with(b"[{").then(|| "series-json".to_string());
    refused(folder.path(), name, &Options { format, ..Options::default() }, &wanted);
    assert_eq!(names(cache).len(), 0, "{says:?}");
}

/// What cutting and changing a file may give: records that keep every promise, or an error that names the file.
#[track_caller]
fn opens_or_says(folder: &Path, name: &str, bytes: &[u8]) -> bool {
    put(folder, name, bytes);
    match open_with(&folder.join(name), &Options::default()) {
        Ok(source) => {
            conformance::check(source.as_ref()).unwrap();
            for record in 0..source.len().min(50) {
                source.extras(record).unwrap().shown();
            }
            true
        }
        Err(error) => {
            assert!(error.place().file.is_some(), "{error}");
            false
        }
    }
}

#[test]
fn json_that_is_no_series_is_refused() {
    alone("hostile::series::json_that_is_no_series_is_refused", |cache| {
        let cases: &[(&str, Option<u64>, u64, &[&str])] = &[
            ("{\"a\": [1]}", None, 0, &["expected a list of series, found an object", ".jsonl"]),
            ("null", None, 0, &["found null"]),
            ("7", None, 0, &["found a number"]),
            ("[[1], null]", Some(1), 6, &["expected a record, found null", "as []", "NaN"]),
            ("[[1], 2]", Some(1), 6, &["expected a record, found a number"]),
            ("[1, [2]]", Some(0), 4, &["expected a number, found a list"]),
            ("[[1, null]]", Some(0), 5, &["expected a number, found null", "as NaN", ".nan(\"mask\")"]),
            ("[[null, 1]]", Some(0), 2, &["found null", "as NaN", ".nan(\"mask\")"]),
            ("[[[1, 2], [null, 3]]]", Some(0), 11, &["expected a number, found null", "as NaN"]),
            ("[[1, \"NaN\"]]", Some(0), 5, &["expected a number, found a string", "as NaN"]),
            ("[[1, \"2\"]]", Some(0), 5, &["expected a number, found a string", "quotes"]),
            ("[[\"2\"]]", Some(0), 2, &["found a string"]),
            ("[[[1, 2], [3]]]", Some(0), 12, &["expected 2 numbers in row 1 of a record [T, C], found 1"]),
            ("[[[]]]", Some(0), 3, &["expected at least 1 numbers in row 0"]),
            ("[[[[1]]]]", Some(0), 3, &["expected a number, found a list"]),
            ("[[[1], 2]]", Some(0), 7, &["expected numbers or lists of numbers, found a number"]),
            ("[[1], [[1, 2]]]", Some(1), 13, &["a record [T, 2], where those before it are [T]"]),
            ("[[[1, 2]], [[1, 2, 3]]]", Some(1), 21, &["a record [T, 3]", "[T, 2]"]),
            (
                "[{\"x\": \"a\"}]",
                Some(0),
                10,
                &["expected the key `sequence` in a record, found none", "other keys: x"],
            ),
            (
                "[{\"x\": [1], \"y\": [2]}]",
                Some(0),
                20,
                &["expected the key `sequence` in a record, found none", "numbers are in x, y", ".column(…)"],
            ),
            ("[{\"x\": [1]}, {\"y\": [2]}]", Some(1), 22, &["expected the key `x`", "other keys: y"]),
            (
                "[{\"sequence\": \"ab\"}]",
                Some(0),
                14,
                &["`sequence` to be a list of numbers, found a string"],
            ),
            ("[{\"sequence\": [1], \"sequence\": [2]}]", Some(0), 19, &["`sequence` is twice"]),
            ("[[9223372036854775808]]", Some(0), 2, &["9223372036854775808 does not fit int64"]),
            ("[[1], [2]", Some(2), 9, &["found the end of the text", "unfinished"]),
            ("[[1]] [[2]]", None, 6, &["expected nothing more"]),
            ("[[1] [2]]", Some(1), 5, &["expected ',' or ']'"]),
            ("[[NaN, -NaN]]", Some(0), 7, &["expected a number, found \"-NaN"]),
        ];
        for (text, record, byte, says) in cases {
            check(cache, "a.json", text.as_bytes(), *record, Some(*byte), says);
        }
        check(cache, "a.json", b"", None, None, &["0 bytes"]);
        check(cache, "a.json", &b"[".repeat(MILLION), Some(0), Some(3), &["found a list"]);
        let deep = format!("[{{\"x\": {}", "[".repeat(MILLION));
        check(cache, "a.json", deep.as_bytes(), Some(0), Some(125), &["nests less"]);
    });
}

#[test]
fn a_line_that_is_no_series_is_named() {
    alone("hostile::series::a_line_that_is_no_series_is_named", |cache| {
        let cases: &[(&str, u64, u64, &[&str])] = &[
            ("[1]\n\n[2]\n", 1, 4, &["found a blank line", "line 2", "delete blank lines"]),
            ("[1]\n  \r\n", 1, 4, &["found a blank line", "line 2"]),
            ("[1]\n[2] [3]\n", 1, 8, &["expected nothing more", "line 2"]),
            ("[1]\n[2,\n3]\n", 1, 8, &["found the end of the text", "line 2"]),
            ("[1]\n2\n", 1, 4, &["expected a record, found a number", "line 2"]),
            ("[1]\n[2]\n{\"sequence\": {}}\n", 2, 21, &["line 3", "found an object"]),
            ("[null, 1]\n", 0, 1, &["line 1", "found null", "as NaN", ".nan(\"mask\")"]),
            ("{\"sequence\": [1, null]}\n", 0, 17, &["line 1", "expected a number, found null", "as NaN"]),
            ("[1]\n[\"\\ud800\"]\n", 1, 5, &["line 2", "expected a string"]),
        ];
        for (text, record, byte, says) in cases {
            check(cache, "a.jsonl", text.as_bytes(), Some(*record), Some(*byte), says);
        }
    });
}

/// Also where the library that reads it is not optimised, and on a thread that has little stack.
#[test]
fn nested_yaml_never_ends_the_process() {
    alone("hostile::series::nested_yaml_never_ends_the_process", |_| {
        let of_depth =
            |depth: usize| format!("- x: {}1e400{}\n  sequence: [1]\n", "[".repeat(depth), "]".repeat(depth));
        let folder = folder_of(&[("deep.yaml", of_depth(100)), ("too_deep.yaml", of_depth(100_000))]);
        let opened = |name: &str| {
            let path = folder.path().join(name);
            let opening = move || open_with(&path, &Options::default()).map(drop);
            let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(opening).unwrap();
            thread.join().unwrap()
        };
        opened("deep.yaml").unwrap();
        assert_eq!(opened("too_deep.yaml").unwrap_err().kind(), Kind::Corrupt);
    });
}

#[test]
fn yaml_that_stands_for_more_than_it_is_is_refused() {
    alone("hostile::series::yaml_that_stands_for_more_than_it_is_is_refused", |cache| {
        let laughs: String =
            (1..12).map(|i| format!("- &a{i} [{}]\n", vec![format!("*a{}", i - 1); 10].join(", "))).collect();
        let bomb = format!("- &a0 [1, 2, 3]\n{laughs}");
        let cases: Vec<(String, &str)> = vec![
            (bomb, "without aliases"),
            ("- &a [1]\n- *a\n".into(), "without aliases"),
            ("- &a [1, *a]\n".into(), ""),
            ("[".repeat(MILLION), ""),
            ("- ".repeat(MILLION), ""),
            ("- {x: ".repeat(100_000), ""),
            ("- !!python/object/apply:os.system ['true']\n".into(), "tags"),
            ("- !x [1]\n".into(), "tags"),
            ("- <<: {a: 1}\n  sequence: [1]\n".into(), ""),
            ("- [1]\n---\n- [2]\n".into(), "second documents"),
            ("- {sequence: [1], sequence: [2]}\n".into(), ""),
            ("- [1, [2]\n".into(), ""),
            ("a: [1]\n".into(), "expected a list of series, found an object"),
            ("- [1, ~]\n".into(), "expected a number, found null"),
            ("- [1, null]\n".into(), "as .nan"),
            ("- - 1\n  -\n".into(), "as .nan"),
            ("- [1, NaN]\n".into(), "as .nan"),
            ("- [1, x]\n".into(), "expected a number, found a string"),
            ("- [9223372036854775808]\n".into(), "does not fit int64"),
            ("# nothing\n".into(), "found null"),
        ];
        for (text, says) in cases {
            let folder = folder_of(&[("a.yaml", &text)]);
            let path = folder.path().join("a.yaml");
            let (opened, memory) = most_memory(|| open_with(&path, &Options::default()).map(drop));
            let start: String = text.chars().take(40).collect();
            let error = opened.err().unwrap_or_else(|| panic!("{start} opens"));
            assert_eq!(error.kind(), Kind::Corrupt, "{start}: {error}");
            assert!(
                format!("{error:#}").contains(says) && error.to_string().len() < 2_000,
                "{start}: {error}"
            );
            assert!(error.place().file.as_deref().is_some_and(|file| file.ends_with("a.yaml")), "{error}");
            assert!(memory < 16 * MILLION + 4 * text.len(), "{start}: {memory} bytes");
            assert_eq!(names(cache).len(), 0, "{start}");
        }
        check(cache, "a.yaml", b"- [1]\n- [\xff]\n", None, Some(9), &["found byte 0xff"]);
    });
}

/// A pickle of protocol 2 with this between its beginning and its end.
fn pickle(body: &[u8]) -> Vec<u8> {
    [b"\x80\x02", body, b"."].concat()
}

#[test]
fn pickles_that_are_more_than_data_are_refused_and_named() {
    alone("hostile::series::pickles_that_are_more_than_data_are_refused_and_named", |cache| {
        let marker = cache.join("ran");
        let command = format!("touch {}", marker.display());
        let call = |module: &str, name: &str| {
            let mut body = format!("c{module}\n{name}\nX").into_bytes();
            body.extend((command.len() as u32).to_le_bytes());
            body.extend(command.as_bytes());
            body.extend(b"\x85R");
            pickle(&body)
        };
        let stack_global = b"\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R".to_vec();
        let nested = {
            // The bytes of a torch storage are a pickle of their own.
            let inner = pickle(b"cposix\nsystem\n");
            let mut body = b"ctorch.storage\n_load_from_bytes\nB".to_vec();
            body.extend((inner.len() as u32).to_le_bytes());
            body.extend(inner);
            body.extend(b"\x85R");
            pickle(&body)
        };
        let cases: Vec<(Vec<u8>, &str)> = vec![
            (call("os", "system"), "os.system"),
            (call("posix", "system"), "posix.system"),
            (call("builtins", "eval"), "builtins.eval"),
            (call("builtins", "getattr"), "builtins.getattr"),
            (call("subprocess", "Popen"), "subprocess.Popen"),
            (call("numpy", "load"), "numpy.load"),
            (call("numpy.f2py.crackfortran", "getlincoef"), "numpy.f2py.crackfortran.getlincoef"),
            (call("torch", "load"), "torch.load"),
            (call("torch.serialization", "load"), "torch.serialization.load"),
            (call("pickle", "loads"), "pickle.loads"),
            (pickle(&stack_global), "os.system"),
            (pickle(b"cos\nsystem\n0]"), "os.system"),
            (pickle(b"(X\x04\0\0\0trueios\nsystem\n"), "os.system"),
            (pickle(b"(cos\nsystem\nX\x04\0\0\0trueo"), "os.system"),
            (pickle(b"cnumpy\nndarray\n)\x81"), "an instance of a class"),
            (pickle(b"cnumpy\nndarray\n)}\x92"), "an instance of a class"),
            (pickle(b"]q\0}b"), "a state of an object"),
            (pickle(b"]X\x01\0\0\0a\x85R"), "not a known name"),
            (pickle(b"X\x01\0\0\0aQ"), "a persistent id"),
            (pickle(b"Pabc\n"), "a persistent id"),
            (pickle(b"\x82\x01"), "extension registry"),
            (pickle(b"\x84\x01\0\0\0"), "extension registry"),
            (pickle(b"\x8f"), "a set"),
            (pickle(b"\x97"), "a buffer"),
            (pickle(b"c_codecs\nencode\nX\x01\0\0\0aX\x03\0\0\0zip\x86R"), "encoding other than latin1"),
            (pickle(b"cnumpy\ndtype\nX\x02\0\0\0V8\x85R"), "dtype \"V8\""),
            (nested, "posix.system"),
        ];
        for (bytes, says) in cases {
            let folder = folder_of(&[("a.pkl", &bytes)]);
            for options in both_ways(&Options::default()) {
                let error = open_with(&folder.path().join("a.pkl"), &options).err().unwrap();
                assert_eq!(error.kind(), Kind::Unsupported, "{says}: {error}");
                assert!(format!("{error:#}").contains(says), "{says}: {error}");
                assert!(error.place().byte.is_some() && error.hint_text().is_some(), "{error}");
                assert!(error.place().file.as_deref().unwrap().ends_with("a.pkl"), "{error}");
            }
            assert!(!marker.exists());
            assert_eq!(names(cache).len(), 0, "{says}");
        }
    });
}

/// An array of numpy with this shape and these bytes, by `_frombuffer`.
fn array(shape: &[u64], dtype: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut body = b"cnumpy._core.numeric\n_frombuffer\n(\x96".to_vec();
    body.extend((bytes.len() as u64).to_le_bytes());
    body.extend(bytes);
    body.extend(b"cnumpy\ndtype\n\x8c");
    body.push(dtype.len() as u8);
    body.extend(dtype);
    body.extend(b"\x85R(");
    for size in shape {
        body.extend(b"\x8a\x09");
        body.extend(size.to_le_bytes());
        body.push(0);
    }
    body.extend(b"t\x8c\x01CtR");
    pickle(&body)
}

#[test]
fn pickles_that_claim_more_than_they_hold_are_refused() {
    alone("hostile::series::pickles_that_claim_more_than_they_hold_are_refused", |cache| {
        let torch = |shape: &[u8], strides: &[u8]| {
            let whole = std::fs::read(
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/series/torch-p2.pkl"),
            );
            let whole = whole.unwrap();
            // The first tensor: offset 0, shape (2, 3) or (3, 2), strides.
            let at = whole.windows(4).position(|w| w[..2] == *b"K\x00" && w[2] == b'K').unwrap();
            let mut changed = whole.clone();
            let found: Vec<usize> = (at + 2..at + 20).filter(|i| whole[*i] == b'K').take(4).collect();
            for (place, value) in found.iter().zip(shape.iter().chain(strides)) {
                changed[place + 1] = *value;
            }
            changed
        };
        let max = u64::MAX >> 1;
        let cases: Vec<(Vec<u8>, &str)> = vec![
            (pickle(b"B\xff\xff\xff\x7f"), "expected 2147483647 bytes, found the end of the file"),
            (pickle(b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff"), "expected 18446744073709551615 bytes"),
            (pickle(b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"), "expected 9223372036854775807 bytes"),
            (pickle(b"\x96\0\0\0\0\0\0\0\x01"), "expected 72057594037927936 bytes"),
            (pickle(b"X\xff\xff\xff\xff"), "expected 4294967295 bytes"),
            (pickle(b"\x8b\xff\xff\xff\x7f"), "expected 2147483647 bytes"),
            (pickle(&[b"\x8a\xff".as_slice(), &[1; 255]].concat()), "a whole number of 255 bytes"),
            (pickle(b"\x95\xff\xff\xff\xff\xff\xff\xff\xff"), "a frame of 18446744073709551615 bytes"),
            (array(&[max], b"f4", &[0; 8]), "which is not its size"),
            (array(&[max, max], b"f4", &[0; 8]), "which is not its size"),
            (array(&[3], b"f4", &[0; 8]), "which is not its size"),
            (array(&[1], b"f4", &[0; 8]), "which is not its size"),
            (array(&[1, 1, 1, 1], b"f4", &[0; 4]), "an array of 4 dimensions"),
            (array(&[max, 0], b"f4", &[]), ""),
            (array(&[max, 0, max], b"f4", &[]), ""),
            (array(&[1, max, 0], b"f4", &[]), ""),
            (torch(&[200, 200], &[3, 1]), "in a storage of 6 numbers"),
            (torch(&[2, 3], &[200, 1]), "in a storage of 6 numbers"),
            (torch(&[200, 200], &[0, 0]), "in a storage of 6 numbers"),
        ];
        for (bytes, says) in cases {
            let folder = folder_of(&[("a.pkl", &bytes)]);
            for options in both_ways(&Options::default()) {
                let path = folder.path().join("a.pkl");
                let (opened, memory) = most_memory(|| open_with(&path, &options).map(drop));
                let error = opened.err().unwrap_or_else(|| panic!("{says} opens"));
                assert!(format!("{error:#}").contains(says), "{says}: {error}");
                assert!(error.place().file.as_deref().unwrap().ends_with("a.pkl"), "{error}");
                assert!(memory < 4 * MILLION, "{says}: {memory} bytes");
            }
            assert_eq!(names(cache).len(), 0, "{says}");
        }
    });
}

#[test]
fn pickles_that_name_the_same_values_again_and_again_are_bounded() {
    alone("hostile::series::pickles_that_name_the_same_values_again_and_again_are_bounded", |cache| {
        // Each list holds the one before ten times: 10^40 values.
        let laughs = |levels: usize| {
            let mut body = b"]q\0K\x01a".to_vec();
            for level in 0..levels {
                body.extend(b"](");
                body.extend([b'h', level as u8].repeat(10));
                body.extend(b"eq");
                body.push(level as u8 + 1);
            }
            body
        };
        let in_extras = |inner: Vec<u8>| {
            [b"](}X\x01\0\0\0x".as_slice(), &inner, b"sX\x08\0\0\0sequence]K\x01ase"].concat()
        };
        let long: Vec<u8> = [b"]q\0(".as_slice(), &b"K\x01".repeat(100_000), b"e"].concat();
        let text: Vec<u8> = [b"X".as_slice(), &1_000_000u32.to_le_bytes(), &vec![b'a'; 1_000_000]].concat();
        let bomb_of_copies = {
            // Encodes the same million characters a hundred thousand times.
            let mut body =
                [b"(".as_slice(), &text, b"q\0c_codecs\nencode\nq\x01X\x06\0\0\0latin1q\x020"].concat();
            body.extend(b"h\x01h\0h\x02\x86R0".repeat(100_000));
            body.extend(b"1]");
            body
        };
        let cases: Vec<(&str, Vec<u8>)> = vec![
            ("laughs", laughs(40)),
            ("laughs in extras", in_extras(laughs(40))),
            ("one list many times", [b"(".as_slice(), &long, &b"h\0".repeat(100_000), b"l"].concat()),
            ("a list that holds itself", b"]q\0h\0a".to_vec()),
            ("a list that holds itself, in extras", in_extras(b"]q\0h\0a".to_vec())),
            ("nested 100,000 deep", [b"]".repeat(100_000), b"a".repeat(99_999)].concat()),
            ("nested in extras", in_extras([b"]".repeat(100_000), b"a".repeat(99_999)].concat())),
            ("tuples nested 100,000 deep", [b")".to_vec(), b"\x85".repeat(100_000)].concat()),
            ("marks", b"(".repeat(100_000)),
            ("copies", bomb_of_copies),
            ("empty lists", [b"(".to_vec(), b"]".repeat(3 * MILLION), b"l".to_vec()].concat()),
            (
                "memo",
                [
                    b"]".to_vec(),
                    (0..MILLION as u32)
                        .flat_map(|i| [b"r".to_vec(), i.to_le_bytes().to_vec()].concat())
                        .collect(),
                    b"j\xff\xff\xff\xff".to_vec(),
                ]
                .concat(),
            ),
        ];
        for (name, body) in cases {
            let bytes = pickle(&body);
            let folder = folder_of(&[("a.pkl", &bytes)]);
            let path = folder.path().join("a.pkl");
            let (opened, memory) = most_memory(|| open_with(&path, &Options::default()).map(drop));
            let error = opened.err().unwrap_or_else(|| panic!("{name} opens"));
            assert!(error.place().file.as_deref().unwrap().ends_with("a.pkl"), "{name}: {error}");
            assert!(memory < 32 * MILLION + 64 * bytes.len(), "{name}: {memory} bytes of {}", bytes.len());
            assert_eq!(names(cache).len(), 0, "{name}");
        }
    });
}

#[test]
fn no_cut_and_no_changed_byte_of_a_series_file_harms() {
    alone("hostile::series::no_cut_and_no_changed_byte_of_a_series_file_harms", |cache| {
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/series");
        let mut files: Vec<(String, Vec<u8>)> = names(&testdata)
            .into_iter()
            .filter(|path| path.extension().is_some_and(|e| e == "pkl" || e == "pickle"))
            .map(|path| {
                (path.file_name().unwrap().to_str().unwrap().to_string(), std::fs::read(&path).unwrap())
            })
            .filter(|(name, _)| !name.starts_with("numbers") || name.contains("p0") || name.contains("p4"))
            .collect();
        files.push((
            "a.json".into(),
            b"[{\"id\": \"\\u00e9\", \"sequence\": [1, 2.5e1]}, [NaN], []]".to_vec(),
        ));
        files.push((
            "a.jsonl".into(),
            b"{\"sequence\": [[1, 2], [3, 4]], \"x\": null}\n[[-1, 0.5]]\n".to_vec(),
        ));
        files.push(("a.yaml".into(), b"- id: a\n  sequence: [1, 2.5]\n- [.nan, -.inf]\n- []\n".to_vec()));
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let mut opened = 0;
            for at in (0..bytes.len()).step_by(1 + bytes.len() / 80) {
                opened += usize::from(opens_or_says(folder.path(), &name, &bytes[..at]));
                for value in [bytes[at] ^ 1, bytes[at] ^ 0x80, b'.', 0xff, b'('] {
                    let mut changed = bytes.clone();
                    changed[at] = value;
                    opened += usize::from(opens_or_says(folder.path(), &name, &changed));
                }
                for made in names(cache) {
                    std::fs::remove_file(made).unwrap();
                }
            }
            assert!(opened > 0, "{name}");
            assert!(opens_or_says(folder.path(), &name, &bytes), "{name}");
        }
    });
}

#[test]
fn a_cache_that_is_too_small_damaged_or_unwritable_is_an_error() {
    alone("hostile::series::a_cache_that_is_too_small_damaged_or_unwritable_is_an_error", |cache| {
        let text = format!("[[{}1]]", "1,".repeat(200_000));
        let folder = folder_of(&[("a.json", &text)]);
        let path = folder.path().join("a.json");
        let opened = |limit: Option<u64>| -> Result<()> {
            let options = Options { cache_limit: limit, ..Options::default() };
            let source = open_with(&path, &options)?;
            let span = windrow_core::Span { record: 0, start: 0, len: 200_001 };
            source.read(span, &mut Vec::new()).map(drop)
        };
        let error = opened(Some(MILLION as u64)).unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        assert!(format!("{error:#}").contains("cache_limit") && error.place().file.is_some(), "{error}");
        assert_eq!(names(cache).len(), 0);
        opened(Some(2 * MILLION as u64)).unwrap();
        opened(None).unwrap();
        let [made] = names(cache).try_into().unwrap();
        let whole = std::fs::read(&made).unwrap();
        for end in [0, 10, 63, 64, 1000, whole.len() - 1] {
            std::fs::write(&made, &whole[..end]).unwrap();
            let error = opened(None).unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt, "{error}");
            assert!(format!("{error:#}").contains("delete it"), "{error}");
        }
        for at in (0..64).chain(whole.len() - 40..whole.len()) {
            let mut changed = whole.clone();
            changed[at] ^= 0x40;
            std::fs::write(&made, &changed).unwrap();
            // A changed value is not seen; a changed place never leads outside.
            let _ = opened(None);
        }
        // A file stands where the folder should be.
        std::fs::remove_dir_all(cache).unwrap();
        std::fs::write(cache, "").unwrap();
        let error = opened(None).unwrap_err();
        assert!(error.hint_text().is_some_and(|hint| hint.contains("WINDROW_CACHE")), "{error}");
        std::fs::remove_file(cache).unwrap();
        std::fs::create_dir(cache).unwrap();
    });
}
