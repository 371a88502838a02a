//! URLs of data: which store, and which key within it.

use std::borrow::Cow;

use windrow_core::{Error, Result};

/// The stores that URLs name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `s3://bucket/key`: Amazon S3 and what speaks its protocol.
    S3,
    /// `gs://bucket/key`: Google Cloud Storage.
    Gs,
    /// `az://container/key`: Azure Blob Storage.
    Az,
    /// `http://` and `https://`: any web server.
    Http,
    /// `hf://datasets/owner/name[@revision]/path`: the Hugging Face Hub.
    Hf,
}

/// A URL, taken apart: the place that holds the keys, and a key in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Which store.
    pub scheme: Scheme,
    /// All before the key: `s3://bucket`, `https://host`, `hf://datasets/owner/name@revision`.
    pub root: String,
    /// The key of an object or of a folder, without `/` at its ends; `""` for the root.
    pub key: String,
    /// What a URL has behind `?`, with it; only of `http`.
    pub query: String,
}

impl Location {
    /// Takes a URL apart; `None` for what is no URL, or one of a file on this machine.
    ///
    /// # Errors
    /// `Unsupported` for a scheme that nothing here reads; `Config` where the bucket, host or data set is missing.
    ///
    /// ```
    /// use windrow_remote::Location;
    ///
    /// let found = Location::of("s3://corpus/tokens/train.bin")?.unwrap();
    /// assert_eq!((found.root.as_str(), found.key.as_str()), ("s3://corpus", "tokens/train.bin"));
    /// assert!(Location::of("tokens/train.bin")?.is_none());
    /// # Ok::<(), windrow_core::Error>(())
    /// ```
    pub fn of(url: &str) -> Result<Option<Location>> {
        let Some((name, rest)) = url.split_once("://") else { return Ok(None) };
        let scheme = match name {
            "file" => return Ok(None),
            "s3" | "s3a" => Scheme::S3,
            "gs" => Scheme::Gs,
            "az" | "azure" => Scheme::Az,
            "http" | "https" => Scheme::Http,
            "hf" => Scheme::Hf,
            _ => {
                return Err(Error::unsupported(format!("{name}:// URLs are not read"))
                    .at(url)
                    .hint("expected s3://, gs://, az://, http://, https:// or hf://; mount other stores, or copy the data"));
            }
        };
        let (rest, query) = match (scheme, rest.split_once('?')) {
            (Scheme::Http, Some((rest, query))) => (rest, format!("?{query}")),
            _ => (rest, String::new()),
        };
        let on_hub;
        let parts = match scheme {
            Scheme::Hf => {
                on_hub = with_whole_revision(rest);
                of_hub(&on_hub, url)?
            }
            _ => rest.split_once('/').unwrap_or((rest, "")),
        };
        let (place, key) = (parts.0, parts.1.trim_matches('/'));
        if place.is_empty() {
            let what = if scheme == Scheme::Http { "host" } else { "bucket" };
            return Err(Error::config(format!("the URL names no {what}")).at(url));
        }
        if key.split('/').any(|part| part == "." || part == "..") || key.contains("//") {
            return Err(Error::config("a URL with . or .. or an empty name between its slashes").at(url));
        }
        let root = format!("{}://{place}", if name == "s3a" { "s3" } else { name });
        Ok(Some(Location { scheme, root, key: key.to_string(), query }))
    }

    /// That the store takes objects; `url` is named in the error.
    ///
    /// # Errors
    /// `Unsupported` for web servers and the Hub, which says what to do.
    pub fn check_writable(&self, url: &str) -> Result<()> {
        let (what, hint) = match self.scheme {
            Scheme::S3 | Scheme::Gs | Scheme::Az => return Ok(()),
            Scheme::Http => (
                "a web server",
                "write to a path of this machine, and copy it to where the server has its files",
            ),
            Scheme::Hf => (
                "the Hugging Face Hub",
                "write to a path of this machine, then `huggingface-cli upload OWNER/NAME FOLDER --repo-type dataset`",
            ),
        };
        Err(Error::unsupported(format!("nothing is written to {what}")).at(url).hint(hint))
    }
}

// The Hub's own revisions have slashes, `refs/convert/parquet` and `refs/pr/3`, which are escaped in the root. Other tools write the first
// as `~parquet`.
fn with_whole_revision(rest: &str) -> Cow<'_, str> {
    if let Some((before, path)) = rest.split_once("@~parquet")
        && before.matches('/').count() == 2
        && (path.is_empty() || path.starts_with('/'))
    {
        return Cow::Owned(format!("{before}@refs%2Fconvert%2Fparquet{path}"));
    }
    let Some((before, after)) = rest.split_once("@refs/") else { return Cow::Borrowed(rest) };
    let mut parts = after.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(kind @ ("convert" | "pr")), Some(name), path)
            if before.matches('/').count() == 2 && !name.is_empty() =>
        {
            let path = path.map_or(String::new(), |path| format!("/{path}"));
            Cow::Owned(format!("{before}@refs%2F{kind}%2F{name}{path}"))
        }
        _ => Cow::Borrowed(rest),
    }
}

// hf://datasets/owner/name@revision/path: the data set is the place, and the rest the key.
fn of_hub<'u>(rest: &'u str, url: &str) -> Result<(&'u str, &'u str)> {
    let wrong = || {
        Error::config("expected hf://datasets/owner/name[@revision]/path").at(url).hint(
            "models and spaces hold no data sets; a data set's files are below hf://datasets/owner/name",
        )
    };
    let inside = rest.strip_prefix("datasets/").ok_or_else(wrong)?;
    let mut slashes = inside.match_indices('/').map(|(at, _)| at);
    let owner = slashes.next().ok_or_else(wrong)?;
    let end = slashes.next().unwrap_or(inside.len());
    let name = &inside[owner + 1..end];
    if owner == 0 || name.is_empty() || name.starts_with('@') {
        return Err(wrong());
    }
    let cut = "datasets/".len() + end;
    Ok((&rest[..cut], rest.get(cut + 1..).unwrap_or("")))
}

/// What a URL is without its signature: that of a file is another one each time it is signed, and the file is the same.
pub(crate) fn without_signature(url: &str) -> Cow<'_, str> {
    let Some((before, query)) = url.split_once('?') else { return Cow::Borrowed(url) };
    if !is_signed(url) {
        return Cow::Borrowed(url);
    }
    let is_of_signature = |part: &&str| {
        let name = name_of(part);
        SIGNING.contains(&name.as_str()) || ["x-amz-", "x-goog-"].iter().any(|start| name.starts_with(start))
    };
    let rest: Vec<&str> = query.split('&').filter(|part| !is_of_signature(part)).collect();
    Cow::Owned(if rest.is_empty() { before.to_string() } else { format!("{before}?{}", rest.join("&")) })
}

/// Whether a URL has a signature in its query, as AWS, Google, Azure and CloudFront call theirs.
pub(crate) fn is_signed(url: &str) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let signatures = ["x-amz-signature", "x-goog-signature", "sig", "signature"];
    query.split('&').any(|part| signatures.contains(&name_of(part).as_str()))
}

// What else belongs to a signature: of Azure, and of CloudFront and older ones.
const SIGNING: [&str; 23] = [
    "sig",
    "se",
    "sp",
    "sv",
    "sr",
    "st",
    "spr",
    "sip",
    "ss",
    "srt",
    "skoid",
    "sktid",
    "skt",
    "ske",
    "sks",
    "skv",
    "signature",
    "expires",
    "policy",
    "key-pair-id",
    "awsaccesskeyid",
    "googleaccessid",
    "hash-algorithm",
];

fn name_of(part: &str) -> String {
    part.split('=').next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(url: &str) -> (String, String) {
        let found = Location::of(url).unwrap().unwrap();
        (found.root, found.key)
    }

    #[test]
    fn a_signature_is_no_part_of_what_a_file_is() {
        for (url, without) in [
            ("https://h/x", "https://h/x"),
            ("https://h/x?download=true&se=1", "https://h/x?download=true&se=1"),
            ("https://h/x?X-Amz-Date=1&X-Amz-Signature=0a", "https://h/x"),
            ("https://h/x?versionId=7&X-Amz-Signature=0a", "https://h/x?versionId=7"),
            ("https://h/x?sv=2&se=3&sr=b&sp=r&sig=0a%3D&snapshot=4", "https://h/x?snapshot=4"),
            ("https://h/x?Expires=1&Signature=0a&Key-Pair-Id=K", "https://h/x"),
        ] {
            assert_eq!(without_signature(url), without);
        }
    }

    #[test]
    fn urls_are_taken_apart() {
        for (url, root, key) in [
            ("s3://b", "s3://b", ""),
            ("s3a://b/x/", "s3://b", "x"),
            ("gs://b/x/y.bin", "gs://b", "x/y.bin"),
            ("https://host:8080/a/b", "https://host:8080", "a/b"),
            ("hf://datasets/o/n", "hf://datasets/o/n", ""),
            ("hf://datasets/o/n@main/train/0.parquet", "hf://datasets/o/n@main", "train/0.parquet"),
            ("hf://datasets/o/n@refs/convert/parquet", "hf://datasets/o/n@refs%2Fconvert%2Fparquet", ""),
            ("hf://datasets/o/n@~parquet/a", "hf://datasets/o/n@refs%2Fconvert%2Fparquet", "a"),
            ("hf://datasets/o/n@~parquets/a", "hf://datasets/o/n@~parquets", "a"),
            ("hf://datasets/o/n@refs/pr/3/a/b.bin", "hf://datasets/o/n@refs%2Fpr%2F3", "a/b.bin"),
            ("hf://datasets/o/n@refs%2Fpr%2F3/a", "hf://datasets/o/n@refs%2Fpr%2F3", "a"),
            ("hf://datasets/o/n@refs/a", "hf://datasets/o/n@refs", "a"),
            ("hf://datasets/o/n/x@refs/pr/3", "hf://datasets/o/n", "x@refs/pr/3"),
        ] {
            assert_eq!(parts(url), (root.to_string(), key.to_string()), "{url}");
        }
        assert_eq!(Location::of("https://h/x?sig=1").unwrap().unwrap().query, "?sig=1");
        for path in ["a/b", "/a", "file:///a"] {
            assert!(Location::of(path).unwrap().is_none());
        }
        for bad in [
            "ftp://h/x",
            "s3:///x",
            "s3://b/../x",
            "hf://o/n",
            "hf://datasets/o",
            "hf://datasets/o/@x",
            "s3://b/a//c",
        ] {
            assert!(Location::of(bad).is_err(), "{bad}");
        }
    }
}
