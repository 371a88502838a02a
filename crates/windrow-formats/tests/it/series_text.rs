//! Tables and lines of text as series: what is converted of them, however large they are and however they are read.

use std::fmt::Write;
use std::fs;

use windrow_core::format::Options;
use windrow_core::source::conformance;
use windrow_core::{DType, Kind};

use super::alone::{alone, most_memory};
use super::converted::numbers;
use super::disk::{both_ways, open, open_with};
use super::folder::folder_of;

fn column(name: &str) -> Options {
    Options { column: Some(name.to_string()), ..Options::default() }
}

#[test]
fn converting_text_takes_little_memory() {
    alone("series_text::converting_text_takes_little_memory", |_| {
        let mut table = "date,a,b,late\n".to_string();
        let mut lines = "@attribute name string\n@data\n".to_string();
        for i in 0..200_000 {
            writeln!(table, "t{i},{i}.25,-1e3,{}", if i < 199_999 { "1" } else { "text" }).unwrap();
        }
        for series in 0..2 {
            write!(lines, "s{series}:0").unwrap();
            (0..400_000).for_each(|i| write!(lines, ",{i}.5").unwrap());
            lines.push('\n');
        }
        let rows =
            format!("{{\"start\": \"2021\", \"target\": [{}0.5]}}\n", "1.25, ".repeat(20)).repeat(30_000);
        let folder = folder_of(&[
            ("a.csv", table.as_bytes()),
            ("a.tsf", lines.as_bytes()),
            ("a.json", rows.as_bytes()),
            ("a.jsonl", rows.as_bytes()),
        ]);
        for options in both_ways(&Options::default()) {
            for (name, length) in [("a.csv", 200_000), ("a.tsf", 400_001), ("a.json", 21), ("a.jsonl", 21)] {
                // Another file for each way: the other one is in the cache.
                let path = folder.path().join(format!("{:?}{name}", options.io));
                fs::copy(folder.path().join(name), &path).unwrap();
                let (source, memory) = most_memory(|| open_with(&path, &options).unwrap());
                assert_eq!(source.length(0).unwrap(), length, "{name}");
                assert!(memory < 2 << 20, "{name}: {memory} bytes for a file of {}", table.len());
            }
        }
    });
}

#[test]
fn what_is_converted_is_a_sound_source() {
    alone("series_text::what_is_converted_is_a_sound_source", |_| {
        let folder = folder_of(&[
            ("a.csv", &b"t,a,b\nx,1,\ny,2.5,4\n"[..]),
            ("a.tsv", b"a\tb\n1\t2\n"),
            ("a.tsf", b"@attribute n numeric\n@data\n7:1,?\n8:3\n"),
            ("data.json", b"{\"start\": \"2021\", \"target\": [[1, 2, 3], [4, 5, 6]]}\n{\"target\": [[7], [8]], \"start\": \"\"}\n"),
        ]);
        for (name, format, records) in [
            ("a.csv", "csv", r#"[[[1.0,"nan"],[2.5,4.0]]]"#),
            ("a.tsv", "csv", "[[[1.0,2.0]]]"),
            ("a.tsf", "tsf", r#"[[1.0,"nan"],[3.0]]"#),
            ("data.json", "gluonts", "[[[1.0,4.0],[2.0,5.0],[3.0,6.0]],[[7.0,8.0]]]"),
        ] {
            let source = open(&folder.path().join(name)).unwrap();
            assert_eq!((source.format(), source.schema().element.dtype), (format, DType::F32), "{name}");
            let found: Vec<_> = (0..source.len()).map(|i| numbers(source.as_ref(), i).unwrap()).collect();
            assert_eq!(serde_json::to_string(&found).unwrap(), records, "{name}");
            conformance::check(source.as_ref()).unwrap();
        }
        let line = open(&folder.path().join("a.tsf")).unwrap();
        let span = windrow_core::Span { record: 1, start: 0, len: 1 };
        assert_eq!((line.locate(span).unwrap()[0].start, line.locate(span).unwrap()[0].size), (33, 4));
    });
}

/// The cache finds a file by its version, whatever it is called: what the name says of it is asked for again.
#[test]
fn a_table_under_another_name_is_another_table() {
    alone("series_text::a_table_under_another_name_is_another_table", |_| {
        let folder = folder_of(&[("a.csv", &b"x\ty,z\n1\t2,3\n"[..])]);
        let at = |name: &str| folder.path().join(name);
        fs::hard_link(at("a.csv"), at("a.tsv")).unwrap();
        for (name, column) in [("a.csv", "z"), ("a.tsv", "x")] {
            let found = open(&at(name)).unwrap().extras(0).unwrap();
            assert!(
                format!("{:?}", found.get("columns")).contains(&format!("{column:?}")),
                "{name}: {found:?}"
            );
        }
    });
}

#[test]
fn the_fingerprint_follows_the_content_and_the_column() {
    alone("series_text::the_fingerprint_follows_the_content_and_the_column", |_| {
        let folder = folder_of(&[
            ("a.csv", &b"t,a,b\nx,1,2\ny,3,4\n"[..]),
            ("copy.csv", b"t,a,b\nx,1,2\ny,3,4\n"),
            ("other.csv", b"t,a,b\nx,1,2\ny,3,5\n"),
        ]);
        let of = |name: &str, options: &Options| {
            open_with(&folder.path().join(name), options).unwrap().fingerprint().unwrap()
        };
        for options in [Options::default(), column("a"), column("b")] {
            assert_eq!(of("a.csv", &options), of("copy.csv", &options));
            assert_ne!(of("a.csv", &options), of("other.csv", &options));
        }
        assert_ne!(of("a.csv", &column("a")), of("a.csv", &column("b")));
    });
}

#[test]
fn a_cache_that_is_too_small_is_named() {
    alone("series_text::a_cache_that_is_too_small_is_named", |_| {
        let table = format!("a,b\n{}", "1,2\n".repeat(10_000));
        let folder = folder_of(&[("a.csv", table.as_bytes())]);
        let options = Options { cache_limit: Some(1000), ..Options::default() };
        let error = open_with(&folder.path().join("a.csv"), &options).err().unwrap();
        assert_eq!(
            (error.kind(), error.place().field.as_deref()),
            (Kind::Config, Some("cache_limit")),
            "{error}"
        );
    });
}
