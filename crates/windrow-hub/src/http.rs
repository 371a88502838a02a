//! One GET at a time: redirects by hand, the token for the endpoint alone, and what an answer's status means.

use std::fmt;
use std::io::Read;
use std::time::Duration;

use ureq::http::{HeaderMap, Uri};
use ureq::{Agent, Body};
use windrow_core::{Error, Kind, Result};

use crate::retry::{Patience, Trouble};

const MOST_REDIRECTS: usize = 10;

/// What speaks to the hub during one call; clones share their connections.
#[derive(Clone)]
pub(crate) struct Http {
    agent: Agent,
    endpoint: String,
    origin: Origin,
    token: Option<String>,
    pub(crate) patience: Patience,
}

/// Scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

/// Which part of a file to ask for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// From this byte on; 0 asks for all.
    pub(crate) start: u64,
    /// It must be the content that this server gave this tag to.
    pub(crate) tag: Option<(Origin, String)>,
}

/// An answer that has what was asked for.
pub(crate) struct Answer {
    pub(crate) headers: HeaderMap,
    /// The byte its body starts with; 0 unless the server sends a part.
    pub(crate) start: u64,
    /// How long the whole file is, where the server says.
    pub(crate) size: Option<u64>,
    /// The server's tag of the content, to be sent back to that server.
    pub(crate) tag: Option<(Origin, String)>,
    body: Body,
}

impl Http {
    pub(crate) fn new(endpoint: &str, token: Option<&str>, patience: &Patience) -> Result<Http> {
        let uri: Option<Uri> = endpoint.parse().ok();
        let Some(origin) = uri.as_ref().and_then(Origin::of) else {
            return Err(Error::config(format!(
                "the hub's endpoint {endpoint:?} is not an http or https address"
            ))
            .hint("HF_ENDPOINT is like https://huggingface.co"));
        };
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("windrow/", env!("CARGO_PKG_VERSION")))
            // Byte ranges are those of the file, not of a compressed one.
            .accept_encoding("identity")
            // One for every file that is under way, at the hub and where it redirects to.
            .max_idle_connections(64)
            .max_idle_connections_per_host(32)
            .timeout_connect(Some(patience.silence))
            .timeout_per_read(Some(patience.silence))
            .timeout_per_write(Some(patience.silence))
            .build();
        let token = token.map(str::to_string);
        Ok(Http { agent: agent.into(), endpoint: endpoint.to_string(), origin, token, patience: *patience })
    }

    /// The address of a path at the endpoint.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.endpoint)
    }

    /// Whether an address is the endpoint's.
    pub(crate) fn is_own(&self, url: &str) -> bool {
        url.parse().ok().and_then(|uri| Origin::of(&uri)).as_ref() == Some(&self.origin)
    }

    /// Ends every request under way; this and its clones can do nothing afterwards.
    pub(crate) fn shut_down(&self) {
        self.agent.clone().shutdown();
    }

    /// Asks for `url`, or a part of it.
    pub(crate) fn get(&self, url: &str, part: &Part) -> Result<Answer, Trouble> {
        let mut url = url.to_string();
        for _ in 0..=MOST_REDIRECTS {
            let uri: Uri = url.parse().map_err(|_| no_address(&url))?;
            let origin = Origin::of(&uri).ok_or_else(|| no_address(&url))?;
            let mut request = self.agent.get(&url);
            let token = self.token.as_deref().filter(|_| origin == self.origin);
            if let Some(token) = token {
                request = request.header("Authorization", format!("Bearer {token}"));
            }
            if part.start > 0 {
                request = request.header("Range", format!("bytes={}-", part.start));
                if let Some((_, tag)) = part.tag.as_ref().filter(|(of, _)| *of == origin) {
                    request = request.header("If-Match", tag);
                }
            }
            let response = request.call().map_err(|e| refused(e, &origin))?;
            let (head, body) = response.into_parts();
            if matches!(head.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                let to =
                    text(&head.headers, "location").ok_or_else(|| no_address("a redirect to nowhere"))?;
                let to = joined(&origin, uri.path(), to);
                if origin.scheme == "https" && !to.starts_with("https://") {
                    let error = Error::new(Kind::Io, format!("{origin} redirects to {:?}", shown(&to)));
                    return Err(error.hint("an encrypted connection is not left for a plain one").into());
                }
                url = to;
                continue;
            }
            let whole = body.content_length();
            let (start, size) = match head.status.as_u16() {
                200 => (0, whole),
                206 => content_range(&head.headers).ok_or_else(|| {
                    Trouble::Wrong(
                        Error::corrupt("the server sends a part without saying which").at(shown(&url)),
                    )
                })?,
                status => return Err(self.status(status, &head.headers, &url)),
            };
            let tag = text(&head.headers, "etag").filter(|tag| !tag.starts_with("W/"));
            let tag = tag.map(|tag| (origin, tag.to_string()));
            return Ok(Answer { headers: head.headers, start, size, tag, body });
        }
        Err(Error::new(Kind::Io, format!("more than {MOST_REDIRECTS} redirects")).at(shown(&url)).into())
    }

    // What a status that brings no content means, and what can be done about it.
    fn status(&self, status: u16, headers: &HeaderMap, url: &str) -> Trouble {
        let said = text(headers, "x-error-message").unwrap_or_default();
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        let error = |kind| Error::new(kind, format!("the server answers {status}{said}")).at(shown(url));
        match status {
            408 | 425 | 429 | 500 | 502 | 503 | 504 => {
                let wait = text(headers, "retry-after").and_then(|s| s.trim().parse().ok());
                Trouble::Passing { error: error(Kind::Io), wait: wait.map(Duration::from_secs) }
            }
            401 | 403 => error(Kind::Io).hint(match self.token.is_some() {
                false => "is the name right? If it is private or gated, set HF_TOKEN, or log in with `hf auth login`",
                true => "is the name right? If it is, its page says what the token's owner must accept or ask for",
            })
            .into(),
            404 | 410 => error(Kind::NotFound).into(),
            // The content is another one now, or there is no byte to start from.
            412 | 416 => Trouble::Wrong(error(Kind::Corrupt)),
            _ => error(Kind::Io).into(),
        }
    }
}

impl Answer {
    /// All of a short answer.
    pub(crate) fn into_bytes(self, most: u64) -> Result<Vec<u8>, Trouble> {
        let mut bytes = Vec::new();
        let whole = self.size;
        let read = self.into_reader().take(most + 1).read_to_end(&mut bytes);
        read.map_err(|e| Trouble::passing(Error::new(Kind::Io, "the answer was cut").caused_by(e)))?;
        let found = bytes.len() as u64;
        if found > most {
            return Err(Error::corrupt(format!("the answer is longer than {most} bytes")).into());
        }
        if whole.is_some_and(|whole| found < whole) {
            return Err(Trouble::passing(Error::new(
                Kind::Io,
                format!("the answer was cut after {found} bytes"),
            )));
        }
        Ok(bytes)
    }

    pub(crate) fn into_reader(self) -> impl Read {
        self.body.into_reader()
    }
}

impl Origin {
    fn of(uri: &Uri) -> Option<Origin> {
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let port = match scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        // A name before the host is a way to look like another one.
        let authority = uri.authority().filter(|a| !a.as_str().contains('@'))?;
        let host = authority.host().to_ascii_lowercase();
        (!host.is_empty()).then_some(Origin { scheme, host, port: authority.port_u16().unwrap_or(port) })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

/// A header as text.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// A path in which everything but letters, digits and `-_.~/` is escaped.
pub(crate) fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push(byte as char)
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

// Signed addresses carry keys behind the question mark.
fn shown(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

fn no_address(url: &str) -> Trouble {
    Error::new(Kind::Io, format!("{:?} is not an address to download from", shown(url))).into()
}

fn joined(origin: &Origin, path: &str, to: &str) -> String {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    match to {
        _ if to.contains("://") => to.to_string(),
        _ if to.starts_with("//") => format!("{}:{to}", origin.scheme),
        _ if to.starts_with('/') => format!("{origin}{to}"),
        _ => format!("{origin}{folder}/{to}"),
    }
}

fn refused(error: ureq::Error, origin: &Origin) -> Trouble {
    let said = Error::new(Kind::Io, format!("cannot reach {origin}")).caused_by(error.to_string());
    match error {
        ureq::Error::Io(_)
        | ureq::Error::Timeout(_)
        | ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::Protocol(_) => Trouble::passing(
            said.hint("is the network up, and HF_ENDPOINT right? HF_HUB_OFFLINE=1 uses what is here"),
        ),
        _ => said.into(),
    }
}

// `bytes 10-19/20`: where it starts and how long the whole is.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let (range, size) = text(headers, "content-range")?.strip_prefix("bytes ")?.split_once('/')?;
    let start = range.split_once('-')?.0.trim().parse().ok()?;
    let size = if size == "*" { None } else { Some(size.trim().parse().ok()?) };
    Some((start, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(url: &str) -> Option<Origin> {
        Origin::of(&url.parse().unwrap())
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        assert_eq!(origin("https://A.b/x"), origin("https://a.b:443/y"));
        assert_ne!(origin("https://a.b/x"), origin("http://a.b/x"));
        assert_ne!(origin("http://a.b:1/x"), origin("http://a.b:2/x"));
        assert_eq!(origin("http://a.b@c.d/x"), None);
    }

    #[test]
    fn redirects_lead_where_they_say() {
        let at = origin("http://h:8/").unwrap();
        assert_eq!(joined(&at, "/a/b", "https://x/y"), "https://x/y");
        assert_eq!(joined(&at, "/a/b", "//x/y"), "http://x/y");
        assert_eq!(joined(&at, "/a/b", "/y"), "http://h:8/y");
        assert_eq!(joined(&at, "/a/b", "y"), "http://h:8/a/y");
    }

    #[test]
    fn paths_are_escaped_byte_by_byte() {
        assert_eq!(escaped("a b/ü#?.bin"), "a%20b/%C3%BC%23%3F.bin");
    }
}
