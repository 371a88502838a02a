//! What a hub has arrives as it is; what is here already is not asked for again.

use std::fs;
use std::sync::Mutex;

use windrow::Kind;
use windrow::download::{choose, download};
use windrow::prepare::{Progress, Watch};

use super::desk::Desk;
use super::server::{Fault, Remote, Server, large, noise, small};

fn files() -> Vec<Remote> {
    vec![
        small(".gitattributes", "*.bin filter=lfs\n"),
        small("README.md", "# data\n"),
        small("a/empty", ""),
        small("a b/ü.json", "{}"),
        large("a/x.bin", noise(700_000)),
        large("b/same.bin", noise(700_000)),
        large("b/y.bin", noise(3)),
    ]
}

#[test]
fn every_file_arrives_as_it_is() {
    let (desk, mut files) = (Desk::new(), files());
    files.retain(|f| f.path.is_ascii());
    let server = Server::good(files.clone());
    let report = desk.all(&server);
    assert_eq!((report.files, report.downloaded_files), (6, 6));
    assert_eq!(report.bytes, 1_400_000 + 3 + 17 + 7);
    let expected = files.into_iter().map(|f| (f.path, f.content)).collect();
    assert_eq!(desk.seen(), expected);
    assert!(desk.hidden(".part").is_empty());
}

#[test]
fn odd_names_are_escaped_on_the_way() {
    let desk = Desk::new();
    let server = Server::good(vec![small("a b/x y.json", "{}")]);
    desk.all(&server);
    assert_eq!(desk.seen().keys().collect::<Vec<_>>(), ["a b/x y.json"]);
}

#[test]
fn a_rerun_asks_for_the_listing_alone() {
    let desk = Desk::new();
    let server = Server::good(vec![small("README.md", "# data\n"), large("x.bin", noise(1000))]);
    desk.all(&server);
    let n = server.n_content();
    assert_eq!(desk.all(&server).unchanged_files, 2);
    assert_eq!(server.n_content(), n);

    // Without the record the content itself says that it is right.
    fs::remove_dir_all(desk.path("out/.windrow-download")).unwrap();
    assert_eq!(desk.all(&server).unchanged_files, 2);
    assert_eq!(server.n_content(), n);

    // What is gone comes again.
    fs::remove_file(desk.path("out/x.bin")).unwrap();
    let report = desk.all(&server);
    assert_eq!((report.unchanged_files, report.downloaded_files), (1, 1));
    assert_eq!(desk.seen()["x.bin"], noise(1000));
}

#[test]
fn patterns_choose_files() {
    let desk = Desk::new();
    let server = Server::good(vec![
        small("README.md", "r"),
        large("a/x.bin", "1"),
        large("a/x.lock", "2"),
        large("b/y.bin", "3"),
    ]);
    let mut request = desk.request(&server);
    request.include = vec!["a/**".to_string()];
    request.exclude = vec!["**/*.lock".to_string()];
    let chosen = choose(&request, &()).unwrap();
    assert_eq!(chosen.files.iter().map(|f| (f.path.as_str(), f.size)).collect::<Vec<_>>(), [("a/x.bin", 1)]);
    assert!(!desk.path("out").exists());
    download(&request, &()).unwrap();
    assert_eq!(desk.seen().keys().collect::<Vec<_>>(), ["a/x.bin"]);

    request.include = vec!["c/**".to_string()];
    let e = download(&request, &()).unwrap_err();
    assert_eq!(e.kind(), Kind::NotFound);
    assert!(e.hint_text().unwrap().contains("a, b"), "{e}");
}

#[test]
fn a_newer_commit_replaces_what_was_downloaded_and_nothing_else() {
    let desk = Desk::new();
    desk.all(&Server::good(vec![small("a", "1"), small("b", "1")]));
    desk.write("out/b", "mine");
    let newer = Server::good(vec![small("a", "22"), small("b", "22")]);
    let e = desk.failed(&newer);
    assert_eq!(e.kind(), Kind::Exists);
    assert!(e.hint_text().unwrap().contains(".overwrite(true)"), "{e}");
    assert_eq!(desk.seen()["a"], b"22");
    assert_eq!(desk.seen()["b"], b"mine");

    let mut request = desk.request(&newer);
    request.overwrite = true;
    assert!(download(&request, &()).unwrap().failed.is_empty());
    assert_eq!(desk.seen()["b"], b"22");
}

#[test]
fn an_update_that_was_stopped_is_gone_on_with() {
    let desk = Desk::new();
    desk.all(&Server::good(vec![large("a", noise(1000)), large("b", noise(1000))]));
    let newer = [large("a", noise(2000)), large("b", noise(3000))];
    let cut = Server::faulty(newer.to_vec(), |seen| match (seen.is_cdn, seen.nth) {
        (true, 1) => Fault::Cut(500),
        (true, _) => Fault::Status(404, ""),
        _ => Fault::None,
    });
    assert_eq!(desk.get(&cut).unwrap().done_files(), 0);
    // The old files stand until the new ones are whole.
    assert_eq!(desk.seen().into_values().collect::<Vec<_>>(), [noise(1000), noise(1000)]);
    let report = desk.all(&Server::good(newer.to_vec()));
    assert_eq!((report.downloaded_files, report.resumed_bytes), (2, 1000));
    assert_eq!(desk.seen().into_values().collect::<Vec<_>>(), [noise(2000), noise(3000)]);
}

#[test]
fn another_choice_of_files_keeps_what_the_first_had_begun() {
    let desk = Desk::new();
    let files = vec![large("a", noise(1000)), large("b", noise(5))];
    let cut = Server::faulty(files.clone(), |seen| match (seen.is_cdn, seen.nth) {
        (true, 1) => Fault::Cut(500),
        (true, _) => Fault::Status(404, ""),
        _ => Fault::None,
    });
    let of = |server: &Server, path: &str| {
        let mut request = desk.request(server);
        request.include = vec![path.to_string()];
        download(&request, &()).unwrap()
    };
    assert_eq!(of(&cut, "a").failed.len(), 1);
    let server = Server::good(files);
    assert_eq!(of(&server, "b").done_files(), 1);
    assert_eq!(of(&server, "a").resumed_bytes, 500);
    assert!(desk.hidden(".part").is_empty());
}

#[test]
fn progress_goes_up_to_the_whole() {
    struct Heard(Mutex<Vec<Progress>>);
    impl Watch for Heard {
        fn progress(&self, now: Progress) {
            self.0.lock().unwrap().push(now);
        }
    }
    let desk = Desk::new();
    let server = Server::good(vec![large("x.bin", noise(100_000)), large("y.bin", noise(5))]);
    let heard = Heard(Mutex::default());
    download(&desk.request(&server), &heard).unwrap();
    let heard = heard.0.into_inner().unwrap();
    let last = heard.last().unwrap();
    assert_eq!((last.done_bytes, last.total_bytes, last.records), (100_005, 100_005, 2));
}

#[test]
fn two_runs_do_not_write_into_one_folder() {
    struct Second<'a>(&'a Desk, &'a Server, Mutex<Vec<Kind>>);
    impl Watch for Second<'_> {
        fn progress(&self, _: Progress) {
            let second = self.0.get(self.1).unwrap_err();
            self.2.lock().unwrap().push(second.kind());
        }
    }
    let desk = Desk::new();
    let server = Server::good(vec![large("x.bin", noise(10))]);
    let second = Second(&desk, &server, Mutex::default());
    download(&desk.request(&server), &second).unwrap();
    let kinds = second.2.into_inner().unwrap();
    assert!(!kinds.is_empty() && kinds.iter().all(|kind| *kind == Kind::Exists), "{kinds:?}");
}
