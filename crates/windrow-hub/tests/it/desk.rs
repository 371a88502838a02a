//! A folder to download into, a home with the hub's cache, and a client that is quick to try again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use windrow_core::{Error, Result};
use windrow_hub::{Hub, Patience, RepoName, Report, Request};

use crate::server::{REPO, Server};

pub(crate) const QUICK: Patience =
    Patience { retries: 4, first_wait: Duration::from_millis(1), silence: Duration::from_millis(300) };

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

    pub(crate) fn hub(&self, server: &Server) -> Hub {
        Hub::new(server.endpoint(), self.path("home")).unwrap().patience(QUICK)
    }

    pub(crate) fn request(&self) -> Request {
        Request::new(RepoName::parse(REPO).unwrap(), self.path("out"))
    }

    pub(crate) fn get(&self, server: &Server) -> Result<Report> {
        self.hub(server).download(&self.request(), &())
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
