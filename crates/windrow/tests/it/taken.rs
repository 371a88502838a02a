//! What is tokenised, indexed and verified in a store is what is in a folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Map;
use windrow::format::WriteOptions;
use windrow::prepare::{
    IndexOptions, Report, TokenizeOptions, VerifyOptions, index, index_with, tokenize_with,
};
use windrow::text::Tokenizer;
use windrow::{Kind, Paths, TextEncoder, open_with};

use crate::written::{Place, files};

/// Equal texts as lines, compressed lines and rows, in a bucket.
fn place() -> Place {
    let place = Place::new();
    let bucket = place.path("root/bucket");
    for (name, folder) in [("a", "texts"), ("b", "texts/more")] {
        fs::create_dir_all(bucket.join(folder)).unwrap();
        let text = fs::read(place.path(&format!("texts/{name}.jsonl"))).unwrap();
        fs::write(bucket.join(format!("{folder}/{name}.jsonl")), &text).unwrap();
        let gz = fs::File::create(bucket.join(format!("{name}.jsonl.gz"))).unwrap();
        let mut gz = flate2::write::GzEncoder::new(gz, flate2::Compression::fast());
        gz.write_all(&text).unwrap();
        gz.finish().unwrap();
    }
    let rows = windrow::open(place.path("texts")).unwrap();
    for (name, to) in [("rows.parquet", "parquet"), ("rows.arrow", "arrow"), ("mds", "mds")] {
        let to = windrow::writer(to, &Map::new()).unwrap();
        let (source, out) = (rows.source().as_ref(), bucket.join(name));
        windrow::prepare::convert(source, &out, to.as_ref(), &WriteOptions::default(), &()).unwrap();
    }
    place
}

fn tokenize(place: &Place, inputs: &[PathBuf], out: &Path) -> windrow::Result<Report> {
    let encoder = TextEncoder::new(Tokenizer::load("bytes").unwrap(), "text", "auto").unwrap();
    let to = windrow::writer("forager", &Map::new()).unwrap();
    let options =
        TokenizeOptions { sample_size: Some(64), eos: Some(256), fsync: false, ..TokenizeOptions::new(to) };
    tokenize_with(inputs, out, &encoder, &options, &place.options(), &())
}

/// Files, without the manifest, which names the inputs.
fn data_files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = files(folder);
    found.retain(|name, _| !name.ends_with("windrow.json") && !name.ends_with("windrow.sums"));
    found
}

#[test]
fn texts_in_a_store_become_the_tokens_of_a_folder() {
    let place = place();
    for inputs in [
        &["texts"][..],
        &["texts/a.jsonl"],
        &["texts/more/b.jsonl", "a.jsonl.gz"],
        &["a.jsonl.gz", "b.jsonl.gz"],
        &["rows.parquet"],
        &["rows.arrow"],
        &["mds"],
    ] {
        let name = inputs[0].replace('/', "-");
        let [there, here] = ["s3://bucket".into(), place.path("root/bucket")]
            .map(|root: PathBuf| inputs.iter().map(|input| root.join(input)).collect::<Vec<_>>());
        let outs = ["there", "here"].map(|side| place.path(&format!("{side}/{name}")));
        let far = tokenize(&place, &there, &outs[0]).unwrap_or_else(|e| panic!("{name}: {e}"));
        let local = tokenize(&place, &here, &outs[1]).unwrap();
        assert_eq!(Report { output: local.output.clone(), ..far }, local, "{name}");
        assert_eq!(data_files(&outs[0]), data_files(&outs[1]), "{name}");
        let manifest = fs::read_to_string(outs[0].join("index/windrow.json")).unwrap();
        assert!(manifest.contains(there[0].to_str().unwrap()) && manifest.contains("etag"), "{manifest}");
        assert!(!manifest.contains("SECRET") && !manifest.contains("AKEY"), "{manifest}");
        // The same again is there already; what was replaced is another input, of one size, too.
        assert!(tokenize(&place, &there, &outs[0]).unwrap().unchanged, "{name}");
    }
    let line = place.path("root/bucket/texts/a.jsonl");
    let changed = fs::read_to_string(&line).unwrap().replacen("word", "wore", 1);
    fs::write(&line, changed).unwrap();
    let e = tokenize(&place, &["s3://bucket/texts".into()], &place.path("there/texts")).unwrap_err();
    assert_eq!(e.kind(), Kind::Exists, "{e}");
}

#[test]
fn an_error_in_a_text_names_its_url() {
    let place = place();
    let bucket = place.path("root/bucket");
    fs::write(bucket.join("bad.jsonl"), "{\"text\": \"one\"}\n{\"text\": 2}\n").unwrap();
    fs::write(bucket.join("cut.jsonl.gz"), &fs::read(bucket.join("a.jsonl.gz")).unwrap()[..100]).unwrap();
    let out = place.path("out");
    for (name, kind) in
        [("bad.jsonl", Kind::Corrupt), ("cut.jsonl.gz", Kind::Corrupt), ("nothing.jsonl", Kind::NotFound)]
    {
        let url = format!("s3://bucket/{name}");
        let e = tokenize(&place, &[PathBuf::from(&url)], &out).unwrap_err();
        assert_eq!((e.kind(), e.place().file.as_deref()), (kind, Some(url.as_str())), "{e}");
        assert!(!format!("{e:#}").contains(place.path("").to_str().unwrap()), "{e}");
    }
    let twice = ["s3://bucket/texts", "s3://bucket/texts/a.jsonl"].map(PathBuf::from);
    assert_eq!(tokenize(&place, &twice, &out).unwrap_err().kind(), Kind::Config);
    assert!(!out.exists());
}

#[test]
fn an_index_in_a_store_is_that_of_a_folder() {
    let place = place();
    let bucket = place.path("root/bucket");
    let options = IndexOptions { fsync: false, ..IndexOptions::default() };
    for name in ["texts", "packed"] {
        if name == "packed" {
            fs::create_dir(bucket.join(name)).unwrap();
            fs::rename(bucket.join("a.jsonl.gz"), bucket.join("packed/a.jsonl.gz")).unwrap();
        }
        let here = place.path(&format!("here/{name}"));
        for (file, bytes) in files(&bucket.join(name)) {
            fs::create_dir_all(here.join(&file).parent().unwrap()).unwrap();
            fs::write(here.join(&file), bytes).unwrap();
        }
        let url = format!("s3://bucket/{name}");
        let far = || index_with(Path::new(&url), &options, &place.options(), &());
        let local = index(&here, &options, &()).unwrap();
        let there = far().unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(Report { output: local.output.clone(), ..there }, local, "{name}");
        assert_eq!(data_files(&bucket.join(name)), data_files(&here), "{name}");
        let opened = [open_with(&url, &place.options()).unwrap(), windrow::open(&here).unwrap()];
        assert_eq!(opened[0].len(), opened[1].len());
        assert_eq!(opened[0].json(7).unwrap(), opened[1].json(7).unwrap());
        assert!(far().unwrap().unchanged, "{name}");
        let found =
            Paths::from(Path::new(&url)).verify_with(&VerifyOptions::default(), &place.options(), &());
        assert_eq!(found.unwrap().problems, [], "{name}");
    }
    let line = bucket.join("texts/a.jsonl");
    fs::write(&line, fs::read_to_string(&line).unwrap() + "{}\n").unwrap();
    let again = |overwrite| {
        let options = IndexOptions { overwrite, ..options.clone() };
        index_with(Path::new("s3://bucket/texts"), &options, &place.options(), &())
    };
    let e = again(false).unwrap_err();
    assert_eq!((e.kind(), e.place().file.as_deref()), (Kind::Exists, Some("s3://bucket/texts/index")), "{e}");
    assert_eq!(again(true).unwrap().records, 401);
}

#[test]
fn what_is_verified_in_a_store_is_what_is_in_a_folder() {
    let place = place();
    let bucket = place.path("root/bucket");
    let tokens = place.path("ids.bin");
    windrow::prepare::dummy(&tokens, 1000, 20_000, 1, false).unwrap();
    let ids = windrow::open(&tokens).unwrap();
    for to in ["shards", "tokens", "megatron", "forager", "webdataset", "tfrecord"] {
        let format = windrow::writer(to, &Map::new()).unwrap();
        let end = match format.info().target {
            windrow::dev::format::write::Target::File(endings) => endings[0],
            _ => "",
        };
        let out = bucket.join(format!("{to}{end}"));
        let source = ids.source().as_ref();
        windrow::prepare::convert(source, &out, format.as_ref(), &WriteOptions::default(), &()).unwrap();
    }
    let mut n_problems = 0;
    for damage in [false, true] {
        if damage {
            for name in files(&bucket).into_keys().filter(|name| !name.ends_with(".json")) {
                let mut bytes = fs::read(bucket.join(&name)).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0x10;
                fs::write(bucket.join(&name), bytes).unwrap();
            }
        }
        let mut paths: Vec<String> = fs::read_dir(&bucket)
            .unwrap()
            .map(|item| item.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with("windrow.json") && !name.ends_with("windrow.sums"))
            .collect();
        paths.sort();
        paths.push(String::new());
        for path in paths {
            let url = format!("s3://bucket/{path}").trim_end_matches('/').to_string();
            let verify = |root: &str| {
                let path = PathBuf::from(root.trim_end_matches('/'));
                Paths::from(path).verify_with(&VerifyOptions::default(), &place.options(), &())
            };
            let here = bucket.join(&path);
            match (verify(&url), verify(here.to_str().unwrap())) {
                (Ok(far), Ok(local)) => {
                    n_problems += far.n_problems;
                    let shown = |findings: &windrow::prepare::Findings| {
                        let text = serde_json::to_string(findings).unwrap();
                        let text = text.replace("cannot open the file", "cannot find it");
                        text.replace(bucket.to_str().unwrap(), "s3://bucket")
                    };
                    assert_eq!(shown(&far), shown(&local), "{url}");
                }
                (Err(far), Err(local)) => assert_eq!(far.kind(), local.kind(), "{url}: {far}"),
                (far, local) => panic!("{url}: {far:?} and {local:?}"),
            }
        }
        assert_eq!(n_problems > 0, damage);
    }
}
