//! A folder of 100,000 objects: opened by one listing, or by a manifest that lists them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use windrow::format::Options;
use windrow::{Kind, Value, listing, open_with, write_listing};

const N: u64 = 100_000;
const PAGE: u64 = 1000;

/// S3 on loopback, with a bucket whose objects are computed: shards of one sample.
struct Bucket {
    endpoint: String,
    asked: Mutex<Vec<(String, String)>>,
    manifest: Mutex<Option<Vec<u8>>>,
    index: Vec<u8>,
    /// A shard that grew.
    grown: Mutex<Option<u64>>,
}

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

impl Bucket {
    fn serve() -> Arc<Bucket> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let bucket = Arc::new(Bucket {
            endpoint: format!("http://{}", listener.local_addr().unwrap()),
            asked: Mutex::default(),
            manifest: Mutex::default(),
            index: index(),
            grown: Mutex::default(),
        });
        let serving = bucket.clone();
        // Until the test program ends.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                thread::spawn(move || serving.answer_all(&stream));
            }
        });
        bucket
    }

    fn options(&self) -> Options {
        let store_options =
            [("endpoint_url", self.endpoint.as_str()), ("anon", "true"), ("region", "us-east-1")];
        Options {
            store_options: store_options.map(|(name, value)| (name.to_string(), value.to_string())).into(),
            cache_limit: Some(0),
            timeout: Some(Duration::from_secs(60)),
            ..Options::default()
        }
    }

    /// How often each kind of request was made since the last time: listings, and the rest by method and object.
    fn asked(&self) -> BTreeMap<String, u64> {
        let mut counted = BTreeMap::new();
        for (method, path) in self.asked.lock().unwrap().drain(..) {
            let what = if path.contains("list-type=2") {
                "LIST".to_string()
            } else {
                format!("{method} {}", path.rsplit('/').next().unwrap_or_default())
            };
            *counted.entry(what).or_default() += 1;
        }
        counted
    }

    fn answer_all(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while self.answer(&mut reader, stream).is_some() {}
    }

    fn answer(&self, reader: &mut BufReader<TcpStream>, mut stream: &TcpStream) -> Option<()> {
        let mut first = String::new();
        reader.read_line(&mut first).ok().filter(|size| *size > 0)?;
        let mut words = first.split(' ').map(str::to_string);
        let (method, path) = (words.next()?, words.next()?);
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_string());
        }
        let size = headers.get("content-length").and_then(|size| size.parse().ok()).unwrap_or(0);
        let mut body = vec![0; size];
        reader.read_exact(&mut body).ok()?;
        self.asked.lock().unwrap().push((method.clone(), path.clone()));
        let mut say = |status: &str, headers: &str, body: &[u8]| {
            let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).ok()?;
            stream.write_all(if method == "HEAD" { &[] } else { body }).ok()
        };
        if path.contains("list-type=2") {
            return say("200 OK", "content-type: application/xml\r\n", self.page(&path).as_bytes());
        }
        let name = path.rsplit('/').next()?;
        if method == "PUT" {
            *self.manifest.lock().unwrap() = Some(body);
            return say("200 OK", "etag: \"m\"\r\n", b"");
        }
        let Some(content) = self.object(name) else {
            return say("404 Not Found", "", b"<Error><Code>NoSuchKey</Code></Error>");
        };
        let of_object =
            format!("etag: {}\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n", tag(name, &content));
        if headers.get("if-match").is_some_and(|expected| *expected != tag(name, &content)) {
            return say("412 Precondition Failed", "", b"<Error><Code>PreconditionFailed</Code></Error>");
        }
        let range = headers.get("range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
        match range
            .and_then(|(start, last)| Some((start.parse::<usize>().ok()?, last.parse::<usize>().ok()?)))
        {
            Some((start, last)) => {
                let last = last.min(content.len() - 1);
                let place = format!("{of_object}content-range: bytes {start}-{last}/{}\r\n", content.len());
                say("206 Partial Content", &place, &content[start..=last])
            }
            None => say("200 OK", &of_object, &content),
        }
    }

    fn object(&self, name: &str) -> Option<Vec<u8>> {
        match name {
            "windrow.json" => self.manifest.lock().unwrap().clone(),
            "index.json" => Some(self.index.clone()),
            _ => {
                let number = name.strip_prefix("shard.")?.strip_suffix(".mds")?.parse().ok()?;
                let mut content = shard(number);
                content.extend((*self.grown.lock().unwrap() == Some(number)).then_some(0));
                Some(content)
            }
        }
    }

    // Of index.json, then of the shards.
    fn page(&self, path: &str) -> String {
        let start: u64 = path
            .split(['?', '&'])
            .find_map(|part| part.strip_prefix("continuation-token="))
            .map_or(0, |token| token.parse().unwrap());
        let end = (start + PAGE).min(N);
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult>");
        let mut add = |name: &str, content: &[u8]| {
            write!(
                text,
                "<Contents><Key>many/{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{}</ETag>\
                 <Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
                tag(name, content).replace('"', "&quot;"),
                content.len()
            )
            .unwrap();
        };
        if start == 0 {
            add("index.json", &self.index);
        }
        for number in start..end {
            let name = shard_name(number);
            add(&name, &self.object(&name).unwrap());
        }
        if end < N {
            write!(
                text,
                "<IsTruncated>true</IsTruncated><NextContinuationToken>{end}</NextContinuationToken>"
            )
        } else {
            write!(text, "<IsTruncated>false</IsTruncated>")
        }
        .unwrap();
        text + "</ListBucketResult>"
    }
}

fn tag(name: &str, content: &[u8]) -> String {
    format!("\"{name}-{}\"", content.len())
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
    let (bucket, url) = (Bucket::serve(), "s3://b/many");
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
