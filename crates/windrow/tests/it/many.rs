//! A folder of 100,000 objects: opened by one listing, or by a manifest that lists them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock};

use windrow::{Kind, Value, listing, open_with, write_listing};

use crate::bucket::{Bucket, Objects, PAGE};

const N: u64 = 100_000;

fn shard_name(number: u64) -> String {
    format!("shard.{number:05}.mds")
}

fn shard(number: u64) -> Vec<u8> {
    let head = [1u32, 12, 20].map(u32::to_le_bytes).concat();
    [head, number.to_le_bytes().to_vec()].concat()
}

fn index() -> Vec<u8> {
    let mut text = String::from("{\"version\": 2, \"shards\": [");
    for number in 0..N {
        let comma = if number == 0 { "" } else { "," };
        write!(
            text,
            "{comma}{{\"column_encodings\":[\"int\"],\"column_names\":[\"x\"],\"column_sizes\":[8],\"compression\":null,\"format\":\
             \"mds\",\"hashes\":[],\"raw_data\":{{\"basename\":\"{}\",\"bytes\":20,\"hashes\":{{}}}},\"samples\":1,\"size_limit\":null,\
             \"version\":2,\"zip_data\":null}}",
            shard_name(number)
        )
        .unwrap();
    }
    (text + "]}").into_bytes()
}

/// What was warned of.
struct Warned(Mutex<Vec<String>>);

static WARNED: Warned = Warned(Mutex::new(Vec::new()));

impl log::Log for Warned {
    fn enabled(&self, about: &log::Metadata<'_>) -> bool {
        about.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

fn warned_of_manifests() -> usize {
    let warned = WARNED.0.lock().unwrap();
    warned.iter().filter(|said| said.contains("`windrow manifest s3://b/many`")).count()
}

#[test]
fn a_manifest_takes_the_place_of_a_hundred_listings() {
    static LISTENING: OnceLock<()> = OnceLock::new();
    LISTENING.get_or_init(|| {
        log::set_logger(&WARNED).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
    });
    let of = Objects { count: N, name: shard_name, content: shard, index: Some(index()) };
    let (bucket, url) = (Bucket::serve(of), "s3://b/many");
    let options = bucket.options();
    let open = || open_with(url, &options);

    // Without: one chain of listings, and one warning.
    let listed = open().unwrap();
    let asked = bucket.asked();
    assert_eq!((listed.len(), asked["LIST"], warned_of_manifests()), (N, N / PAGE, 1), "{asked:?}");
    assert!(asked.keys().all(|what| !what.contains("shard")), "{asked:?}");

    let manifest = listing(url, &options).unwrap();
    assert_eq!(bucket.asked()["LIST"], N / PAGE);
    let written = write_listing(url, &options, &manifest).unwrap();
    assert_eq!(written.display().to_string(), "s3://b/many/windrow.json");
    assert_eq!(bucket.asked(), BTreeMap::from([("PUT windrow.json".to_string(), 1)]));

    // With: the manifest in at most two requests, and the format's own index.
    let told = open().unwrap();
    let asked = bucket.asked();
    let n_of = |asked: &BTreeMap<String, u64>, name: &str| -> u64 {
        asked.iter().filter(|(what, _)| what.ends_with(name)).map(|(_, n)| n).sum()
    };
    assert!(n_of(&asked, "windrow.json") <= 2, "{asked:?}");
    assert_eq!(
        n_of(&asked, "windrow.json") + n_of(&asked, "index.json"),
        asked.values().sum::<u64>(),
        "{asked:?}"
    );
    assert_eq!(warned_of_manifests(), 1);
    let same = [&listed, &told].map(|data| (data.len(), data.source().fingerprint().unwrap()));
    assert_eq!(same[0], same[1]);
    bucket.asked();
    let row = told.row(77_777).unwrap();
    assert_eq!(row.get("x"), Some(&Value::I64(77_777)));
    assert_eq!(bucket.asked(), BTreeMap::from([("GET shard.77777.mds".to_string(), 1)]));

    // It is written again from what is there, not from what it says; and what it says is not believed.
    assert!(listing(url, &options).unwrap() == manifest);
    *bucket.grown.lock().unwrap() = Some(5);
    let e = open().unwrap().row(5).unwrap_err();
    assert!(e.kind() == Kind::Stale && format!("{e:#}").contains("shard.00005.mds"), "{e}");
    assert!(listing(url, &options).unwrap() != manifest);
    let cut = manifest.to_text().replacen("shard.00000.mds", "../shard.0.mds", 1);
    *bucket.manifest.lock().unwrap() = Some(cut.into_bytes());
    let e = open().map(drop).unwrap_err();
    assert!(e.kind() == Kind::Corrupt && format!("{e:#}").contains("windrow.json"), "{e}");
}
