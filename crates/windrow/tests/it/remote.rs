//! Data in a store is the same data: records, plans, batches and states.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use windrow::Span;
use windrow::dev::store::Traffic;
use windrow::format::Options;
use windrow::prepare::IndexOptions;
use windrow::{Dataset, Kind, Recipe, State, open_with};

use crate::s3::S3;
use crate::states::{Recorded, folder, hash_of};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

// Folders and files below testdata, each once.
fn below(at: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, found);
        }
        found.push(path);
    }
}

// Hashes of some records, and the identity of all.
fn summary(data: &Dataset) -> (u64, u64, Vec<Result<u64, Kind>>) {
    let source = data.source();
    let n = source.len();
    let some = (0..n.min(20)).chain(n.saturating_sub(3)..n);
    let mut scratch = Vec::new();
    let values = some.map(|record| {
        let len = source.length(record).map_err(|e| e.kind())?;
        let span = Span { record, start: 0, len: len.min(10_000) };
        source
            .read(span, &mut scratch)
            .map(|values| xxhash_rust::xxh3::xxh3_64(values.bytes))
            .map_err(|e| e.kind())
    });
    (n, source.fingerprint().unwrap_or(0), values.collect())
}

#[test]
fn golden_data_of_every_format_reads_alike_from_s3() {
    let root = root();
    let s3 = S3::serve(&root);
    let mut paths = Vec::new();
    below(&root.join("testdata"), &mut paths);
    paths.sort();
    let mut of_formats: BTreeMap<&str, usize> = BTreeMap::new();
    let cache = tempfile::tempdir().unwrap();
    // One asks for paths of this machine; golden data of the other lies beside its index, and has a test of its own.
    let mut differ = Vec::new();
    let local_alone = ["sound", "forager"];
    for path in paths {
        const ENOUGH: usize = 2;
        let Ok(data) = windrow::open(&path) else { continue };
        let name = data.source().format();
        if local_alone.contains(&name)
            || of_formats.get(name).is_some_and(|n| *n >= ENOUGH)
            || data.is_empty()
        {
            continue;
        }
        let url = format!("s3://{}", path.strip_prefix(&root).unwrap().display());
        // What is expanded or converted is kept on disk.
        let options = Options {
            cache_limit: None,
            cache: Some(cache.path().into()),
            timeout: Some(Duration::from_secs(20)),
            ..s3.options()
        };
        let there = match open_with(&url, &options) {
            Ok(there) => there,
            Err(e) => {
                differ.push(format!("{name}: {url}: {e}"));
                continue;
            }
        };
        assert_eq!(there.source().format(), name, "{url}");
        if summary(&there) != summary(&data) {
            differ.push(format!("{name}: {url}: {:?} and {:?}", summary(&there), summary(&data)));
        }
        *of_formats.entry(name).or_default() += 1;
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    let names = windrow::formats().iter().map(|format| format.name());
    let missing: Vec<&str> =
        names.filter(|name| !of_formats.contains_key(name) && !local_alone.contains(name)).collect();
    assert!(missing.is_empty(), "read none of {}", missing.join(", "));
}

// A file or a folder, copied into a bucket; a folder without a manifest is listed by one.
fn into_bucket(from: &Path, bucket: &Path) {
    let mut files = Vec::new();
    if from.is_dir() {
        below(from, &mut files);
    } else {
        // With what belongs to it.
        files.extend(fs::read_dir(from.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()));
    }
    let base = if from.is_dir() { from } else { from.parent().unwrap() };
    for file in files.iter().filter(|file| file.is_file()) {
        let to = bucket.join(file.strip_prefix(base).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, to).unwrap();
    }
    if from.is_dir() && !bucket.join("windrow.json").exists() {
        let manifest = windrow::listing(bucket, &Options::default()).unwrap();
        windrow::write_listing(bucket, &Options::default(), &manifest).unwrap();
    }
}

#[test]
fn whoever_may_read_but_not_list_reads_every_format() {
    let mut paths = Vec::new();
    below(&root().join("testdata"), &mut paths);
    paths.sort();
    let buckets = tempfile::tempdir().unwrap();
    let (s3, cache) = (S3::serve(buckets.path()), tempfile::tempdir().unwrap());
    s3.list_nothing();
    let (mut of_formats, mut differ) = (BTreeMap::<(String, bool), usize>::new(), Vec::new());
    for path in paths {
        let Ok(data) = windrow::open(&path) else { continue };
        let name = data.source().format().to_string();
        let count = of_formats.entry((name.clone(), path.is_dir())).or_default();
        // Sound asks for paths of this machine; the other's golden data lies beside its index, and has a test of its own.
        if matches!(name.as_str(), "sound" | "forager") || *count >= 2 || data.is_empty() {
            continue;
        }
        *count += 1;
        let bucket = format!("{name}-{}-{count}", if path.is_dir() { "folder" } else { "file" });
        into_bucket(&path, &buckets.path().join(&bucket));
        let url = if path.is_dir() {
            format!("s3://{bucket}")
        } else {
            format!("s3://{bucket}/{}", path.file_name().unwrap().to_str().unwrap())
        };
        // What is expanded or converted is kept on disk.
        let options = Options { cache_limit: None, cache: Some(cache.path().into()), ..s3.options() };
        match open_with(&url, &options) {
            Err(e) => differ.push(format!("{}: {url}: {e:#}", path.display())),
            Ok(there) if (there.source().format(), summary(&there).2) != (&name, summary(&data).2) => {
                differ.push(format!("{}: {url} is {}", path.display(), there.source().format()));
            }
            Ok(_) => {}
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(s3.allow() > 0, "nothing was denied");
    for format in windrow::formats() {
        let read =
            |is_folder| of_formats.get(&(format.name().to_string(), is_folder)).is_some_and(|n| *n > 0);
        assert!(
            read(true) || read(false) || matches!(format.name(), "sound" | "forager"),
            "{}",
            format.name()
        );
    }
}

#[test]
fn a_file_that_is_denied_is_an_error_whatever_may_be_listed() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bucket")).unwrap();
    fs::write(folder.path().join("bucket/x.bin"), [0; 64]).unwrap();
    let s3 = S3::serve(folder.path());
    let error = |url: &str| open_with(url, &s3.options()).map(drop).unwrap_err();
    s3.list_nothing();
    for url in ["s3://bucket/gone.bin", "s3://bucket/gone", "s3://bucket"] {
        let e = error(url);
        assert!(e.kind() == Kind::Io && e.message().contains("403"), "{url}: {e}");
        assert!(e.hint_text().unwrap().contains("AWS_ACCESS_KEY_ID"), "{url}: {e}");
    }
    // Where the store tells what is not there, what it denies is there.
    s3.deny("x[.]bin", 0);
    assert!(error("s3://bucket/x.bin").message().contains("403"));
}

#[test]
fn an_index_of_lines_reads_alike_from_s3() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("bucket");
    fs::create_dir(&base).unwrap();
    for name in ["a.jsonl", "b.jsonl"] {
        let lines: Vec<String> =
            (0..500).map(|i| format!("{{\"from\": \"{name}\", \"n\": {i}}}\n")).collect();
        fs::write(base.join(name), lines.concat()).unwrap();
    }
    windrow::prepare::index(&base, &IndexOptions::default(), &()).unwrap();
    let s3 = S3::serve(folder.path());
    let (here, there) = (windrow::open(&base).unwrap(), open_with("s3://bucket", &s3.options()).unwrap());
    assert_eq!((there.source().format(), there.len()), ("forager", 1000));
    assert_eq!(summary(&there), summary(&here));
}

#[test]
fn states_of_local_runs_go_on_in_a_store() {
    let s3 = S3::serve(&root());
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let recorded: Recorded = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let mut recipe = recorded.recipe.clone();
        for part in recipe["parts"].as_array_mut().unwrap() {
            let at = part["path"].as_str().unwrap().to_string();
            part["path"] = json!(format!("s3://testdata/states/{at}"));
            part["options"]["store_options"] = json!(s3.store_options());
        }
        let state = State::from_json(&recorded.state.to_string()).unwrap();
        let builder = Recipe::from_json(&recipe.to_string()).unwrap().builder();
        let mut loader = builder.unwrap_or_else(|e| panic!("{}: {e}", path.display())).build().unwrap();
        loader.resume(&state).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(hash_of(&loader.next_batch().unwrap().unwrap()), recorded.next, "{}", path.display());
    }
}

#[test]
fn batches_are_those_of_the_local_file_on_any_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bucket")).unwrap();
    let path = folder.path().join("bucket/tokens.bin");
    windrow::prepare::dummy(&path, 300_000, 50_000, 3, true).unwrap();
    let s3 = S3::serve(folder.path());
    let local = windrow::open(&path).unwrap().pack(64).unwrap();
    let far = open_with("s3://bucket/tokens.bin", &s3.options()).unwrap().pack(64).unwrap();
    let blocks = windrow::Blocks { size: Some(100), lanes: Some(4), ..windrow::Blocks::default() };
    for ranks in [1, 2, 3, 8] {
        for rank in 0..ranks {
            let loaders = [&local, &far].map(|samples| {
                let loader = samples.loader().global_batch_size(24).seed(5).rank(rank, ranks).epochs(Some(2));
                loader.shuffle(blocks).build().unwrap()
            });
            let [here, there] =
                loaders.map(|loader| loader.map(|batch| hash_of(&batch.unwrap())).collect::<Vec<String>>());
            assert!(here.len() > 20, "{} batches", here.len());
            assert_eq!(here, there, "rank {rank} of {ranks}");
        }
    }
    let names =
        [&local, &far].map(|samples| samples.loader().plan().unwrap().identity().unwrap().to_string());
    assert_eq!(names[0], names[1]);
    // Neither keys nor tokens are written into a plan.
    let recipe = far.loader().recipe().unwrap().to_json();
    assert!(recipe.contains("s3://bucket/tokens.bin") && !recipe.contains("SECRET"), "{recipe}");
}

#[test]
fn globs_name_what_the_store_lists() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("bucket/deep/er")).unwrap();
    for (number, name) in ["x-10.bin", "x-9.bin", "deep/x-1.bin", "deep/er/x-2.bin"].iter().enumerate() {
        windrow::prepare::dummy(&folder.path().join("bucket").join(name), 50_000, 1000, number as u64, false)
            .unwrap();
    }
    let s3 = S3::serve(folder.path());
    for (pattern, count) in [
        ("x-*.bin", 2),
        ("x-?.bin", 1),
        ("**/x-*.bin", 4),
        ("{x-,deep/x-}*.bin", 3),
        ("deep/**/x-[12].bin", 2),
    ] {
        let far = open_with(format!("s3://bucket/{pattern}"), &s3.options()).unwrap();
        let here = windrow::open(folder.path().join("bucket").join(pattern)).unwrap();
        assert_eq!(far.source().files().len(), count, "{pattern}");
        assert_eq!(summary(&far), summary(&here), "{pattern}");
    }
    let error = |url: &str| open_with(url, &s3.options()).map(drop).unwrap_err();
    let e = error("s3://bucket/deep/y-*.bin");
    assert_eq!(e.kind(), Kind::NotFound, "{e}");
    for wanted in ["s3://bucket/deep/y-*.bin", "s3://bucket/deep holds 2 objects", "er/x-2.bin"] {
        assert!(format!("{e:#}").contains(wanted), "{wanted}: {e}");
    }
    assert_eq!(error("s3://buck*/x").kind(), Kind::Unsupported);
}

#[test]
fn a_name_that_is_there_as_it_is_written_is_that_name() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path().join("bucket");
    let names =
        ["a?b.jsonl", "axb.jsonl", "*.jsonl", "{a?b,axb}.jsonl", "[v1]/a.jsonl", "v/a.jsonl", "[v1]/?.jsonl"];
    for name in names {
        let path = bucket.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{{\"from\": \"{name}\"}}\n")).unwrap();
    }
    let s3 = S3::serve(folder.path());
    let from = |data: Dataset| {
        let from =
            (0..data.len()).map(|record| data.json(record).unwrap()["from"].as_str().unwrap().to_string());
        from.collect::<Vec<_>>()
    };
    for (pattern, expected) in names.map(|name| (name, vec![name])).into_iter().chain([
        ("a[?]b.jsonl", vec!["a?b.jsonl"]),
        ("{a?b,v/a}.jsonl", vec!["a?b.jsonl", "v/a.jsonl"]),
        ("[v1]/[a].jsonl", vec!["[v1]/a.jsonl"]),
    ]) {
        let url = format!("s3://bucket/{pattern}");
        let there = open_with(&url, &s3.options()).unwrap();
        assert_eq!(from(there), expected, "{pattern}");
        assert_eq!(from(windrow::open(bucket.join(pattern)).unwrap()), expected, "{pattern}");
    }
}

#[test]
fn pools_that_find_no_room_are_an_error_that_names_the_one_that_does() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bucket")).unwrap();
    let path = folder.path().join("bucket/tokens.bin");
    // 4,687 samples of 256 bytes, blocks of 25 KiB, 8 of which are two pools of a lane.
    windrow::prepare::dummy(&path, 300_000, 300_000, 3, true).unwrap();
    let s3 = S3::serve(folder.path());
    let blocks = windrow::Blocks::new().size(100).lanes(4).pool(4);
    let build = |url: &str, quarters: u64, ranks: u64, blocks: windrow::Blocks| {
        let options = Options { read_ahead: Some(quarters << 18), ..s3.options() };
        let samples = open_with(url, &options).unwrap().pack(64).unwrap();
        samples.loader().global_batch_size(24).rank(0, ranks).shuffle(blocks).build().map(drop)
    };
    let far = "s3://bucket/tokens.bin";
    let e = build(far, 2, 1, blocks).unwrap_err();
    assert_eq!(e.kind(), Kind::Config, "{e}");
    for wanted in [far, "take 1MiB", ".pool(2) fits", "effective blocks", ".read_ahead(…) 1MiB"] {
        assert!(format!("{e:#}").contains(wanted), "{wanted}: {e}");
    }
    // What is named fits, so does half as much for each of two ranks, and a local file needs no room.
    build(far, 2, 1, blocks.pool(2)).unwrap();
    build(far, 2, 2, blocks).unwrap();
    build(path.to_str().unwrap(), 2, 1, blocks).unwrap();
}

#[test]
fn what_is_not_there_or_not_allowed_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("bucket/empty")).unwrap();
    fs::write(folder.path().join("bucket/page"), "<!doctype html><html>not data</html>").unwrap();
    let s3 = S3::serve(folder.path());
    let error = |url: &str, options: &Options| open_with(url, options).map(drop).unwrap_err();
    for (url, kind) in [
        ("s3://bucket/nothing.bin", Kind::NotFound),
        ("s3://nobucket/x.bin", Kind::NotFound),
        ("s3://bucket", Kind::Unrecognised),
        ("s3://bucket/page", Kind::Unrecognised),
    ] {
        let e = error(url, &s3.options());
        assert_eq!(e.kind(), kind, "{url}: {e}");
        assert!(format!("{e:#}").contains(url), "{e}");
    }
    let e = error("s3://nobucket/x.bin", &s3.options());
    assert!(e.hint_text().is_some_and(|hint| hint.contains("no bucket of this name")), "{e}");
    let mut wrong = s3.options();
    wrong.store_options.insert("secret_access_key".to_string(), "other".to_string());
    let e = error("s3://bucket/page", &wrong);
    assert!(e.kind() == Kind::Io && e.hint_text().unwrap().contains("AWS_ACCESS_KEY_ID"), "{e}");
    let mut unknown = s3.options();
    unknown.store_options.insert("endpoint".to_string() + "_ulr", "x".to_string());
    assert_eq!(error("s3://bucket/page", &unknown).kind(), Kind::Config);
    assert_eq!(error("ftp://host/x", &Options::default()).kind(), Kind::Unsupported);
    assert!(error("s3://bucket/*.bin", &s3.options()).hint_text().unwrap().contains("1 objects: page"));
}

#[test]
fn a_loader_says_what_its_stores_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bucket")).unwrap();
    for (name, seed) in [("a.bin", 1), ("b.bin", 2)] {
        windrow::prepare::dummy(&folder.path().join("bucket").join(name), 50_000, 500_000, seed, true)
            .unwrap();
    }
    let s3 = S3::serve(folder.path());
    let options = Options { read_ahead: Some(64 << 20), ..s3.options() };
    let open = |url: &str| open_with(url, &options).unwrap();
    let run = |mut loader: windrow::Loader| {
        while let Some(batch) = loader.next_batch() {
            batch.unwrap();
        }
        loader.stats()
    };

    // On this machine there is nothing to say.
    let here = windrow::open(folder.path().join("bucket/a.bin")).unwrap();
    let of_here = run(here.pack(50).unwrap().loader().batch_size(40).epochs(Some(1)).build().unwrap());
    assert_eq!((of_here.batches, of_here.samples), (249, 9960));
    assert_eq!(of_here.stores, Traffic::default());

    // All bytes came once: what is read again within an epoch was kept.
    let a = open("s3://bucket/a.bin");
    let opened = a.traffic();
    assert!(opened.requests > 0, "{opened:?}");
    let first = run(a.pack(50).unwrap().loader().batch_size(40).epochs(Some(1)).build().unwrap());
    assert!((2_000_000..2_200_000).contains(&first.stores.received_bytes), "{first:?}");
    assert!(first.stores.requests > opened.requests && first.stores.cache_hits > 0, "{first:?}");
    assert!(first.stores.cache_misses > 0 && first.stores.store_waited_secs > 0.0, "{first:?}");
    assert_eq!((first.stores.retries, first.stores.hedged), (0, 0));

    // Loaders of the same opened data share its counters, and a mixture counts each store once.
    let unused = a.pack(50).unwrap().loader().batch_size(40).build().unwrap();
    assert_eq!(unused.stats().stores, a.traffic());
    assert_eq!(unused.stats().batches, 0);
    let b = open("s3://bucket/b.bin");
    let part = |name: &str, data: &Dataset| (name.to_string(), data.pack(50).unwrap(), 1.0);
    let mixed =
        windrow::mix(vec![part("a", &a), part("again", &a), part("b", &b)], windrow::Stop::First).unwrap();
    let mixed = mixed.loader().batch_size(40).build().unwrap().stats().stores;
    assert_eq!(mixed.requests, a.traffic().requests + b.traffic().requests);

    // Several paths as one data set have a store each.
    let both = open("s3://bucket/{a,b}.bin");
    let of_both = run(both.pack(50).unwrap().loader().batch_size(40).epochs(Some(1)).build().unwrap());
    assert!((4_000_000..4_400_000).contains(&of_both.stores.received_bytes), "{of_both:?}");
}
