//! What is here already: the hub's cache on this machine, and working without a network.

use std::os::unix::fs::symlink;

use windrow::Kind;
use windrow::download::{Report, download};

use super::desk::Desk;
use super::server::{COMMIT, Remote, Server, large, noise, small};

const CACHED: &str = "cache/datasets--some--data";

fn files() -> Vec<Remote> {
    vec![small("README.md", "# data\n"), large("a/x.bin", noise(1000)), large("b/y.bin", noise(2000))]
}

/// Puts files into the hub's cache as its own clients do.
fn cache(desk: &Desk, files: &[Remote]) {
    desk.write(&format!("{CACHED}/refs/main"), COMMIT);
    for file in files {
        let name = if file.is_large { file.sha256() } else { file.git() };
        desk.write(&format!("{CACHED}/blobs/{name}"), &file.content);
        let link = desk.path(&format!("{CACHED}/snapshots/{COMMIT}/{}", file.path));
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        let up = "../".repeat(file.path.matches('/').count() + 2);
        symlink(format!("{up}blobs/{name}"), link).unwrap();
    }
}

fn offline(desk: &Desk, server: &Server) -> windrow::Result<Report> {
    let mut request = desk.request(server);
    request.is_offline = true;
    download(&request, &())
}

#[test]
fn what_the_cache_has_is_not_downloaded() {
    let (desk, server) = (Desk::new(), Server::good(files()));
    cache(&desk, &files()[..2]);
    let report = desk.all(&server);
    assert_eq!((report.cached_files, report.downloaded_files), (2, 1));
    assert_eq!(desk.seen().len(), 3);
    assert!(server.log().iter().all(|seen| !seen.target.contains("x.bin")));
}

#[test]
fn a_poisoned_cache_is_not_served() {
    let (desk, server) = (Desk::new(), Server::good(files()));
    cache(&desk, &files());
    let mut wrong = noise(1000);
    wrong[500] ^= 1;
    desk.write(&format!("{CACHED}/blobs/{}", files()[1].sha256()), wrong);
    let report = desk.all(&server);
    assert_eq!((report.cached_files, report.downloaded_files), (2, 1));
    assert_eq!(desk.seen()["a/x.bin"], noise(1000));
}

#[test]
fn offline_the_cache_must_do_and_no_connection_is_opened() {
    let (desk, server) = (Desk::new(), Server::good(files()));
    cache(&desk, &files());
    assert_eq!(offline(&desk, &server).unwrap().cached_files, 3);
    let expected = files().into_iter().map(|f| (f.path, f.content)).collect();
    assert_eq!(desk.seen(), expected);
    // Again, from what is in the folder.
    std::fs::remove_dir_all(desk.path("cache")).unwrap();
    assert_eq!(offline(&desk, &server).unwrap().unchanged_files, 3);
    assert!(server.log().is_empty());
}

#[test]
fn offline_what_is_missing_is_named() {
    let (desk, server) = (Desk::new(), Server::good(files()));
    let e = offline(&desk, &server).unwrap_err();
    assert_eq!(e.kind(), Kind::NotFound);
    assert!(e.message().contains("HF_HUB_OFFLINE") && e.message().contains("some/data"), "{e}");
    assert!(server.log().is_empty() && !desk.path("out").exists());

    desk.all(&server);
    let n = server.log().len();
    std::fs::remove_file(desk.path("out/a/x.bin")).unwrap();
    let report = offline(&desk, &server).unwrap();
    assert_eq!((report.unchanged_files, report.failed.len()), (2, 1));
    assert_eq!(report.failed[0].path, "a/x.bin");
    assert_eq!(report.failed[0].error.kind(), Kind::NotFound);
    assert_eq!(server.log().len(), n);
}
