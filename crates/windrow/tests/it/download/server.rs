//! A small hub on loopback that speaks the hub's API, and a second port that large files are redirected to.
//!
//! What goes wrong is said by a function from what was asked to a [`Fault`].

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use sha1_smol::Sha1;
use sha2::{Digest, Sha256};

/// The data set that it has; it goes by the second name, too.
pub(crate) const REPO: &str = "some/data";
const NAMES: [&str; 2] = [REPO, "Maple728/Time-300B"];
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// What stands in signed addresses and must not be shown to anybody.
pub(crate) const SIGNATURE: &str = "X-Signature=secret";

/// A file of the data set.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) path: String,
    pub(crate) content: Vec<u8>,
    pub(crate) is_large: bool,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Whether it came to the second port.
    pub(crate) is_cdn: bool,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: HashMap<String, String>,
    /// The how many-th request of this target, from 1.
    pub(crate) nth: usize,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Whether it asks for a file's content.
    pub(crate) fn is_content(&self) -> bool {
        self.is_cdn || self.target.contains("/resolve/")
    }

    /// The first byte that is asked for.
    pub(crate) fn start(&self) -> usize {
        let range = self.header("range").and_then(|r| r.strip_prefix("bytes="));
        range.and_then(|r| r.split_once('-')?.0.parse().ok()).unwrap_or(0)
    }
}

/// What goes wrong with an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    None,
    /// This status, with these headers.
    Status(u16, &'static str),
    /// The connection ends after this number of bytes of the body.
    Cut(usize),
    /// Nothing more comes after this number of bytes, and the connection stays.
    Stall(usize),
    /// The content has these bytes instead.
    Content(Vec<u8>),
    /// A page of the listing says that it continues there.
    Next(String),
    /// A part that was asked for is not known: all of it comes.
    Whole,
    /// All of it comes, cut after this number of bytes.
    WholeCut(usize),
}

type Faults = Box<dyn Fn(&Seen) -> Fault + Send + Sync>;

struct State {
    files: Vec<Remote>,
    token: Option<String>,
    listing: Option<String>,
    faults: Faults,
    log: Mutex<Vec<Seen>>,
    cdn: String,
    hub: String,
}

/// The hub; it lives as long as the test's process.
pub(crate) struct Server {
    state: Arc<State>,
}

/// How the hub is set up.
pub(crate) struct Setup {
    pub(crate) files: Vec<Remote>,
    /// Who does not send it is refused.
    pub(crate) token: Option<&'static str>,
    /// This instead of the tree.
    pub(crate) listing: Option<String>,
    pub(crate) faults: Faults,
}

pub(crate) fn large(path: &str, content: impl Into<Vec<u8>>) -> Remote {
    Remote { path: path.to_string(), content: content.into(), is_large: true }
}

pub(crate) fn small(path: &str, content: impl Into<Vec<u8>>) -> Remote {
    Remote { path: path.to_string(), content: content.into(), is_large: false }
}

/// Bytes that repeat nowhere soon.
pub(crate) fn noise(n: usize) -> Vec<u8> {
    (0..n as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

impl Remote {
    pub(crate) fn sha256(&self) -> String {
        hex(&Sha256::digest(&self.content))
    }

    pub(crate) fn git(&self) -> String {
        let blob = [format!("blob {}\0", self.content.len()).as_bytes(), &self.content].concat();
        Sha1::from(&blob).digest().to_string()
    }

    fn entry(&self) -> String {
        let (path, size, git) = (&self.path, self.content.len(), self.git());
        let large = if self.is_large {
            format!(r#","lfs":{{"oid":"{}","size":{size},"pointerSize":130}}"#, self.sha256())
        } else {
            String::new()
        };
        format!(r#"{{"type":"file","oid":"{git}","size":{size},"path":"{path}"{large}}}"#)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Server {
    /// Files, and nothing that goes wrong.
    pub(crate) fn good(files: Vec<Remote>) -> Server {
        Server::start(Setup { files, token: None, listing: None, faults: Box::new(|_| Fault::None) })
    }

    /// Files, and what goes wrong.
    pub(crate) fn faulty(
        files: Vec<Remote>,
        faults: impl Fn(&Seen) -> Fault + Send + Sync + 'static,
    ) -> Server {
        Server::start(Setup { files, token: None, listing: None, faults: Box::new(faults) })
    }

    pub(crate) fn start(setup: Setup) -> Server {
        let (hub, cdn) =
            (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let url = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State {
            files: setup.files,
            token: setup.token.map(str::to_string),
            listing: setup.listing,
            faults: setup.faults,
            log: Mutex::default(),
            cdn: url(&cdn),
            hub: url(&hub),
        });
        for (listener, is_cdn) in [(hub, false), (cdn, true)] {
            let state = state.clone();
            thread::spawn(move || {
                for stream in listener.incoming() {
                    let state = state.clone();
                    // A client that goes away in the middle is what these tests are about.
                    thread::spawn(move || state.answer(&stream.unwrap(), is_cdn).unwrap_or_default());
                }
            });
        }
        Server { state }
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.state.hub
    }

    pub(crate) fn log(&self) -> Vec<Seen> {
        self.state.log.lock().unwrap().clone()
    }

    /// How often content was asked for.
    pub(crate) fn n_content(&self) -> usize {
        self.log().iter().filter(|seen| seen.is_content()).count()
    }
}

impl State {
    fn answer(&self, stream: &TcpStream, is_cdn: bool) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream).lines();
        let Some(first) = lines.next().transpose()? else { return Ok(()) };
        let target = first.split(' ').nth(1).unwrap_or_default().to_string();
        let mut headers = HashMap::new();
        for line in lines {
            let line = line?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_string());
        }
        let seen = {
            let mut log = self.log.lock().unwrap();
            let nth = 1 + log.iter().filter(|s| s.target == target && s.is_cdn == is_cdn).count();
            log.push(Seen { is_cdn, target, headers, nth });
            log[log.len() - 1].clone()
        };
        let fault = (self.faults)(&seen);
        if let Fault::Status(status, headers) = fault {
            return write!(
                &mut &*stream,
                "HTTP/1.1 {status} No\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
        let authorised =
            self.token.as_ref().is_none_or(|t| seen.header("authorization") == Some(&format!("Bearer {t}")));
        let path = seen.target.split('?').next().unwrap_or_default();
        let repo =
            NAMES.into_iter().find(|name| path.contains(&format!("/datasets/{name}/"))).unwrap_or_default();
        let resolved = path.strip_prefix(&format!("/datasets/{repo}/resolve/{COMMIT}/"));
        if is_cdn {
            // What a signed address gives needs no token, and must not be given one.
            let file = self.files.iter().find(|f| path == format!("/blob/{}", f.sha256()));
            return match file {
                Some(file) if seen.header("authorization").is_none() => {
                    content(stream, &seen, file, &fault, "etag-of-a-store")
                }
                _ => status(stream, 400),
            };
        }
        if !authorised {
            return status(stream, if seen.header("authorization").is_some() { 403 } else { 401 });
        }
        if path == format!("/api/datasets/{repo}/revision/main") {
            let siblings: Vec<_> =
                self.files.iter().map(|f| format!(r#"{{"rfilename":"{}"}}"#, f.path)).collect();
            let info = format!(r#"{{"id":"{repo}","sha":"{COMMIT}","siblings":[{}]}}"#, siblings.join(","));
            return reply(stream, "", info.as_bytes());
        }
        if let Some(folder) = path.strip_prefix(&format!("/api/datasets/{repo}/tree/{COMMIT}")) {
            return self.tree(stream, &seen.target, folder.trim_start_matches('/'), &fault);
        }
        let file = resolved.and_then(|path| self.files.iter().find(|f| f.path.replace(' ', "%20") == path));
        match file {
            Some(file) if file.is_large => {
                let (sha256, size) = (file.sha256(), file.content.len());
                let location = format!("{}/blob/{sha256}?{SIGNATURE}", self.cdn);
                write!(
                    &mut &*stream,
                    "HTTP/1.1 302 Found\r\nLocation: {location}\r\nX-Repo-Commit: {COMMIT}\r\nX-Linked-Etag: \"{sha256}\"\r\n\
                     X-Linked-Size: {size}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )
            }
            Some(file) => content(stream, &seen, file, &fault, &file.git()),
            None => status(stream, 404),
        }
    }

    // Of what begins so, two entries a page.
    fn tree(&self, stream: &TcpStream, target: &str, folder: &str, fault: &Fault) -> std::io::Result<()> {
        if let Some(listing) = &self.listing {
            return reply(stream, "", listing.as_bytes());
        }
        let at: usize = target.split("cursor=").nth(1).map_or(0, |n| n.parse().unwrap());
        let mut entries = vec![r#"{"type":"directory","oid":"0","size":0,"path":"folder"}"#.to_string()];
        entries.extend(self.files.iter().filter(|file| file.path.starts_with(folder)).map(Remote::entry));
        let page = entries.iter().skip(at).take(2).cloned().collect::<Vec<_>>().join(",");
        if let Fault::Next(url) = fault {
            return reply(
                stream,
                &format!("Link: <{url}>; rel=\"next\"\r\n"),
                format!("[{page}]").as_bytes(),
            );
        }
        let link = if at + 2 < entries.len() {
            format!(
                "Link: <{}{}?recursive=true&cursor={}>; rel=\"next\"\r\n",
                self.hub,
                target.split('?').next().unwrap_or_default(),
                at + 2
            )
        } else {
            String::new()
        };
        reply(stream, &link, format!("[{page}]").as_bytes())
    }
}

fn status(mut stream: &TcpStream, status: u16) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

fn reply(mut stream: &TcpStream, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let size = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\n{headers}Content-Length: {size}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(body)
}

// A file's bytes, all or from where they are asked for.
fn content(
    mut stream: &TcpStream,
    seen: &Seen,
    file: &Remote,
    fault: &Fault,
    tag: &str,
) -> std::io::Result<()> {
    let bytes = if let Fault::Content(bytes) = fault { bytes } else { &file.content };
    let total = bytes.len();
    let is_whole = matches!(fault, Fault::Whole | Fault::WholeCut(_));
    let start = if is_whole { 0 } else { seen.start() };
    if start > 0 && start >= total {
        return status(stream, 416);
    }
    let body = &bytes[start..];
    let head = match start {
        0 => "200 OK\r\n".to_string(),
        _ => format!("206 Partial Content\r\nContent-Range: bytes {start}-{}/{total}\r\n", total - 1),
    };
    let size = body.len();
    write!(stream, "HTTP/1.1 {head}ETag: \"{tag}\"\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n")?;
    match fault {
        Fault::Cut(n) | Fault::WholeCut(n) => stream.write_all(&body[..size.min(*n)]),
        Fault::Stall(n) => {
            stream.write_all(&body[..size.min(*n)])?;
            stream.flush()?;
            thread::sleep(Duration::from_secs(600));
            Ok(())
        }
        _ => stream.write_all(body),
    }
}
