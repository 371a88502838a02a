//! A web server on loopback that does what a test tells it: slow, failing, cutting, changing.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
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
    /// Closes the connection after so many bytes of the body.
    pub(crate) cut: Option<usize>,
    /// Gives all of the file, whatever range was asked for.
    pub(crate) ignores_range: bool,
}

type Script = dyn Fn(&Asked) -> Answer + Send + Sync;

pub(crate) struct Server {
    pub(crate) url: String,
    shared: Arc<Shared>,
    address: std::net::SocketAddr,
}

struct Shared {
    files: Mutex<HashMap<String, (Vec<u8>, u64)>>,
    script: Mutex<Box<Script>>,
    asked: Mutex<Vec<Asked>>,
    number: AtomicU64,
    over: AtomicBool,
}

impl Server {
    pub(crate) fn new(files: impl IntoIterator<Item = (&'static str, Vec<u8>)>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let files = files.into_iter().map(|(name, bytes)| (format!("/{name}"), (bytes, 1))).collect();
        let shared = Arc::new(Shared {
            files: Mutex::new(files),
            script: Mutex::new(Box::new(|_| Answer::default())),
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
        *self.shared.script.lock().unwrap() = Box::new(script);
    }

    /// Puts another file in the place of one.
    pub(crate) fn replace(&self, name: &str, bytes: Vec<u8>) {
        let mut files = self.shared.files.lock().unwrap();
        let version = files.get(&format!("/{name}")).map_or(1, |(_, version)| version + 1);
        files.insert(format!("/{name}"), (bytes, version));
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
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        loop {
            let Some(first) = lines.next().transpose()? else { return Ok(()) };
            let mut parts = first.split(' ').map(str::to_string);
            let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let mut headers = HashMap::new();
            for line in lines.by_ref() {
                let line = line?;
                let Some((name, value)) = line.split_once(':') else { break };
                headers.insert(name.to_ascii_lowercase(), value.trim().to_string());
            }
            let range = headers.get("range").and_then(|range| {
                let (start, last) = range.strip_prefix("bytes=")?.split_once('-')?;
                Some((start.parse().ok()?, last.parse::<u64>().ok()? + 1))
            });
            let number = self.number.fetch_add(1, Ordering::Relaxed);
            let asked = Asked { number, method, path, range, if_match: headers.get("if-match").cloned() };
            self.asked.lock().unwrap().push(asked.clone());
            let answer = (self.script.lock().unwrap())(&asked);
            thread::sleep(answer.wait);
            if !self.answer(stream, &asked, &answer)? {
                return Ok(());
            }
        }
    }

    // Whether the connection goes on.
    fn answer(&self, mut stream: &TcpStream, asked: &Asked, answer: &Answer) -> std::io::Result<bool> {
        let found = self.files.lock().unwrap().get(&asked.path).cloned();
        let further = answer.header.as_ref().map_or(String::new(), |header| format!("{header}\r\n"));
        let mut say = |status: &str, headers: &str, body: &[u8]| {
            let head =
                format!("HTTP/1.1 {status}\r\n{headers}{further}content-length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes())?;
            let sent = answer.cut.unwrap_or(body.len()).min(body.len());
            if asked.method != "HEAD" {
                stream.write_all(&body[..sent])?;
            }
            Ok(sent == body.len())
        };
        if let Some((status, body)) = answer.status {
            return say(&format!("{status} As Told"), "", body.as_bytes());
        }
        let Some((bytes, version)) = found else { return say("404 Not Found", "", b"nothing") };
        let tag = format!("etag: \"v{version}\"\r\n");
        if asked.if_match.as_ref().is_some_and(|expected| *expected != format!("\"v{version}\"")) {
            return say("412 Precondition Failed", "", b"");
        }
        match asked.range.filter(|_| !answer.ignores_range) {
            Some((start, end)) => {
                let (size, end) = (bytes.len() as u64, end.min(bytes.len() as u64));
                let place = format!("content-range: bytes {start}-{}/{size}\r\n{tag}", end - 1);
                say("206 Partial Content", &place, &bytes[start as usize..end as usize])
            }
            None => say("200 OK", &tag, &bytes),
        }
    }
}
