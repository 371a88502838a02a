//! What went wrong with one request, and whether asking again may help.

use std::time::Duration;

use windrow_core::{Error, Kind};

use crate::url::is_signed;

/// A request that failed.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) what: What,
    /// In words: the status and what the server said, or what broke.
    pub(crate) said: String,
    /// The region that the bucket is in, where the store said that it is another one.
    pub(crate) region: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// It may work later: after this wait, where the server said so.
    Passing(Option<Duration>),
    NotFound,
    /// 401, 403.
    Denied,
    /// The credentials were right once.
    Expired,
    /// The clock of this machine is wrong.
    Skewed,
    /// The bucket is in another region.
    Elsewhere,
    /// The object is another one by now.
    Changed,
    /// The bytes that came are not those that the store has a checksum of.
    Damaged,
    /// The server gives the whole object whatever range is asked for.
    NoRanges,
    /// The server does not say how large an object is, and gives no ranges.
    NoLength,
    /// The bytes are packed by a coding that is not undone here, which [`Trouble::said`] names.
    Encoded,
    /// An object is there already.
    Exists,
    /// The store does not know what is asked of it.
    NotImplemented,
    /// The answer makes no sense.
    Senseless,
    /// Asking again gives the same.
    Lasting,
}

impl Trouble {
    pub(crate) fn new(what: What, said: impl Into<String>) -> Trouble {
        Trouble { what, said: said.into(), region: None }
    }

    pub(crate) fn passing(said: impl Into<String>) -> Trouble {
        Trouble::new(What::Passing(None), said)
    }

    /// What a status says.
    pub(crate) fn of_status(status: u16, said: impl Into<String>, wait: Option<Duration>) -> Trouble {
        let what = match status {
            408 | 429 | 500 | 502 | 503 | 504 => What::Passing(wait),
            404 | 410 => What::NotFound,
            401 | 403 => What::Denied,
            409 | 412 | 416 => What::Changed,
            501 => What::NotImplemented,
            _ => What::Lasting,
        };
        Trouble::new(what, said).by_code()
    }

    /// This trouble by the code in what was said, which tells more than a status: stores use 400, 401, 403 and 301 for one thing.
    pub(crate) fn by_code(mut self) -> Trouble {
        let has = |words: &[&str]| words.iter().any(|word| self.said.contains(word));
        let what = match self.what {
            What::Denied | What::Lasting if has(&EXPIRED) => What::Expired,
            What::Denied | What::Lasting if has(&["RequestTimeTooSkewed"]) => What::Skewed,
            What::Denied | What::Lasting if has(&ELSEWHERE) => What::Elsewhere,
            what => what,
        };
        if what == What::Elsewhere && self.region.is_none() {
            let named = self.said.split_once("<Region>").and_then(|(_, rest)| rest.split_once("</Region>"));
            self.region = named.map(|(region, _)| region.to_string());
        }
        self.what = what;
        self
    }

    /// The error for a person, of what was asked of `url`.
    pub(crate) fn into_error(self, doing: &str, url: &str) -> Error {
        let said = shortened(&self.said);
        match self.what {
            What::NotFound => not_found(&said).at(url),
            What::Denied | What::Expired | What::Skewed | What::Elsewhere => {
                let hint = match self.what {
                    _ if is_signed(url) => SIGN_AGAIN.to_string(),
                    What::Expired => {
                        "the credentials have expired: renew them and start again; the state still fits".to_string()
                    }
                    What::Skewed => "the clock of this machine is wrong: set it, for example by NTP".to_string(),
                    What::Elsewhere => elsewhere_hint(self.region.as_deref()),
                    _ => credentials_hint(url).to_string(),
                };
                Error::new(Kind::Io, format!("cannot {doing}: {said}")).at(url).hint(hint)
            }
            What::Changed => Error::new(Kind::Stale, "the object was replaced since it was opened")
                .at(url)
                .hint("open the data again; its order continues only if the data is the same")
                .caused_by(std::io::Error::other(said)),
            What::Damaged => Error::corrupt(format!("the bytes that came are not those of the store's checksum: {said}"))
                .at(url)
                .hint(
                    "the network, a proxy or the store changes them: fetch it with another program and compare, or put it there again",
                ),
            What::NoRanges => {
                Error::unsupported("the server gives no ranges, and the object does not fit into the cache or memory")
                    .at(url)
                    .hint("raise @cache_limit@ or @read_ahead@, or copy the data to a store that reads by ranges")
            }
            What::NoLength => Error::unsupported(format!(
                "the server gives no ranges and does not say how large the file is (no Content-Length), and {said}"
            ))
            .at(url)
            .hint(
                "raise @read_ahead@ to hold it in memory; or serve the file with its length and by ranges, or download it and open the copy",
            ),
            What::Encoded => Error::unsupported(format!("it is kept or sent with Content-Encoding: {said}"))
                .at(url)
                .hint(
                    "its bytes are packed: have the server send it as it is, put it there without Content-Encoding, or download and \
                     unpack it (`curl --compressed`)",
                ),
            What::Passing(_) => Error::new(Kind::Io, format!("cannot {doing}: {said}"))
                .at(url)
                .hint("the store or the network is failing; a longer @timeout@ waits longer"),
            What::Exists => exists(url),
            What::Senseless => {
                Error::corrupt(format!("cannot {doing}: {said}")).at(url).hint("is HF_ENDPOINT a Hub?")
            }
            What::NotImplemented | What::Lasting => {
                let error = Error::new(Kind::Io, format!("cannot {doing}: {said}")).at(url);
                if said.contains("certificate") { error.hint(
                        "this machine does not trust the server; SSL_CERT_FILE names a file of the certificates that it trusts",
                    ) } else { error }
            }
        }
    }
}

/// The error of an object that is there already, with other bytes than those that were to be put there.
pub(crate) fn exists(url: &str) -> Error {
    Error::new(Kind::Exists, "another object is there already")
        .at(url)
        .hint("write elsewhere, or remove it with the store's own tools")
}

fn not_found(said: &str) -> Error {
    let error = Error::not_found(format!("not found: {said}"));
    match said {
        _ if said.contains("NoSuchBucket") => error.hint(
            "there is no bucket of this name at this endpoint; the region or endpoint_url may be another",
        ),
        _ if said.starts_with("the Hub has no data set") => {
            error.hint("is the name right? A private one needs HF_TOKEN; models are not data sets")
        }
        _ => error,
    }
}

/// What stores say of credentials that were right once.
const EXPIRED: [&str; 3] = ["ExpiredToken", "token has expired", "TokenRefreshRequired"];
/// And of a region that is not the bucket's.
const ELSEWHERE: [&str; 4] = [
    "AuthorizationHeaderMalformed",
    "PermanentRedirect",
    "IllegalLocationConstraintException",
    "redirect without LOCATION",
];

const SIGN_AGAIN: &str = "the URL is signed, and its signature has expired or is not for this: sign it again; what was fetched is kept, and \
                          the state still fits";

fn elsewhere_hint(region: Option<&str>) -> String {
    match region {
        Some(region) => format!(
            "the bucket is in the region {region}: set AWS_REGION={region} or @store_options={{\"region\": …}}@"
        ),
        None => {
            "the bucket is in another region: set AWS_REGION or @store_options={\"region\": …}@".to_string()
        }
    }
}

fn credentials_hint(url: &str) -> &'static str {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    match scheme {
        "s3" => {
            "credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or the instance's role; \
                 without any, requests are unsigned, which only public buckets answer"
        }
        "gs" => {
            "credentials come from GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login` or the instance"
        }
        "az" | "azure" => {
            "credentials come from AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME with a key or token"
        }
        "hf" => {
            "log in with `huggingface-cli login`, or set HF_TOKEN; a gated data set must be asked for on its page"
        }
        _ => {
            "give what the server asks for, for example @store_options={\"headers\": {\"Authorization\": …}}@"
        }
    }
}

/// Bodies of errors may be pages of HTML.
fn shortened(said: &str) -> String {
    const MOST: usize = 400;
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &flat[..end]),
        None => flat,
    }
}
