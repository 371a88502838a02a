//! Which hub, with which token and cache: what the environment says.

use std::path::PathBuf;

use hf_hub::Cache;
use windrow_core::{Error, Result};

use crate::http::Http;
use crate::retry::Patience;

const ENDPOINT: &str = "https://huggingface.co";

/// A hub to ask, and what this machine already has of it.
pub struct Hub {
    pub(crate) endpoint: String,
    pub(crate) token: Option<String>,
    pub(crate) cache: Cache,
    pub(crate) is_offline: bool,
    pub(crate) patience: Patience,
}

impl Hub {
    /// The hub that the environment names.
    ///
    /// `HF_ENDPOINT` (huggingface.co), `HF_HOME` (`~/.cache/huggingface`) with the token and the cache, `HF_HUB_CACHE` for
    /// another place of the cache, `HF_TOKEN`, `HF_HUB_OFFLINE`.
    ///
    /// # Errors
    /// `Config` when the endpoint is not an address, or no home folder is known.
    pub fn from_env() -> Result<Hub> {
        Hub::from_vars(|name| std::env::var(name).ok())
    }

    fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Hub> {
        let var = |name: &str| var(name).map(|v| v.trim().to_string()).filter(|v| !v.is_empty());
        let home = var("HF_HOME").map(PathBuf::from).or_else(|| {
            let caches = var("XDG_CACHE_HOME").map(PathBuf::from);
            Some(caches.or_else(|| Some(PathBuf::from(var("HOME")?).join(".cache")))?.join("huggingface"))
        });
        let home = home.ok_or_else(|| {
            Error::config("no folder for the hub's cache is known").hint("set HF_HOME or HOME")
        })?;
        let mut hub = Hub::new(&var("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_string()), home)?;
        if let Some(cache) = var("HF_HUB_CACHE") {
            hub.cache = Cache::new(cache.into());
        }
        // The first is today's name, the others are those of older clients and pages.
        let names = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN"];
        let token = names.into_iter().find_map(var);
        hub.token = token.or(hub.token);
        let is_true = |v: String| ["1", "on", "yes", "true"].contains(&v.to_ascii_lowercase().as_str());
        hub.is_offline = var("HF_HUB_OFFLINE").is_some_and(is_true);
        Ok(hub)
    }

    /// The hub at this address, with the cache and the token that are in `home`.
    ///
    /// # Errors
    /// `Config` when the endpoint is not an address.
    pub fn new(endpoint: &str, home: impl Into<PathBuf>) -> Result<Hub> {
        let cache = Cache::new(home.into().join("hub"));
        let hub = Hub {
            endpoint: endpoint.trim_end_matches('/').to_string(),
            token: cache.token(),
            cache,
            is_offline: false,
            patience: Patience::default(),
        };
        hub.http()?;
        Ok(hub)
    }

    /// Sends this token to the endpoint, and to nobody else.
    #[must_use]
    pub fn token(mut self, token: Option<String>) -> Hub {
        self.token = token;
        self
    }

    /// Opens no connection: what is here must do.
    #[must_use]
    pub fn offline(mut self, is_offline: bool) -> Hub {
        self.is_offline = is_offline;
        self
    }

    /// How long to try where a server or the way to it fails.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Hub {
        self.patience = patience;
        self
    }

    pub(crate) fn http(&self) -> Result<Http> {
        Http::new(&self.endpoint, self.token.as_deref(), &self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(vars: &[(&str, &str)]) -> Hub {
        let var = |name: &str| vars.iter().find(|v| v.0 == name).map(|v| v.1.to_string());
        Hub::from_vars(var).unwrap()
    }

    #[test]
    fn the_environment_says_which_hub() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().to_str().unwrap();
        let plain = hub(&[("HOME", path)]);
        assert_eq!((plain.endpoint.as_str(), plain.is_offline), (ENDPOINT, false));
        assert_eq!(plain.cache.path(), &home.path().join(".cache/huggingface/hub"));
        assert_eq!(plain.token, None);

        std::fs::write(home.path().join("token"), "hf_file\n").unwrap();
        assert_eq!(hub(&[("HF_HOME", path)]).token.as_deref(), Some("hf_file"));
        let said = [("HF_HOME", path), ("HF_TOKEN", "hf_said"), ("HF_ENDPOINT", "http://127.0.0.1:9/")];
        assert_eq!(hub(&said).token.as_deref(), Some("hf_said"));
        assert_eq!(hub(&said).endpoint, "http://127.0.0.1:9");
        assert_eq!(hub(&[("HF_HOME", path), ("HF_HUB_CACHE", "/c")]).cache.path().to_str(), Some("/c"));

        for (text, is) in [("1", true), ("True", true), ("0", false), ("", false)] {
            assert_eq!(hub(&[("HF_HOME", path), ("HF_HUB_OFFLINE", text)]).is_offline, is, "{text:?}");
        }
    }

    #[test]
    fn an_endpoint_is_an_address() {
        for bad in ["", "huggingface.co", "ftp://a", "file:///etc", "http://user@host"] {
            assert_eq!(
                Hub::new(bad, "/h").err().map(|e| e.kind()),
                Some(windrow_core::Kind::Config),
                "{bad}"
            );
        }
    }
}
