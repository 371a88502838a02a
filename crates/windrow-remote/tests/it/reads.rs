//! What is read, and by how many requests.

use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use windrow_core::Kind;
use windrow_core::store::{Store, ahead};
use windrow_remote::{Location, Options, Remote, measure};

use crate::server::{Answer, Server};
use crate::{content, open, options, read};

const MIB: usize = 1 << 20;

#[test]
fn bytes_are_those_of_the_file_and_are_fetched_once() {
    let whole = content(9 * MIB + 5);
    let server = Server::new([("a/x.bin", whole.clone())]);
    let (store, object) = open(&server.url, "a/x.bin", options());
    assert_eq!(
        (object.size(), object.name()),
        (whole.len() as u64, format!("{}/a/x.bin", server.url).as_str())
    );
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..2 {
        for _ in 0..50 {
            let start = random.usize(0..whole.len());
            let size = random.usize(0..=(whole.len() - start).min(100_000));
            assert_eq!(read(object.as_ref(), start as u64, size).unwrap(), whole[start..start + size]);
        }
    }
    assert_eq!(read(object.as_ref(), 0, whole.len()).unwrap(), whole);
    let after = store.traffic().unwrap().requests;
    assert_eq!(after, server.asked().len() as u64);
    assert_eq!(read(object.as_ref(), 0, whole.len()).unwrap(), whole);
    assert_eq!(store.traffic().unwrap().requests, after);
    // What lies between two parts that are missing comes twice where it is short.
    assert!(store.traffic().unwrap().received_bytes <= whole.len() as u64 + 100 * (64 << 10));
    let e = read(object.as_ref(), whole.len() as u64 - 1, 2).unwrap_err();
    assert_eq!((e.kind(), e.place().byte), (Kind::Corrupt, Some(whole.len() as u64 - 1)));
}

#[test]
fn small_objects_come_whole_and_long_reads_run_ahead() {
    let (small, long) = (content(100_000), content(40 * MIB));
    let server = Server::new([("small", small.clone()), ("long", long.clone())]);
    let (_, object) = open(&server.url, "small", options());
    server.asked();
    for at in 0..100 {
        assert_eq!(read(object.as_ref(), at * 1000, 1000).unwrap(), small[at as usize * 1000..][..1000]);
    }
    assert_eq!(server.asked().len(), 1);
    let (_, object) = open(&server.url, "long", options());
    server.asked();
    for (at, part) in long.chunks(64 << 10).enumerate() {
        assert_eq!(read(object.as_ref(), (at * (64 << 10)) as u64, part.len()).unwrap(), part);
    }
    let n = server.asked().len();
    assert!(n < 40, "{n} requests for 640 reads one behind the other");
}

#[test]
fn what_is_brought_near_is_asked_for_once_whatever_room_there_is() {
    let whole = content(24 * MIB);
    let server = Server::new([("x", whole.clone())]);
    for (read_ahead, bytes) in [(64, 24), (8, 0)] {
        let options = windrow_remote::Options { read_ahead: read_ahead * MIB as u64, ..options() };
        let (store, object) = open(&server.url, "x", options);
        object.bring_near().unwrap();
        assert_eq!(store.traffic().unwrap().received_bytes, bytes * MIB as u64, "{read_ahead}");
        for at in [0, 10 * MIB, 23 * MIB] {
            assert_eq!(read(object.as_ref(), at as u64, 1000).unwrap(), whole[at..at + 1000]);
        }
    }
}

#[test]
fn ranges_that_are_told_ahead_are_joined_and_waited_for_once() {
    let whole = content(64 * MIB);
    let server = Server::new([("x", whole.clone())]);
    server.script(|_| Answer { wait: Duration::from_millis(20), ..Answer::default() });
    let (store, object) = open(&server.url, "x", options());
    server.asked();
    // 200 places in three parts of the object: far from each other, near within.
    let places: Vec<usize> =
        (0..200).map(|i| [0, 20 * MIB, 50 * MIB][i % 3] + (i * 7919) % (3 * MIB)).collect();
    ahead::gather(|| places.iter().for_each(|&at| object.prefetch(at as u64, 1000)));
    for &at in &places {
        assert_eq!(read(object.as_ref(), at as u64, 1000).unwrap(), whole[at..at + 1000]);
    }
    let n = server.asked().len();
    assert!(n <= 6, "{n} requests for three parts");
    assert_eq!(store.traffic().unwrap().retries, 0);
}

#[test]
fn a_read_waits_for_no_other() {
    const PLACES: usize = 8;
    let whole = content(PLACES * 2 * MIB);
    let server = Server::new([("x", whole.clone())]);
    let (_, object) = open(&server.url, "x", options());
    server.asked();
    // No request is answered before all have come, and each read begins when the one before is under way.
    let all = Barrier::new(PLACES);
    let (tell, told) = mpsc::channel();
    server.script(move |_| {
        tell.send(()).unwrap();
        all.wait();
        Answer::default()
    });
    thread::scope(|scope| {
        for at in (0..PLACES).map(|i| i * 2 * MIB) {
            let (object, whole) = (&object, &whole);
            scope.spawn(move || {
                assert_eq!(read(object.as_ref(), at as u64, 1000).unwrap(), whole[at..at + 1000]);
            });
            told.recv_timeout(Duration::from_secs(30)).unwrap();
        }
    });
}

#[test]
fn a_manifest_lists_what_a_web_server_does_not() {
    let manifest = br#"{"files": [{"name": "b.bin", "size": 3}, {"name": "c/d.bin", "size": 4}]}"#;
    let server = Server::new([("data/windrow.json", manifest.to_vec()), ("data/b.bin", b"abc".to_vec())]);
    let location = Location::of(&format!("{}/data", server.url)).unwrap().unwrap();
    let store = Remote::new(&location, options()).unwrap();
    let entries = store.walk("data").unwrap();
    let found: Vec<(&str, u64)> = entries.iter().map(|entry| (entry.key.as_str(), entry.size)).collect();
    assert_eq!(found, [("data/b.bin", 3), ("data/c/d.bin", 4), ("data/windrow.json", manifest.len() as u64)]);
    assert!(store.entry("data").unwrap().is_folder);
    let object = store.open_listed(&entries[0]).unwrap();
    assert_eq!(read(object.as_ref(), 0, 3).unwrap(), b"abc");
    let e = store.walk("other").unwrap_err();
    assert_eq!(e.kind(), Kind::NotFound);
    assert!(e.message().contains("lists no folders"), "{e}");
}

#[test]
fn azure_lists_tags_without_quotes() {
    let whole = content(2 * MIB);
    let server = Server::new([("corpus/d/x.bin", whole.clone())]);
    server.script(|asked| {
        let listing = "<?xml version=\"1.0\"?><EnumerationResults><Blobs><Blob><Name>d/x.bin</Name><Properties>\
            <Last-Modified>Thu, 26 Nov 2026 10:00:00 GMT</Last-Modified><Etag>v1</Etag>\
            <Content-Length>2097152</Content-Length><Content-Type>application/octet-stream</Content-Type>\
            </Properties></Blob></Blobs><NextMarker /></EnumerationResults>";
        Answer {
            status: asked.path.contains("comp=list").then_some((200, listing)),
            header: Some("last-modified: Thu, 26 Nov 2026 10:00:00 GMT".to_string()),
            ..Answer::default()
        }
    });
    let location = Location::of("az://corpus/d").unwrap().unwrap();
    let given = [("endpoint_url", server.url.as_str()), ("account_name", "a"), ("anon", "true")];
    let store = given.map(|(name, value)| (name.to_string(), value.to_string())).into();
    let store = Remote::new(&location, windrow_remote::Options { store, ..options() }).unwrap();
    let entries = store.walk("d").unwrap();
    let object = store.open_listed(&entries[0]).unwrap();
    assert_eq!(read(object.as_ref(), 1000, 5000).unwrap(), whole[1000..6000]);
    assert_eq!(server.asked().last().unwrap().if_match.as_deref(), Some("\"v1\""));
}

#[test]
fn measuring_asks_the_store_each_time_and_keeps_nothing() {
    let (large, small) = (content(20 << 20), content(100));
    let server = Server::new([("large.bin", large.clone()), ("small.bin", small.clone())]);
    let cache = tempfile::tempdir().unwrap();
    let options = Options { cache: Some(cache.path().into()), cache_limit: None, ..options() };
    let urls = ["large.bin", "small.bin"].map(|name| format!("{}/{name}", server.url));
    let files = [(urls[0].as_str(), large.len() as u64), (urls[1].as_str(), small.len() as u64)];
    // A failure is asked again, and is no part of what is measured.
    server.script(|asked| match asked.number {
        3 => Answer { status: Some((503, "busy")), ..Answer::default() },
        _ => Answer::default(),
    });
    for failed in [1, 0] {
        let found = measure(&files, &options, &|| false).unwrap();
        assert!(found.latency_secs > 0.0 && found.bandwidth > 0.0, "{found:?}");
        assert_eq!(found.range_bytes, 8 << 20);
        let asked = server.asked();
        let sizes: Vec<u64> = asked.iter().filter_map(|a| a.range.map(|(start, end)| end - start)).collect();
        let large = sizes.iter().filter(|size| **size == 8 << 20).count();
        assert_eq!((sizes.len(), large), (25 + failed, 3), "{sizes:?}");
    }
    assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0);

    // What was listed with another size is another object by now.
    let e = measure(&[(urls[1].as_str(), 101)], &options, &|| false).unwrap_err();
    assert!(e.kind() == Kind::Stale && format!("{e:#}").contains("small.bin"), "{e}");
    assert_eq!(measure(&files, &options, &|| true).unwrap_err().kind(), Kind::Interrupted);
    assert_eq!(measure(&[(urls[1].as_str(), 0)], &options, &|| false).unwrap_err().kind(), Kind::Config);
}
