//! A folder to download into, a home with the hub's cache, and a client that is quick to try again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use windrow::download::{Report, Request, download, hub_url};
use windrow::{Error, Result};

use super::server::{REPO, Server};

/// How long a server may bring nothing: a quarter of it on a connection that is open.
pub(crate) const QUICK: Duration = Duration::from_secs(2);

pub(crate) struct Desk(TempDir);

impl Desk {
    pub(crate) fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// All of the data set, without what this machine has of a real Hub.
    pub(crate) fn request(&self, server: &Server) -> Request {
        self.request_of(server.endpoint(), &hub_url(REPO, "main").unwrap())
    }

    pub(crate) fn request_of(&self, endpoint: &str, url: &str) -> Request {
        let mut request = Request::new(url, self.path("out"));
        request.options.timeout = Some(QUICK);
        request.options.store_options.insert("endpoint_url".to_string(), endpoint.to_string());
        request.options.store_options.insert("token".to_string(), "hf_unneeded".to_string());
        (request.hub_cache, request.is_offline) = (Some(self.path("cache")), false);
        request
    }

    pub(crate) fn get(&self, server: &Server) -> Result<Report> {
        download(&self.request(server), &())
    }

    /// A download in which nothing may be missing.
    #[track_caller]
    pub(crate) fn all(&self, server: &Server) -> Report {
        let report = self.get(server).unwrap();
        assert!(report.failed.is_empty() && report.left_files == 0, "{report:?}");
        report
    }

    /// The error of the one file that failed.
    #[track_caller]
    pub(crate) fn failed(&self, server: &Server) -> Error {
        let mut report = self.get(server).unwrap();
        assert_eq!(report.failed.len(), 1, "{report:?}");
        report.failed.remove(0).error
    }

    /// The files that a reader sees.
    pub(crate) fn seen(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = self.below("out");
        files.retain(|name, _| !name.starts_with(".windrow-download"));
        files
    }

    /// The files of the hidden folder that end in this.
    pub(crate) fn hidden(&self, end: &str) -> Vec<Vec<u8>> {
        let files = self.below("out/.windrow-download");
        files.into_iter().filter(|(name, _)| name.ends_with(end)).map(|(_, content)| content).collect()
    }

    pub(crate) fn below(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.path(name);
        let mut files = BTreeMap::new();
        collect(&root, &root, &mut files);
        files
    }
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            files.insert(path.strip_prefix(root).unwrap().display().to_string(), fs::read(&path).unwrap());
        }
    }
}
