//! Thousands of objects that are opened one behind the other: how many requests that takes, and how many are under way at a time.

use std::fmt::Write;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use windrow_core::store::Store;
use windrow_remote::{Location, Options, Remote};

use crate::server::{Answer, Server};
use crate::{content, options};

const OBJECTS: usize = 400;
const SIZE: usize = 200_000;

const ALONE: &str = "WINDROW_TEST_ALONE";

/// Whether this process has no other test: what they read would take the memory that is counted on. Starts one that has none.
fn is_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let done = command.args(["--exact", &format!("opening::{test}")]).env(ALONE, "1").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    false
}

fn name(i: usize) -> &'static str {
    Box::leak(format!("bucket/d/part-{i:04}.bin").into_boxed_str())
}

/// The objects, each with a manifest beside it that nobody opens, and how many requests were under way at a time.
fn serve() -> (Server, Arc<AtomicUsize>) {
    let whole = content(SIZE);
    let server = Server::new((0..OBJECTS).map(|i| (name(i), whole.clone())));
    let mut listing =
        String::from("<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false</IsTruncated>");
    for i in 0..OBJECTS {
        let key = &name(i)["bucket/".len()..];
        for (key, size, tag) in [(key.to_string(), SIZE, "v1"), (format!("{key}.json"), 10, "v2")] {
            write!(
                listing,
                "<Contents><Key>{key}</Key><Size>{size}</Size><ETag>&quot;{tag}&quot;</ETag>\
                 <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            )
            .unwrap();
        }
    }
    listing.push_str("</ListBucketResult>");
    let listing: &'static str = Box::leak(listing.into_boxed_str());
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let found = most.clone();
    server.script(move |asked| {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(20));
        now.fetch_sub(1, Ordering::SeqCst);
        match asked.path.contains("list-type=2") {
            true => Answer { status: Some((200, listing)), ..Answer::default() },
            false => Answer::default(),
        }
    });
    (server, found)
}

/// Opens all of them, and reads parts of each: how many requests that took.
fn open_all(server: &Server, options: Options, parts: impl Fn(u64) -> Vec<(u64, usize)>) -> usize {
    let given = [("endpoint_url", server.url.as_str()), ("anon", "true"), ("region", "us-east-1")];
    let store = given.map(|(name, value)| (name.to_string(), value.to_string())).into();
    let location = Location::of("s3://bucket/d").unwrap().unwrap();
    let store = Remote::new(&location, Options { store, ..options }).unwrap();
    let whole = content(SIZE);
    server.asked();
    for entry in store.walk("d").unwrap().iter().filter(|entry| entry.key.ends_with(".bin")) {
        let object = store.open_listed(entry).unwrap();
        for (start, size) in parts(object.size()) {
            let mut read = vec![0; size];
            object.read_into(start, &mut read).unwrap();
            assert_eq!(read, whole[start as usize..start as usize + size]);
        }
    }
    server.asked().len()
}

#[test]
fn heads_and_footers_are_fetched_side_by_side_and_each_once() {
    if !is_alone("heads_and_footers_are_fetched_side_by_side_and_each_once") {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let on_disk = Options { cache: Some(cache.path().into()), cache_limit: Some(1 << 30), ..options() };
    let small = Options { read_ahead: 1 << 20, ..options() };
    for options in [options(), small, on_disk] {
        let (server, most) = serve();
        let what = format!("{options:?}");
        // The listing, and what looks for a manifest there.
        let heads = open_all(&server, options.clone(), |_| vec![(0, 128)]);
        assert!(heads <= OBJECTS * 102 / 100, "{heads} requests, {what}");
        assert!((8..=64).contains(&most.load(Ordering::SeqCst)), "{most:?} at a time, {what}");
    }
    let (server, most) = serve();
    let tails = open_all(&server, Options { read_ahead: 1 << 20, ..options() }, |size| vec![(size - 8, 8)]);
    assert!(tails <= OBJECTS * 102 / 100, "{tails} requests");
    assert!((8..=64).contains(&most.load(Ordering::SeqCst)), "{most:?} at a time");
}

#[test]
fn both_ends_are_fetched_side_by_side() {
    if !is_alone("both_ends_are_fetched_side_by_side") {
        return;
    }
    let (server, most) = serve();
    let small = Options { read_ahead: 1 << 20, ..options() };
    let ends = open_all(&server, small, |size| vec![(0, 2048), (size - 64, 64)]);
    assert!(ends <= 2 * OBJECTS * 102 / 100, "{ends} requests");
    assert!((8..=64).contains(&most.load(Ordering::SeqCst)), "{most:?} at a time");
    // Where all is kept, what is small is fetched whole.
    let (server, _) = serve();
    let whole = open_all(&server, options(), |size| vec![(0, 2048), (size - 64, 64)]);
    assert!(whole <= OBJECTS * 102 / 100, "{whole} requests");
}

#[test]
fn objects_that_are_read_here_and_there_are_not_guessed() {
    if !is_alone("objects_that_are_read_here_and_there_are_not_guessed") {
        return;
    }
    let (server, _) = serve();
    // In the middle, where nobody knows what others are read.
    let n = open_all(&server, options(), |size| vec![(size / 2, 128)]);
    assert!(n <= OBJECTS + 4, "{n} requests");
}
