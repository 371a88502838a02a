//! An S3 bucket of many objects that are computed, for tests of what opening them takes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use windrow::format::Options;
use xxhash_rust::xxh3::xxh3_64;

/// Objects of one page of a listing.
pub(crate) const PAGE: u64 = 1000;

/// The objects of a bucket, beside the manifest that is put there: all in one folder, `many`.
pub(crate) struct Objects {
    /// How many there are, by number.
    pub(crate) count: u64,
    /// What one is called; its first digits are its number.
    pub(crate) name: fn(u64) -> String,
    /// Its bytes.
    pub(crate) content: fn(u64) -> Vec<u8>,
    /// `index.json`.
    pub(crate) index: Option<Vec<u8>>,
}

/// S3 on loopback, with a bucket whose objects are computed.
pub(crate) struct Bucket {
    endpoint: String,
    asked: Mutex<Vec<(String, String)>>,
    /// What was put in the place of the manifest.
    pub(crate) manifest: Mutex<Option<Vec<u8>>>,
    /// An object that grew.
    pub(crate) grown: Mutex<Option<u64>>,
    of: Objects,
}

impl Bucket {
    /// Serves until the test program ends.
    pub(crate) fn serve(of: Objects) -> Arc<Bucket> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let bucket = Arc::new(Bucket {
            endpoint: format!("http://{}", listener.local_addr().unwrap()),
            asked: Mutex::default(),
            manifest: Mutex::default(),
            grown: Mutex::default(),
            of,
        });
        let serving = bucket.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                thread::spawn(move || serving.answer_all(&stream));
            }
        });
        bucket
    }

    /// How it is asked.
    pub(crate) fn options(&self) -> Options {
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
    pub(crate) fn asked(&self) -> BTreeMap<String, u64> {
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
            "index.json" => self.of.index.clone(),
            _ => {
                let digits = name.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?;
                let number = digits.parse().ok().filter(|number| *number < self.of.count)?;
                let mut content = (self.of.content)(number);
                content.extend((*self.grown.lock().unwrap() == Some(number)).then_some(0));
                Some(content).filter(|_| (self.of.name)(number) == name)
            }
        }
    }

    // Of index.json, then of the others.
    fn page(&self, path: &str) -> String {
        let start: u64 = path
            .split(['?', '&'])
            .find_map(|part| part.strip_prefix("continuation-token="))
            .map_or(0, |token| token.parse().unwrap());
        let end = (start + PAGE).min(self.of.count);
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
        if let (0, Some(index)) = (start, &self.of.index) {
            add("index.json", index);
        }
        for number in start..end {
            let name = (self.of.name)(number);
            add(&name, &self.object(&name).unwrap());
        }
        if end < self.of.count {
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

/// What the store calls a version of an object.
pub(crate) fn tag(name: &str, content: &[u8]) -> String {
    let hash = xxh3_64(name.as_bytes());
    format!("\"{hash:016x}{:016x}\"", content.len())
}
