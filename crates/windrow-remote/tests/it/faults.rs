//! Stores that fail, and what is read of them: the right bytes, or an error that says what to do.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use windrow_core::{Kind, store::Store};
use windrow_remote::{Location, Options, Remote};

use crate::server::{Answer, Asked, Server};
use crate::{bucket, content, open, options, read};

const MIB: usize = 1 << 20;

#[test]
fn a_stream_continues_where_it_was_cut_and_says_when_the_object_is_another_one() {
    let whole = content(5 * MIB);
    let server = Server::new([("x", whole.clone())]);
    let (store, _) = open(&server.url, "x", options());
    let entry = store.entry("x").unwrap();
    let stream = |start: usize| {
        let mut came = whole[..start].to_vec();
        let done = store.stream(&entry, start as u64, &mut |at, bytes| {
            came.truncate(at as usize);
            came.extend_from_slice(bytes);
            Ok(())
        });
        done.map(|_| came)
    };
    server.asked();
    server.script(|asked| Answer { cut: (asked.number % 3 < 2).then_some(MIB), ..Answer::default() });
    for start in [0, 1, 3 * MIB, whole.len()] {
        assert!(stream(start).unwrap() == whole);
    }
    assert!(server.asked().iter().all(|asked| asked.if_match.is_some() && asked.range.is_some()));
    // A server that knows no ranges gives all again.
    let cut = |asked: &Asked| asked.number.is_multiple_of(2).then_some(MIB);
    server.script(move |asked| Answer { ignores_range: true, cut: cut(asked), ..Answer::default() });
    assert!(stream(0).unwrap() == whole);
    server.script(|_| Answer::default());
    server.replace("x", content(MIB));
    let e = stream(0).unwrap_err();
    assert_eq!(e.kind(), Kind::Stale, "{e}");
}

#[test]
fn what_passes_is_not_seen() {
    let whole = content(5 * MIB);
    let server = Server::new([("x", whole.clone())]);
    let (store, object) = open(&server.url, "x", options());
    let random = Mutex::new(fastrand::Rng::with_seed(3));
    server.script(move |asked| {
        let mut random = random.lock().unwrap();
        let size = asked.range.map_or(0, |(start, end)| (end - start) as usize);
        match random.u32(0..10) {
            0 => Answer {
                status: Some((503, "SlowDown")),
                header: Some("retry-after: 0".to_string()),
                ..Answer::default()
            },
            1 => Answer {
                status: Some((500, "InternalError")),
                header: Some("retry-after: 0".to_string()),
                ..Answer::default()
            },
            2 => Answer { cut: Some(size * random.usize(0..64) / 64), ..Answer::default() },
            _ => Answer::default(),
        }
    });
    let mut at = 0;
    while at < whole.len() {
        let size = (whole.len() - at).min(90_001);
        assert_eq!(read(object.as_ref(), at as u64, size).unwrap(), whole[at..at + size]);
        at += size;
    }
    assert!(store.traffic().unwrap().retries > 0);
}

#[test]
fn a_cut_body_continues_where_it_ended() {
    let whole = content(4 * MIB);
    for part in 0..16 {
        let server = Server::new([("x", whole.clone())]);
        let (_, object) = open(&server.url, "x", options());
        let cut = whole.len() * part / 16;
        let first = server.asked().len() as u64;
        server
            .script(move |asked| Answer { cut: (asked.number == first).then_some(cut), ..Answer::default() });
        assert_eq!(read(object.as_ref(), 0, whole.len()).unwrap(), whole);
        let asked = server.asked();
        assert_eq!(asked.len(), 2, "{asked:?}");
        let (start, end) = asked[1].range.unwrap();
        assert!(start as usize <= cut && end as usize == whole.len(), "{asked:?}");
        assert!(asked.iter().all(|asked| asked.if_match.as_deref() == Some("\"v1\"")));
    }
}

#[test]
fn a_body_that_promises_more_than_was_asked_for_is_asked_for_again() {
    let whole = content(3 * MIB);
    let server = Server::new([("x", whole.clone()), ("b/x", whole.clone())]);
    let of_bucket = bucket(&server, options()).open("x").unwrap();
    for object in [of_bucket, open(&server.url, "x", options()).1] {
        server.asked();
        let is_first = AtomicBool::new(true);
        server.script(move |_| Answer {
            promises: if is_first.swap(false, Ordering::Relaxed) { 50 } else { 0 },
            ..Answer::default()
        });
        assert_eq!(read(object.as_ref(), MIB as u64, 1000).unwrap(), whole[MIB..MIB + 1000]);
        let asked = server.asked();
        assert!(asked.len() == 2 && asked[0].range == asked[1].range, "{asked:?}");
    }
}

#[test]
fn a_server_that_does_not_say_which_range_it_gives_gives_all_of_the_file() {
    let whole = content(3 * MIB);
    let server = Server::new([("x", whole.clone()), ("b/x", whole.clone())]);
    let of_bucket = bucket(&server, options()).open("x").unwrap();
    for object in [of_bucket, open(&server.url, "x", options()).1] {
        server.script(|_| Answer { names_no_range: true, ..Answer::default() });
        server.asked();
        assert_eq!(read(object.as_ref(), MIB as u64, 1000).unwrap(), whole[MIB..MIB + 1000]);
        assert!(server.asked().iter().map(|asked| asked.range.is_some()).eq([true, false]));
        server.script(|_| Answer::default());
    }
}

#[test]
fn an_object_that_was_replaced_is_stale() {
    let server = Server::new([("x", content(3 * MIB))]);
    let (_, object) = open(&server.url, "x", options());
    let first = read(object.as_ref(), 0, 1000).unwrap();
    server.replace("x", content(3 * MIB).into_iter().map(|b| !b).collect());
    let e = read(object.as_ref(), 2 * MIB as u64, 1000).unwrap_err();
    assert_eq!(e.kind(), Kind::Stale);
    assert_eq!(e.place().file.as_deref(), Some(format!("{}/x", server.url).as_str()));
    // What was fetched before stays what it was.
    assert_eq!(read(object.as_ref(), 0, 1000).unwrap(), first);
}

#[test]
fn where_no_tag_tells_versions_apart_the_time_of_the_change_does() {
    let server = Server::new([("x", content(3 * MIB))]);
    server.script(|_| Answer { has_no_tag: true, ..Answer::default() });
    let (_, object) = open(&server.url, "x", options());
    assert_eq!(read(object.as_ref(), 0, 1000).unwrap(), content(1000));
    assert!(server.asked().iter().all(|asked| asked.if_match.is_none()));
    server.replace("x", content(3 * MIB).into_iter().map(|b| !b).collect());
    assert_eq!(read(object.as_ref(), 2 * MIB as u64, 1000).unwrap_err().kind(), Kind::Stale);
    // It promises nothing beyond the run: nothing of it is kept on disk.
    let cache = tempfile::tempdir().unwrap();
    let kept = Options { cache: Some(cache.path().to_path_buf()), cache_limit: None, ..options() };
    let (_, object) = open(&server.url, "x", kept);
    read(object.as_ref(), 0, 1000).unwrap();
    drop(object);
    assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0);
}

#[test]
fn where_nothing_tells_versions_apart_their_lengths_and_what_comes_again_do() {
    let whole = content(3 * MIB);
    let mute = Answer { has_no_time: true, ..Answer::default() };
    let opened = |options: Options| {
        let server = Server::new([("x", content(3 * MIB))]);
        let answer = mute.clone();
        server.script(move |_| answer.clone());
        let (_, object) = open(&server.url, "x", options);
        (server, object)
    };
    // Memory for a few pages: what was read comes again.
    let little = || Options { read_ahead: 8 << 10, ..options() };
    let (server, object) = opened(little());
    for round in 0..2 {
        for at in (0..12).map(|page| page * 100_000) {
            assert_eq!(read(object.as_ref(), at as u64, 1000).unwrap(), whole[at..at + 1000], "{round}");
        }
    }
    let mut other = whole.clone();
    other[600_500] ^= 1;
    server.replace("x", other);
    assert_eq!(read(object.as_ref(), 500_000, 1000).unwrap(), whole[500_000..501_000]);
    let e = read(object.as_ref(), 600_000, 1000).unwrap_err();
    assert_eq!(e.kind(), Kind::Stale);
    assert_eq!(e.place().file.as_deref(), Some(format!("{}/x", server.url).as_str()));
    // Another length is seen at the first answer.
    for size in [3 * MIB + 1, 2 * MIB] {
        let (server, object) = opened(little());
        read(object.as_ref(), 0, 1000).unwrap();
        server.replace("x", content(size));
        assert_eq!(read(object.as_ref(), MIB as u64, 1000).unwrap_err().kind(), Kind::Stale, "{size}");
    }
    // Whoever opens it again finds what is there then.
    let cache = tempfile::tempdir().unwrap();
    let kept = || Options { cache: Some(cache.path().to_path_buf()), cache_limit: None, ..options() };
    let (server, object) = opened(kept());
    assert_eq!(read(object.as_ref(), 0, 1000).unwrap(), whole[..1000]);
    assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0);
    server.replace("x", vec![7; 3 * MIB]);
    let (_, again) = open(&server.url, "x", kept());
    assert_eq!(read(again.as_ref(), 0, 1000).unwrap(), [7; 1000]);
}

#[test]
fn what_lasts_is_an_error_that_says_what_to_do() {
    let server = Server::new([("x", content(MIB))]);
    let (_, object) = open(&server.url, "x", options());
    for (status, said, kind, hint) in [
        (403, "<Error><Code>AccessDenied</Code></Error>", Kind::Io, "headers"),
        (403, "<Error><Code>ExpiredToken</Code></Error>", Kind::Io, "expired"),
        (404, "", Kind::NotFound, ""),
        (412, "", Kind::Stale, "open the data again"),
        (400, "bad", Kind::Io, ""),
    ] {
        server.script(move |_| Answer { status: Some((status, said)), ..Answer::default() });
        server.asked();
        let e = read(object.as_ref(), 0, 10).unwrap_err();
        assert_eq!(e.kind(), kind, "{status}: {e}");
        assert!(e.hint_text().unwrap_or("").contains(hint), "{status}: {e}");
        assert!(format!("{e:#}").contains(&format!("{}/x", server.url)), "{e}");
        assert_eq!(server.asked().len(), 1, "{status} is asked once");
    }
}

#[test]
fn a_store_that_never_answers_ends_after_the_time_that_it_is_given() {
    let server = Server::new([("x", content(MIB))]);
    let given = Options { timeout: Duration::from_secs(2), ..options() };
    let (_, object) = open(&server.url, "x", given);
    server.script(|_| Answer { status: Some((503, "")), ..Answer::default() });
    let e = read(object.as_ref(), 0, 10).unwrap_err();
    assert_eq!(e.kind(), Kind::Io);
    assert!(e.message().contains("gave up after") && e.hint_text().unwrap().contains(".timeout(…)"), "{e}");
    server.script(|_| Answer { wait: Duration::from_secs(3), ..Answer::default() });
    // Until it is waited for again.
    std::thread::sleep(Duration::from_millis(1100));
    let e = read(object.as_ref(), 0, 10).unwrap_err();
    let said = ["timed out", "no answer in time", "did not come in"];
    assert!(said.iter().any(|said| e.message().contains(said)), "{e}");
}

#[test]
fn what_was_waited_for_in_vain_is_not_waited_for_again_at_once() {
    let server = Server::new([("x", content(1000))]);
    let given = Options { timeout: Duration::from_secs(2), ..options() };
    let (_, object) = open(&server.url, "x", given);
    server.script(|_| Answer { status: Some((503, "")), ..Answer::default() });
    let first = read(object.as_ref(), 0, 10).unwrap_err();
    server.asked();
    // As formats look at a file, one after the other.
    for _ in 0..5 {
        let e = read(object.as_ref(), 0, 10).unwrap_err();
        assert_eq!((e.kind(), e.message()), (Kind::Io, first.message()));
    }
    assert!(server.asked().is_empty());
    server.script(|_| Answer::default());
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(read(object.as_ref(), 0, 10).unwrap(), content(1000)[..10]);
}

#[test]
fn a_server_without_ranges_gives_all_of_a_file_once_where_there_is_room() {
    let (small, large) = (content(1000), content(5 * MIB + 7));
    let server =
        Server::new([("small", small.clone()), ("large", large.clone()), ("b/large", large.clone())]);
    server.script(|_| Answer { ignores_range: true, ..Answer::default() });
    let (_, object) = open(&server.url, "small", options());
    assert_eq!(read(object.as_ref(), 100, 50).unwrap(), small[100..150]);
    for is_bucket in [false, true] {
        let opened = |options: Options| {
            if is_bucket {
                bucket(&server, options).open("large").unwrap()
            } else {
                open(&server.url, "large", options).1
            }
        };
        let object = opened(options());
        server.asked();
        std::thread::scope(|scope| {
            for at in [0, MIB, 3 * MIB, large.len() - 50] {
                let (object, large) = (&object, &large);
                scope.spawn(move || {
                    assert_eq!(read(object.as_ref(), at as u64, 50).unwrap(), large[at..at + 50]);
                });
            }
        });
        assert_eq!(read(object.as_ref(), 0, large.len()).unwrap(), large);
        let whole = server.asked().iter().filter(|asked| asked.range.is_none()).count();
        assert_eq!(whole, 1, "{is_bucket}");
        // And at once none of it where there is not so much room.
        let object = opened(Options { read_ahead: MIB as u64, ..options() });
        server.asked();
        assert_eq!(read(object.as_ref(), MIB as u64, 50).unwrap_err().kind(), Kind::Unsupported);
        assert_eq!(server.asked().len(), 1, "{is_bucket}");
    }
}

#[test]
fn a_read_waits_no_longer_than_it_is_given_however_many_parts_it_lacks() {
    let whole = content(4 * MIB);
    let server = Server::new([("x", whole)]);
    let given = Options { timeout: Duration::from_secs(2), ..options() };
    let (_, object) = open(&server.url, "x", given);
    // It has holes: each is a request.
    for at in 0..8 {
        read(object.as_ref(), (at * MIB / 2) as u64, 4096).unwrap();
    }
    server.script(|_| Answer { drip: Some(Duration::from_millis(300)), ..Answer::default() });
    server.asked();
    let e = read(object.as_ref(), 0, 4 * MIB).unwrap_err();
    assert!(e.kind() == Kind::Io && e.hint_text().unwrap().contains(".timeout(…)"), "{e}");
    assert!(server.asked().len() <= 2, "one part after the other was given the time of all");
}

#[test]
fn a_body_that_only_drips_is_asked_for_once_more() {
    let whole = content(12 * MIB);
    let server = Server::new([("x", whole.clone())]);
    let (store, object) = open(&server.url, "x", options());
    let of_first = |at: usize| read(object.as_ref(), (at * MIB) as u64, 100_000);
    for at in 0..6 {
        assert_eq!(of_first(at).unwrap(), whole[at * MIB..][..100_000]);
    }
    let next = server.asked().len() as u64;
    server.script(move |asked| Answer {
        drip: (asked.number == next).then_some(Duration::from_millis(100)),
        ..Answer::default()
    });
    assert_eq!(of_first(8).unwrap(), whole[8 * MIB..][..100_000]);
    let traffic = store.traffic().unwrap();
    assert_eq!((traffic.hedged, traffic.retries), (1, 0));
}

#[test]
fn one_late_answer_among_the_first_requests_is_not_waited_for() {
    const PLACES: usize = 12;
    let whole = content(PLACES * 2 * MIB);
    let server = Server::new([("x", whole.clone())]);
    let (store, object) = open(&server.url, "x", options());
    let stalled = server.asked().len() as u64 + 5;
    server.script(move |asked| Answer {
        wait: Duration::from_secs(if asked.number == stalled { 19 } else { 0 }),
        ..Answer::default()
    });
    std::thread::scope(|scope| {
        for at in (0..PLACES).map(|i| i * 2 * MIB) {
            let (object, whole) = (&object, &whole);
            scope.spawn(move || {
                assert_eq!(read(object.as_ref(), at as u64, 1000).unwrap(), whole[at..at + 1000]);
            });
        }
    });
    let traffic = store.traffic().unwrap();
    assert_eq!((traffic.hedged, traffic.retries), (1, 0));
}

#[test]
fn a_store_that_asks_for_a_longer_wait_than_there_is_ends_it_at_once() {
    let server = Server::new([("x", content(MIB))]);
    let (_, object) = open(&server.url, "x", options());
    server.script(|_| Answer {
        status: Some((503, "SlowDown")),
        header: Some("retry-after: 3600".to_string()),
        ..Answer::default()
    });
    let e = read(object.as_ref(), 0, 10).unwrap_err();
    assert!(e.message().contains("gave up after 1 attempt in 0."), "{e}");
    assert!(e.message().contains("wait for 3600 s (Retry-After)"), "{e}");
}

#[test]
fn nobody_at_the_other_end_is_an_error_soon() {
    let location = Location::of("http://127.0.0.1:1/x").unwrap().unwrap();
    let store = Remote::new(&location, Options { timeout: Duration::from_secs(1), ..options() }).unwrap();
    let e = store.open("x").map(drop).unwrap_err();
    assert_eq!(e.kind(), Kind::Io);
    assert!(format!("{e:#}").contains("http://127.0.0.1:1/x"), "{e}");
}
