//! Servers that are overloaded, connections that break, bytes that are wrong: what can be mended is, the rest is refused.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use windrow::Kind;
use windrow::download::{download, hub_url};
use windrow::prepare::{Progress, Watch};

use super::desk::Desk;
use super::server::{Fault, SIGNATURE, Seen, Server, large, noise, small};

const SIZE: usize = 300_000;

#[test]
fn an_overloaded_server_is_asked_again() {
    for (status, headers) in [(503, ""), (429, "Retry-After: 0\r\n"), (500, ""), (504, "")] {
        let faults =
            move |seen: &Seen| if seen.nth < 3 { Fault::Status(status, headers) } else { Fault::None };
        let desk = Desk::new();
        let server = Server::faulty(vec![small("a", "1"), large("x.bin", noise(SIZE))], faults);
        let mut request = desk.request(&server);
        request.options.timeout = Some(Duration::from_secs(30));
        let report = download(&request, &()).unwrap();
        assert!(report.failed.is_empty(), "{report:?}");
        assert_eq!(desk.seen()["x.bin"], noise(SIZE));
    }
}

#[test]
fn a_server_that_stays_overloaded_is_given_up_and_a_rerun_continues() {
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    let always = move |seen: &Seen| {
        if seen.target.contains("/resolve/") && !over.load(Ordering::Relaxed) {
            Fault::Status(503, "")
        } else {
            Fault::None
        }
    };
    let desk = Desk::new();
    let server = Server::faulty((0..9).map(|i| small(&format!("{i}"), "1")).collect(), always);
    let mut request = desk.request(&server);
    request.n_connections = 1;
    let report = download(&request, &()).unwrap();
    // One file took all the patience; the others would fare no better.
    assert_eq!((report.failed.len(), report.left_files), (1, 8));
    assert_eq!(report.failed[0].error.kind(), Kind::Io);
    assert!(format!("{:#}", report.failed[0].error).contains("503"));
    assert!(server.log().iter().filter(|seen| seen.is_content()).all(|seen| seen.target.ends_with("/0")));
    assert!((2..20).contains(&server.n_content()), "{}", server.n_content());
    assert!(desk.seen().is_empty());
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(download(&request, &()).unwrap().done_files(), 9);
}

#[test]
fn a_body_cut_anywhere_continues_at_that_byte() {
    let cuts = [0, 1, SIZE / 64, SIZE / 3, SIZE / 2, 63 * SIZE / 64, SIZE - 1];
    for is_large in [false, true] {
        for at in cuts {
            // The body is cut once at this byte, on whichever port it is sent.
            let is_body =
                move |seen: &Seen| if is_large { seen.is_cdn } else { seen.target.contains("/resolve/") };
            let faults =
                move |seen: &Seen| if is_body(seen) && seen.nth == 1 { Fault::Cut(at) } else { Fault::None };
            let desk = Desk::new();
            let file = if is_large { large("x.bin", noise(SIZE)) } else { small("x.bin", noise(SIZE)) };
            let server = Server::faulty(vec![file], faults);
            desk.all(&server);
            assert_eq!(desk.seen()["x.bin"], noise(SIZE), "cut at {at}");
            let asked: Vec<Seen> = server.log().into_iter().filter(is_body).collect();
            assert_eq!(asked.iter().map(Seen::start).collect::<Vec<_>>(), [0, at], "large: {is_large}");
        }
    }
}

#[test]
fn many_cuts_are_outlasted_because_each_brings_bytes() {
    let server = Server::faulty(vec![large("x.bin", noise(SIZE))], |seen| {
        if seen.is_cdn { Fault::Cut(SIZE / 64) } else { Fault::None }
    });
    let desk = Desk::new();
    desk.all(&server);
    assert_eq!(desk.seen()["x.bin"], noise(SIZE));
    assert!(server.log().iter().filter(|seen| seen.is_cdn).count() >= 64);
}

#[test]
fn a_server_without_parts_that_always_cuts_is_given_up() {
    let server = Server::faulty(vec![large("x.bin", noise(SIZE))], |seen| {
        if seen.is_cdn { Fault::WholeCut(SIZE / 2) } else { Fault::None }
    });
    let desk = Desk::new();
    let e = desk.failed(&server);
    assert_eq!(e.kind(), Kind::Io);
    // The first brings half, the others nothing new.
    assert!((3..40).contains(&server.log().iter().filter(|seen| seen.is_cdn).count()));
    assert!(desk.seen().is_empty());
}

#[test]
fn a_server_without_parts_sends_all_again() {
    let server = Server::faulty(vec![large("x.bin", noise(SIZE))], |seen| match (seen.is_cdn, seen.nth) {
        (true, 1) => Fault::Cut(SIZE / 2),
        (true, _) => Fault::Whole,
        _ => Fault::None,
    });
    let desk = Desk::new();
    desk.all(&server);
    assert_eq!(desk.seen()["x.bin"], noise(SIZE));
}

#[test]
fn a_part_of_what_is_no_longer_there_is_dropped() {
    let server = Server::faulty(vec![large("x.bin", noise(SIZE))], |seen| match (seen.is_cdn, seen.nth) {
        (true, 1) => Fault::Cut(SIZE / 2),
        (true, 2) => Fault::Content(flipped()),
        _ => Fault::None,
    });
    let desk = Desk::new();
    desk.all(&server);
    assert_eq!(desk.seen()["x.bin"], noise(SIZE));
    let starts: Vec<usize> = server.log().iter().filter(|seen| seen.is_cdn).map(Seen::start).collect();
    assert_eq!(starts, [0, SIZE / 2, 0]);
}

#[test]
fn a_silent_connection_is_left_and_gone_on_from() {
    let server = Server::faulty(vec![large("x.bin", noise(SIZE))], |seen| match (seen.is_cdn, seen.nth) {
        (true, 1) => Fault::Stall(SIZE / 2),
        _ => Fault::None,
    });
    let desk = Desk::new();
    desk.all(&server);
    assert_eq!(desk.seen()["x.bin"], noise(SIZE));
    let starts: Vec<usize> = server.log().iter().filter(|seen| seen.is_cdn).map(Seen::start).collect();
    assert_eq!(starts, [0, SIZE / 2]);
}

fn flipped() -> Vec<u8> {
    let mut bytes = noise(SIZE);
    bytes[SIZE / 2] ^= 1;
    bytes
}

#[test]
fn wrong_bytes_are_put_aside_and_fetched_once_more() {
    for wrong in [flipped(), noise(SIZE - 1), noise(SIZE + 1), Vec::new()] {
        for is_large in [false, true] {
            let wrong = wrong.clone();
            let server = Server::faulty(
                vec![if is_large { large("x.bin", noise(SIZE)) } else { small("x.bin", noise(SIZE)) }],
                move |seen| {
                    if seen.is_content() && seen.nth == 1 {
                        Fault::Content(wrong.clone())
                    } else {
                        Fault::None
                    }
                },
            );
            let desk = Desk::new();
            desk.all(&server);
            assert_eq!(desk.seen()["x.bin"], noise(SIZE));
            assert!(desk.hidden(".bad").is_empty(), "what was put aside is gone once the right bytes came");
        }
    }
}

#[test]
fn bytes_that_stay_wrong_are_never_shown() {
    for wrong in [flipped(), noise(SIZE - 1), noise(SIZE + 1)] {
        let bad = wrong.clone();
        let faults = move |seen: &Seen| {
            if seen.is_cdn && seen.target.contains(&large("", noise(SIZE)).sha256()) {
                Fault::Content(bad.clone())
            } else {
                Fault::None
            }
        };
        let desk = Desk::new();
        let server = Server::faulty(vec![large("x.bin", noise(SIZE)), large("y.bin", "good")], faults);
        let e = desk.failed(&server);
        assert_eq!(e.kind(), Kind::Corrupt, "{e}");
        assert!(e.place().file.as_deref() == Some("x.bin") && e.hint_text().is_some(), "{e}");
        assert!(!format!("{e:#}").contains(SIGNATURE));
        // The other file is there, whole.
        assert_eq!(desk.seen().keys().collect::<Vec<_>>(), ["y.bin"]);
        assert_eq!(
            server
                .log()
                .iter()
                .filter(|s| s.is_cdn && !s.target.contains(&large("", "good").sha256()))
                .count(),
            2
        );
        assert_eq!(desk.hidden(".bad").len(), 1);
    }
}

#[test]
fn parts_of_a_stopped_run_are_gone_on_from_and_poisoned_ones_are_not_shown() {
    let desk = Desk::new();
    let server = Server::good(vec![large("x.bin", noise(SIZE))]);
    // A first run that brings half of it.
    let cut = Server::faulty(vec![large("x.bin", noise(SIZE))], |seen| {
        if !seen.is_cdn {
            Fault::None
        } else if seen.nth > 1 {
            Fault::Status(403, "")
        } else {
            Fault::Cut(SIZE / 2)
        }
    });
    desk.failed(&cut);
    assert_eq!(desk.hidden(".part"), [noise(SIZE)[..SIZE / 2].to_vec()]);
    let part = desk.below("out/.windrow-download").into_keys().find(|name| name.ends_with(".part")).unwrap();
    let part = desk.path("out/.windrow-download").join(part);

    // Good so far, poisoned, longer than the file, complete and poisoned, complete and good.
    let mut poisoned = noise(SIZE / 2);
    poisoned[7] ^= 1;
    for (bytes, n_asked) in
        [(noise(SIZE / 2), 1), (poisoned, 2), (noise(2 * SIZE), 1), (flipped(), 1), (noise(SIZE), 0)]
    {
        let before = server.log().iter().filter(|seen| seen.is_cdn).count();
        fs::remove_file(desk.path("out/x.bin")).unwrap_or_default();
        fs::write(&part, &bytes).unwrap();
        let report = desk.all(&server);
        assert_eq!(desk.seen()["x.bin"], noise(SIZE));
        assert_eq!(server.log().iter().filter(|seen| seen.is_cdn).count() - before, n_asked);
        if bytes.len() == SIZE / 2 {
            assert_eq!(report.downloaded_files, 1);
        }
    }
}

#[test]
fn stopping_is_quick_and_the_rerun_continues() {
    struct Stop<'a>(&'a Desk);
    impl Watch for Stop<'_> {
        fn progress(&self, _: Progress) {}
        fn cancelled(&self) -> bool {
            self.0.hidden(".part").iter().any(|part| part.len() == SIZE / 2)
        }
    }
    let desk = Desk::new();
    let stalled = Server::faulty(vec![large("x.bin", noise(SIZE)), small("a", "1")], |seen| {
        if seen.is_cdn { Fault::Stall(SIZE / 2) } else { Fault::None }
    });
    let mut request = desk.request(&stalled);
    request.options.timeout = Some(Duration::from_secs(3600));
    let e = download(&request, &Stop(&desk)).unwrap_err();
    assert_eq!(e.kind(), Kind::Interrupted);

    let server = Server::good(vec![large("x.bin", noise(SIZE)), small("a", "1")]);
    let report = desk.all(&server);
    assert_eq!(report.resumed_bytes, SIZE as u64 / 2);
    assert_eq!(desk.seen()["x.bin"], noise(SIZE));
}

#[test]
fn a_silent_listing_can_be_stopped() {
    struct Stop(Instant);
    impl Watch for Stop {
        fn progress(&self, _: Progress) {}
        fn cancelled(&self) -> bool {
            self.0.elapsed() > Duration::from_millis(100)
        }
    }
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let server = Server::faulty(vec![small("a", "1")], |_| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(600));
        Fault::None
    });
    let desk = Desk::new();
    let mut request = desk.request(&server);
    request.options.timeout = Some(Duration::from_secs(3600));
    let e = download(&request, &Stop(Instant::now())).unwrap_err();
    assert_eq!((e.kind(), ASKED.load(Ordering::Relaxed)), (Kind::Interrupted, 1));
    assert!(!desk.path("out").exists());
}

#[test]
fn nobody_at_the_endpoint_is_an_error_that_says_so() {
    let desk = Desk::new();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let request = desk.request_of(&format!("http://{closed}"), &hub_url("some/data", "main").unwrap());
    let e = download(&request, &()).unwrap_err();
    assert_eq!(e.kind(), Kind::Io);
    assert!(format!("{e:#}").contains("HF_ENDPOINT"), "{e}");
}
