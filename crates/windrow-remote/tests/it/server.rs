//! A web server on loopback that does what a test tells it: slow, failing, cutting, changing.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request for a range of a file.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Counted from 0.
    pub(crate) number: u64,
    pub(crate) method: String,
    pub(crate) path: String,
    /// `start..end`, where one was given.
    pub(crate) range: Option<(u64, u64)>,
    pub(crate) if_match: Option<String>,
    /// Also for the checksum of the object.
    pub(crate) asks_for_checksum: bool,
    /// Who asks, and in which region, where that is said.
    pub(crate) authorization: Option<String>,
    /// Only if nothing is there.
    pub(crate) creates: bool,
    /// What was sent.
    pub(crate) body: Vec<u8>,
    /// The hash that is kept beside the bytes.
    hash: Option<String>,
}

/// What a request is answered with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// Before the first byte.
    pub(crate) wait: Duration,
    /// Instead of the file.
    pub(crate) status: Option<(u16, &'static str)>,
    /// A further header.
    pub(crate) header: Option<String>,
    /// Closes the connection after this number of bytes of the body.
    pub(crate) cut: Option<usize>,
    /// Says that the body has this number of bytes more, and closes the connection after those that it has.
    pub(crate) promises: usize,
    /// Closes the connection instead of an answer, after what was asked for is done.
    pub(crate) mute: bool,
    /// One bit of this byte of the body is another.
    pub(crate) flip: Option<usize>,
    /// So long before each byte of the body.
    pub(crate) drip: Option<Duration>,
    /// Gives all of the file, whatever range was asked for.
    pub(crate) ignores_range: bool,
    /// Gives it without saying which it is.
    pub(crate) names_no_range: bool,
    /// Tells no version but when the file was last changed.
    pub(crate) has_no_tag: bool,
    /// And not even that.
    pub(crate) has_no_time: bool,
}

/// Bytes, how often they were replaced, and the hash that is kept beside them.
#[derive(Clone, Default)]
struct File {
    bytes: Vec<u8>,
    version: u64,
    hash: Option<String>,
}

type Script = dyn Fn(&Asked) -> Answer + Send + Sync;

pub(crate) struct Server {
    pub(crate) url: String,
    shared: Arc<Shared>,
    address: std::net::SocketAddr,
}

struct Shared {
    files: Mutex<HashMap<String, File>>,
    script: Mutex<Arc<Script>>,
    asked: Mutex<Vec<Asked>>,
    number: AtomicU64,
    over: AtomicBool,
}

impl Server {
    pub(crate) fn new(files: impl IntoIterator<Item = (&'static str, Vec<u8>)>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let files = files
            .into_iter()
            .map(|(name, bytes)| (format!("/{name}"), File { bytes, version: 1, hash: None }))
            .collect();
        let shared = Arc::new(Shared {
            files: Mutex::new(files),
            script: Mutex::new(Arc::new(|_| Answer::default())),
            asked: Mutex::default(),
            number: AtomicU64::new(0),
            over: AtomicBool::new(false),
        });
        let serving = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if serving.over.load(Ordering::Relaxed) {
                    return;
                }
                let serving = serving.clone();
                thread::spawn(move || {
                    let _ = serving.serve(&stream);
                });
            }
        });
        Server { url: format!("http://{address}"), shared, address }
    }

    pub(crate) fn script(&self, script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) {
        *self.shared.script.lock().unwrap() = Arc::new(script);
    }

    /// Puts another file in the place of one.
    pub(crate) fn replace(&self, name: &str, bytes: Vec<u8>) {
        self.shared.put(&format!("/{name}"), bytes, None);
    }

    /// What is there.
    pub(crate) fn file(&self, name: &str) -> Option<Vec<u8>> {
        self.shared.files.lock().unwrap().get(&format!("/{name}")).map(|file| file.bytes.clone())
    }

    /// The requests since the last time this was asked.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.shared.asked.lock().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Wakes it.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn put(&self, path: &str, bytes: Vec<u8>, hash: Option<String>) -> u64 {
        let mut files = self.files.lock().unwrap();
        let file = files.entry(path.to_string()).or_default();
        *file = File { bytes, version: file.version + 1, hash };
        file.version
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut from = BufReader::new(stream.try_clone()?);
        loop {
            let mut first = String::new();
            if from.read_line(&mut first)? == 0 {
                return Ok(());
            }
            let mut parts = first.split(' ').map(str::to_string);
            let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let mut headers = HashMap::new();
            for line in from.by_ref().lines() {
                let line = line?;
                let Some((name, value)) = line.split_once(':') else { break };
                headers.insert(name.to_ascii_lowercase(), value.trim().to_string());
            }
            let size = headers.get("content-length").and_then(|size| size.parse().ok()).unwrap_or(0);
            let mut body = vec![0; size];
            from.read_exact(&mut body)?;
            let range = headers.get("range").and_then(|range| {
                let (start, last) = range.strip_prefix("bytes=")?.split_once('-')?;
                Some((start.parse().ok()?, last.parse::<u64>().ok()? + 1))
            });
            let number = self.number.fetch_add(1, Ordering::Relaxed);
            let asked = Asked {
                number,
                method,
                path,
                range,
                if_match: headers.get("if-match").cloned(),
                asks_for_checksum: headers.get("x-amz-checksum-mode").is_some_and(|mode| mode == "ENABLED"),
                authorization: headers.get("authorization").cloned(),
                creates: headers.get("if-none-match").is_some_and(|tags| tags == "*"),
                body,
                hash: headers.get("x-amz-meta-windrowxxh3").cloned(),
            };
            self.asked.lock().unwrap().push(asked.clone());
            // A script may hold one request back until others have come.
            let script = self.script.lock().unwrap().clone();
            let answer = script(&asked);
            thread::sleep(answer.wait);
            if !self.answer(stream, &asked, &answer)? {
                return Ok(());
            }
        }
    }

    // Whether the connection stays open.
    fn answer(&self, mut stream: &TcpStream, asked: &Asked, answer: &Answer) -> std::io::Result<bool> {
        if answer.status.is_none() && matches!(asked.method.as_str(), "PUT" | "POST" | "DELETE") {
            return self.take(stream, asked, answer);
        }
        let found = self.files.lock().unwrap().get(&asked.path).cloned();
        let further = answer.header.as_ref().map_or(String::new(), |header| format!("{header}\r\n"));
        let mut say = |status: &str, headers: &str, body: &[u8]| {
            let mut body = body.to_vec();
            if let Some(byte) = answer.flip.and_then(|at| body.get_mut(at)) {
                *byte ^= 1;
            }
            let head = format!(
                "HTTP/1.1 {status}\r\n{headers}{further}content-length: {}\r\n\r\n",
                body.len() + answer.promises
            );
            stream.write_all(head.as_bytes())?;
            let sent = answer.cut.unwrap_or(body.len()).min(body.len());
            match answer.drip {
                _ if asked.method == "HEAD" => {}
                None => stream.write_all(&body[..sent])?,
                Some(drip) => {
                    for byte in &body[..sent] {
                        thread::sleep(drip);
                        stream.write_all(std::slice::from_ref(byte))?;
                    }
                }
            }
            Ok(sent == body.len() && answer.promises == 0)
        };
        if let Some((status, body)) = answer.status {
            return say(&format!("{status} As Told"), "", body.as_bytes());
        }
        let Some(File { bytes, version, hash }) = found else { return say("404 Not Found", "", b"nothing") };
        let hash = hash.map_or(String::new(), |hash| format!("x-amz-meta-windrowxxh3: {hash}\r\n"));
        let tag = if answer.has_no_time {
            hash
        } else if answer.has_no_tag {
            format!("etag: W/\"v\"\r\nlast-modified: Thu, 01 Jan 2026 00:00:{version:02} GMT\r\n{hash}")
        } else {
            format!("etag: \"v{version}\"\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n{hash}")
        };
        if asked.if_match.as_ref().is_some_and(|expected| *expected != format!("\"v{version}\"")) {
            return say("412 Precondition Failed", "", b"");
        }
        match asked.range.filter(|_| !answer.ignores_range) {
            Some((start, end)) => {
                let (size, end) = (bytes.len() as u64, end.min(bytes.len() as u64));
                let place = if answer.names_no_range {
                    tag
                } else {
                    format!("content-range: bytes {start}-{}/{size}\r\n{tag}", end - 1)
                };
                say("206 Partial Content", &place, &bytes[start as usize..end as usize])
            }
            None => say("200 OK", &tag, &bytes),
        }
    }

    // What S3 does with an object, or with the parts of one.
    fn take(&self, mut stream: &TcpStream, asked: &Asked, answer: &Answer) -> std::io::Result<bool> {
        let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        let mut said = ("200 OK", String::new(), 0);
        let there = self.files.lock().unwrap().contains_key(path);
        match (asked.method.as_str(), query) {
            ("PUT", "") if asked.creates && there => said.0 = "412 Precondition Failed",
            ("PUT", "") => said.2 = self.put(path, asked.body.clone(), asked.hash.clone()),
            ("PUT", part) => said.2 = self.put(&format!("{path}?{part}"), asked.body.clone(), None),
            ("POST", "uploads" | "uploads=") => {
                let upload =
                    "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>U</UploadId>";
                said.1 = format!("{upload}</InitiateMultipartUploadResult>");
                self.put(&format!("{path}?hash"), Vec::new(), asked.hash.clone());
            }
            ("DELETE", "") => drop(self.files.lock().unwrap().remove(path)),
            ("POST", _) => {
                let part = |number: &u32| {
                    self.files.lock().unwrap().remove(&format!("{path}?partNumber={number}&uploadId=U"))
                };
                let parts: Vec<File> = (1..).map_while(|number| part(&number)).collect();
                let hash =
                    self.files.lock().unwrap().remove(&format!("{path}?hash")).and_then(|file| file.hash);
                if parts.is_empty() {
                    said.0 = "404 Not Found"
                } else {
                    let whole = parts.into_iter().flat_map(|part| part.bytes).collect();
                    said.2 = self.put(path, whole, hash);
                    let result =
                        "<CompleteMultipartUploadResult><Location>l</Location><Bucket>b</Bucket><Key>k</Key>";
                    said.1 = format!("{result}<ETag>\"v\"</ETag></CompleteMultipartUploadResult>");
                }
            }
            _ => {}
        }
        if answer.mute {
            return Ok(false);
        }
        let (status, body, version) = said;
        write!(
            stream,
            "HTTP/1.1 {status}\r\netag: \"v{version}\"\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        Ok(true)
    }
}
