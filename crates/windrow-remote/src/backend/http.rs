//! Web servers: ranges of files; folders only where a manifest lists them.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue,
};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use windrow_core::store::{Compression, plain_name};
use windrow_core::{Error, Result};

use super::encoding::{Encodings, coding};
use super::{Answer, Backend, Bytes, Got, MODIFIED, Meta};
use crate::options::Options;
use crate::trouble::{Trouble, What};
use crate::url::Location;

pub(super) struct Http {
    client: Client,
    /// `https://host`.
    root: String,
    query: String,
    encodings: Encodings,
    /// Files whose length no answer says, as they came.
    whole: Mutex<HashMap<String, Whole>>,
    /// Bytes that such a file may have.
    most: u64,
}

/// All of a file.
#[derive(Clone)]
struct Whole {
    bytes: Bytes,
    tag: Option<String>,
}

/// The files of a web server.
pub(super) fn open(location: &Location, options: &Options) -> Result<Arc<dyn Backend>> {
    let client = client(options, &location.root, true)?;
    Ok(Arc::new(Http {
        client,
        root: location.root.clone(),
        query: location.query.clone(),
        encodings: Encodings::default(),
        whole: Mutex::default(),
        most: options.read_ahead,
    }))
}

/// A client that sends the headers that were given.
pub(super) fn client(options: &Options, url: &str, follow: bool) -> Result<Client> {
    // What is packed for the way has another size than the file, and other ranges.
    let mut headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
    for (name, value) in &options.store {
        let Some(header) = name.strip_prefix("headers.") else {
            let known = matches!(name.as_str(), "endpoint_url" | "endpoint" | "token" | "anon");
            return if known && !follow {
                continue;
            } else {
                Err(Error::config(format!("no option {name:?} of a web server"))
                    .at(url)
                    .field("store_options")
                    .hint("headers are given as {\"headers\": {\"Authorization\": \"Bearer …\"}}"))
            };
        };
        let bad =
            || Error::config(format!("{header:?} is not a valid HTTP header")).at(url).field("store_options");
        let name: HeaderName = header.parse().map_err(|_| bad())?;
        headers.insert(name, HeaderValue::from_str(value).map_err(|_| bad())?);
    }
    let silence = Duration::from_secs(30).min(options.timeout);
    let redirects =
        if follow { reqwest::redirect::Policy::limited(10) } else { reqwest::redirect::Policy::none() };
    Client::builder()
        .default_headers(headers)
        .connect_timeout(Duration::from_secs(5).min(options.timeout))
        .read_timeout(silence)
        .pool_max_idle_per_host(crate::net::MOST_REQUESTS)
        .redirect(redirects)
        .http1_only()
        .user_agent(concat!("windrow/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|e| Error::config("no HTTP client can be made").at(url).caused_by(e))
}

/// The wait that `Retry-After` or `RateLimit` asks for. Dates are left to the usual wait.
pub(super) fn wait_asked(retry_after: Option<&str>, rate_limit: Option<&str>) -> Option<Duration> {
    let seconds = |text: &str| text.trim().parse::<u64>().ok().map(Duration::from_secs);
    let of_limit = || {
        let mut parts = rate_limit?.split(';').map(str::trim);
        let remaining = parts.clone().find_map(|part| part.strip_prefix("r="))?;
        (remaining == "0").then(|| parts.find_map(|part| seconds(part.strip_prefix("t=")?)))?
    };
    retry_after.and_then(seconds).or_else(of_limit)
}

/// Whether a server is not trusted, which lasts.
pub(super) fn is_of_a_certificate(said: &str) -> bool {
    said.contains("certificate")
}

/// What is wrong where no answer came.
pub(super) fn unanswered(error: reqwest::Error) -> Trouble {
    let mut said = error.to_string();
    let mut inner: &dyn std::error::Error = &error;
    while let Some(cause) = inner.source() {
        inner = cause;
    }
    let cause = inner.to_string();
    if !said.contains(&cause) {
        said = format!("{said}: {cause}");
    }
    let lasting = error.is_builder() || error.is_redirect() || is_of_a_certificate(&said);
    Trouble::new(if lasting { What::Lasting } else { What::Passing(None) }, said)
}

/// The answer, or what its status says is wrong.
pub(super) async fn checked(answer: Response) -> Result<Response, Trouble> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let wait = wait_asked(header("retry-after"), header("ratelimit"));
    // Bodies of errors may be pages; some of one says enough.
    let body = answer.text().await.unwrap_or_default();
    Err(Trouble::of_status(status.as_u16(), format!("{status} {body}"), wait))
}

/// What tells one version of an object from another: its tag, or when it was last changed.
pub(super) fn tag_of(headers: &HeaderMap) -> Option<String> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    // A weak one does not promise the same bytes.
    let tag = header("etag").filter(|tag| !tag.starts_with("W/")).map(str::to_string);
    tag.or_else(|| header("last-modified").map(|time| format!("{MODIFIED}{time}")))
}

/// The answer to a range, whose place is compared with what was asked for.
pub(super) fn got(answer: Response, range: &Range<u64>) -> Result<Got, Trouble> {
    let tag = tag_of(answer.headers());
    let total = match answer.status() {
        StatusCode::PARTIAL_CONTENT => {
            let said =
                answer.headers().get("content-range").and_then(|value| value.to_str().ok()).unwrap_or("");
            let parts = said.strip_prefix("bytes ").and_then(|rest| rest.split_once('/'));
            let place = parts.and_then(|(place, _)| place.split_once('-'));
            let start = place.and_then(|(start, _)| start.parse::<u64>().ok());
            if start.is_none() {
                return Err(Trouble::new(
                    What::NoRanges,
                    format!("the server gives a range without saying which: {said:?}"),
                ));
            }
            if start != Some(range.start) {
                return Err(Trouble::passing(format!(
                    "expected bytes {}-{}, found {said:?}",
                    range.start,
                    range.end - 1
                )));
            }
            parts.and_then(|(_, total)| total.parse().ok())
        }
        // All of it, whatever was asked for: the same where all was asked for.
        _ => match answer.content_length() {
            Some(size) if range.start == 0 && size <= range.end => Some(size),
            _ => return Err(Trouble::new(What::NoRanges, "the server answers ranges with the whole object")),
        },
    };
    let body = answer.bytes_stream().map_err(|e| Trouble::passing(unanswered(e).said));
    Ok(Got { total, tag, hash: None, checksum: None, body: Box::pin(body) })
}

/// Asks for a range, if the version is still the same.
pub(super) async fn get_range(
    client: &Client,
    url: &str,
    range: Range<u64>,
    tag: Option<&str>,
) -> Result<Response, Trouble> {
    let place = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
    if_still(client.get(url).header("range", place), tag).send().await.map_err(unanswered)
}

// Only if the version is still this one.
fn if_still(request: RequestBuilder, tag: Option<&str>) -> RequestBuilder {
    match tag.map(|tag| (tag, tag.strip_prefix(MODIFIED))) {
        None => request,
        Some((_, Some(time))) => request.header("if-unmodified-since", time),
        Some((tag, None)) => request.header("if-match", tag),
    }
}

/// A key in a URL, where it is escaped already as far as it has a `%`.
pub(super) fn escaped(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b'/'
            | b'%'
            | b'='
            | b'+'
            | b',' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

impl Http {
    fn url(&self, key: &str) -> String {
        format!("{}/{}{}", self.root, escaped(key), self.query)
    }

    fn whole(&self) -> MutexGuard<'_, HashMap<String, Whole>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The range of one byte gives the size as well; a server without ranges, and without a length, sends the file whole.
    async fn without_length(&self, key: &str) -> Result<Meta, Trouble> {
        let answer = checked(get_range(&self.client, &self.url(key), 0..1, None).await?).await?;
        let tag = tag_of(answer.headers());
        match got(answer, &(0..1)) {
            Ok(Got { total: Some(size), .. }) => Ok(Meta { key: key.to_string(), size, tag, hash: None }),
            Ok(_) | Err(Trouble { what: What::NoRanges, .. }) => self.in_one_pass(key).await,
            Err(trouble) => Err(trouble),
        }
    }

    // Held in memory as long as the store is asked. What was packed for the way is unpacked: nothing of it is read by ranges.
    async fn in_one_pass(&self, key: &str) -> Result<Meta, Trouble> {
        let too_large = || {
            Trouble::new(What::NoLength, format!("is larger than the {} bytes that may be held", self.most))
        };
        let answer = self.client.get(self.url(key)).send().await.map_err(unanswered)?;
        let answer = checked(answer).await?;
        let tag = tag_of(answer.headers());
        let encoding = coding(header(&answer, &CONTENT_ENCODING)).filter(|_| plain_name(key) == key);
        let (mut body, mut bytes) = (answer.bytes_stream(), Vec::new());
        while let Some(part) = body.next().await {
            bytes.extend_from_slice(&part.map_err(|e| Trouble::passing(unanswered(e).said))?);
            if bytes.len() as u64 > self.most {
                return Err(too_large());
            }
        }
        if let Some(encoding) = encoding {
            bytes = unpacked(&bytes, &encoding, self.most)?.ok_or_else(too_large)?;
        }
        let size = bytes.len() as u64;
        self.whole().insert(key.to_string(), Whole { bytes: bytes.into(), tag: tag.clone() });
        Ok(Meta { key: key.to_string(), size, tag, hash: None })
    }
}

// Expands bytes that were packed this way; `None` where the result is more than `most`.
fn unpacked(bytes: &[u8], encoding: &str, most: u64) -> Result<Option<Vec<u8>>, Trouble> {
    let compression = match encoding {
        "gzip" | "x-gzip" => Compression::Gzip,
        "zstd" => Compression::Zstd,
        other => return Err(Trouble::new(What::Encoded, other)),
    };
    let mut out = Vec::new();
    let read = compression
        .decoder(bytes, None)
        .and_then(|stream| stream.take(most.saturating_add(1)).read_to_end(&mut out));
    match read {
        Ok(size) => Ok((size as u64 <= most).then_some(out)),
        Err(e) => {
            Err(Trouble::passing(format!("its Content-Encoding is {encoding}, and its bytes are not: {e}")))
        }
    }
}

fn header<'a>(answer: &'a Response, name: &HeaderName) -> Option<&'a str> {
    answer.headers().get(name).and_then(|value| value.to_str().ok())
}

impl Backend for Http {
    fn head<'a>(&'a self, key: &'a str) -> Answer<'a, Meta> {
        Box::pin(async move {
            let answer = self.client.request(Method::HEAD, self.url(key)).send().await.map_err(unanswered)?;
            let answer = match answer.status() {
                // Some sign URLs for GET alone.
                StatusCode::METHOD_NOT_ALLOWED | StatusCode::FORBIDDEN | StatusCode::NOT_IMPLEMENTED => {
                    return self.without_length(key).await;
                }
                _ => checked(answer).await?,
            };
            let Some(size) = header(&answer, &CONTENT_LENGTH).and_then(|size| size.parse().ok()) else {
                return self.without_length(key).await;
            };
            Ok(Meta { key: key.to_string(), size, tag: tag_of(answer.headers()), hash: None })
        })
    }

    fn get<'a>(&'a self, key: &'a str, range: Range<u64>, tag: Option<&'a str>) -> Answer<'a, Got> {
        let whole = self.whole().get(key).cloned();
        Box::pin(async move {
            if let Some(Whole { bytes, tag }) = whole {
                let total = bytes.len() as u64;
                let part = range.start.min(total) as usize..range.end.min(total) as usize;
                let body = stream::iter([Ok(bytes.slice(part))]);
                return Ok(Got { total: Some(total), tag, hash: None, checksum: None, body: Box::pin(body) });
            }
            let answer = checked(get_range(&self.client, &self.url(key), range.clone(), tag).await?).await?;
            self.encodings.note(key, header(&answer, &CONTENT_ENCODING))?;
            got(answer, &range)
        })
    }

    fn whole<'a>(&'a self, key: &'a str, tag: Option<&'a str>) -> Answer<'a, Got> {
        Box::pin(async move {
            let request = if_still(self.client.get(self.url(key)), tag);
            let answer = checked(request.send().await.map_err(unanswered)?).await?;
            self.encodings.note(key, header(&answer, &CONTENT_ENCODING))?;
            got(answer, &(0..u64::MAX))
        })
    }

    fn encoding(&self, key: &str) -> Option<String> {
        self.encodings.of(key)
    }

    fn list<'a>(&'a self, _prefix: &'a str, _found: &'a mut Vec<Meta>) -> Answer<'a, ()> {
        let why = "a web server lists no folders, and there is no windrow.json that lists its files; name the files, or write one \
                   with `windrow manifest`";
        Box::pin(async move { Err(Trouble::new(What::NotFound, why)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_how_long_to_wait() {
        let wait = |after, limit| wait_asked(after, limit).map(|wait| wait.as_secs());
        assert_eq!(wait(Some("7"), None), Some(7));
        assert_eq!(wait(Some("Fri, 31 Dec 1999 23:59:59 GMT"), None), None);
        assert_eq!(wait(None, Some("\"api\";r=0;t=55")), Some(55));
        assert_eq!(wait(None, Some("\"api\";r=499;t=55")), None);
    }

    #[test]
    fn keys_are_escaped_once() {
        assert_eq!(escaped("a b/ü#.bin"), "a%20b/%C3%BC%23.bin");
        assert_eq!(escaped("a%20b"), "a%20b");
    }
}
