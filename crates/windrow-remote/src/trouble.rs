//! What went wrong with one request, and whether asking again may help.

use std::time::Duration;

use windrow_core::{Error, Kind};

/// A request that failed.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) what: What,
    /// In words: the status and what the server said, or what broke.
    pub(crate) said: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// It may work later: after this wait, where the server said so.
    Passing(Option<Duration>),
    NotFound,
    /// 401, 403.
    Denied,
    /// The object is another one by now.
    Changed,
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
        Trouble { what, said: said.into() }
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
        Trouble::new(what, said)
    }

    /// The error for a person, of what was asked of `url`.
    pub(crate) fn into_error(self, doing: &str, url: &str) -> Error {
        let said = shortened(&self.said);
        match self.what {
            What::NotFound => not_found(&said).at(url),
            What::Denied => {
                Error::new(Kind::Io, format!("cannot {doing}: {said}")).at(url).hint(denied_hint(&said, url))
            }
            What::Changed => Error::new(Kind::Stale, "the object was replaced since it was opened")
                .at(url)
                .hint("open the data again; its order continues only if the data is the same")
                .caused_by(std::io::Error::other(said)),
            What::NoRanges => {
                Error::unsupported("the server ignores ranges, and the object does not fit into the cache")
                    .at(url)
                    .hint("raise @cache_limit@, or copy the data to a store that reads by ranges")
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

fn denied_hint(said: &str, url: &str) -> String {
    let has = |word: &str| said.contains(word);
    if has("ExpiredToken") || has("token has expired") || has("TokenRefreshRequired") {
        return "the credentials have expired: renew them and start again; the state still fits".to_string();
    }
    if has("RequestTimeTooSkewed") {
        return "the clock of this machine is wrong".to_string();
    }
    if has("AuthorizationHeaderMalformed") || has("PermanentRedirect") {
        return "the bucket is in another region: set AWS_REGION or @store_options={\"region\": …}@"
            .to_string();
    }
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    match scheme {
        "s3" => "credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or the instance's role; \
                 without any, requests are unsigned, which only public buckets answer",
        "gs" => "credentials come from GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login` or the instance",
        "az" | "azure" => "credentials come from AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME with a key or token",
        "hf" => "log in with `huggingface-cli login`, or set HF_TOKEN; a gated data set must be asked for on its page",
        _ => "give what the server asks for, for example @store_options={\"headers\": {\"Authorization\": …}}@",
    }
    .to_string()
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
