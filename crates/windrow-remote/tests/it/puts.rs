//! What is put into a store that fails: there once and whole, or an error that says what to do.

use std::sync::Arc;
use std::time::Duration;

use windrow_core::Kind;
use windrow_core::store::{Local, Object, Store};
use windrow_remote::{Location, Options, Put, Remote};

use crate::server::{Answer, Server};
use crate::{bucket, content, options};

const MIB: usize = 1 << 20;

struct File(tempfile::NamedTempFile);

impl File {
    fn of(bytes: &[u8]) -> File {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        File(file)
    }

    fn object(&self) -> Arc<dyn Object> {
        Local::new(self.0.path()).open("").unwrap()
    }
}

#[test]
fn an_object_is_created_once_and_replaced_where_that_is_said() {
    let server = Server::new([]);
    let store = bucket(&server, options());
    let (one, other) = (File::of(b"one"), File::of(b"two"));
    assert!(store.open("a/x.bin").is_err());
    assert_eq!(store.put("a/x.bin", one.object(), false).unwrap(), Put::Sent);
    // What was asked for before is asked for again.
    assert_eq!(store.open("a/x.bin").unwrap().size(), 3);
    assert!(server.asked().iter().filter(|asked| asked.method == "PUT").all(|asked| asked.creates));
    assert_eq!(store.put("a/x.bin", one.object(), false).unwrap(), Put::WasThere);
    assert!(store.is_same("a/x.bin", one.object()).unwrap());
    assert!(
        !store.is_same("a/x.bin", other.object()).unwrap() && !store.is_same("a/y", one.object()).unwrap()
    );
    let e = store.put("a/x.bin", other.object(), false).unwrap_err();
    assert_eq!((e.kind(), e.place().file.as_deref()), (Kind::Exists, Some("s3://b/a/x.bin")), "{e}");
    assert_eq!(server.file("b/a/x.bin").unwrap(), b"one");
    let told = store.stream(&store.entry("a/x.bin").unwrap(), 0, &mut |_, _| Ok(())).unwrap();
    assert_eq!(told.unwrap(), format!("{:016x}", xxhash_rust::xxh3::xxh3_64(b"one")));
    server.asked();
    assert_eq!(store.put("a/x.bin", other.object(), true).unwrap(), Put::Sent);
    assert_eq!(server.file("b/a/x.bin").unwrap(), b"two");
    assert!(server.asked().iter().all(|asked| !asked.creates));
    store.remove("a/x.bin").unwrap();
    store.remove("a/x.bin").unwrap();
    assert!(server.file("b/a/x.bin").is_none() && store.open("a/x.bin").is_err());
}

#[test]
fn an_object_without_a_hash_is_compared_byte_by_byte() {
    let bytes = content(3 * MIB);
    let mut other = bytes.clone();
    other[2 * MIB] ^= 1;
    let server = Server::new([("b/x", bytes.clone()), ("b/y", other)]);
    let store = bucket(&server, options());
    let file = File::of(&bytes);
    assert_eq!(store.put("x", file.object(), false).unwrap(), Put::WasThere);
    assert_eq!(store.put("y", file.object(), false).unwrap_err().kind(), Kind::Exists);
}

#[test]
fn what_passes_is_sent_again() {
    for (size, name) in [(MIB, "small"), (40 * MIB + 7, "large")] {
        for fault in 0..4 {
            let server = Server::new([]);
            let store = bucket(&server, options());
            // Of every three requests that change something, one fails; another's answer is lost.
            let count = std::sync::atomic::AtomicU32::new(0);
            server.script(move |asked| {
                if matches!(asked.method.as_str(), "HEAD" | "GET") {
                    return Answer::default();
                }
                match (count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 3, fault) {
                    (0, 0) => Answer { status: Some((503, "SlowDown")), ..Answer::default() },
                    (0, 1) => Answer { status: Some((500, "InternalError")), ..Answer::default() },
                    (0, 2) => Answer { mute: true, ..Answer::default() },
                    (0, 3) => Answer {
                        status: Some((429, "")),
                        header: Some("retry-after: 0".to_string()),
                        ..Answer::default()
                    },
                    _ => Answer::default(),
                }
            });
            let bytes = content(size);
            store
                .put(name, File::of(&bytes).object(), false)
                .unwrap_or_else(|e| panic!("{name} {fault}: {e}"));
            assert!(server.file(&format!("b/{name}")).unwrap() == bytes, "{name} {fault}");
            assert!(store.traffic().unwrap().retries > 0);
            // Nothing of it is sent once more.
            server.script(|_| Answer::default());
            server.asked();
            assert_eq!(store.put(name, File::of(&bytes).object(), true).unwrap(), Put::Sent);
            server.asked();
            assert_eq!(store.put(name, File::of(&bytes).object(), false).unwrap(), Put::WasThere);
            let sent: usize = server.asked().iter().map(|asked| asked.body.len()).sum();
            assert!(sent <= MIB, "{sent} bytes");
        }
    }
}

#[test]
fn a_store_that_makes_no_conditions_is_asked_first() {
    let server = Server::new([("b/there", b"other".to_vec())]);
    let store = bucket(&server, options());
    server.script(|asked| Answer {
        status: asked.creates.then_some((501, "<Error><Code>NotImplemented</Code></Error>")),
        ..Answer::default()
    });
    let file = File::of(b"bytes");
    assert_eq!(store.put("new", file.object(), false).unwrap(), Put::Sent);
    assert_eq!(store.put("there", file.object(), false).unwrap_err().kind(), Kind::Exists);
    assert_eq!(server.file("b/there").unwrap(), b"other");
}

#[test]
fn a_store_that_takes_nothing_is_an_error_that_says_what_to_do() {
    let server = Server::new([]);
    let file = File::of(b"bytes");
    let given = Options { timeout: Duration::from_secs(1), ..options() };
    let store = bucket(&server, given);
    for (status, hint) in [(403, "AWS_ACCESS_KEY_ID"), (503, ".timeout(…)")] {
        server.script(move |_| Answer { status: Some((status, "no")), ..Answer::default() });
        let e = store.put("x", file.object(), false).unwrap_err();
        assert!(e.kind() == Kind::Io && e.hint_text().unwrap().contains(hint), "{e}");
        assert!(format!("{e:#}").contains("s3://b/x"), "{e}");
    }
    for (url, hint) in [("http://h/x", "machine"), ("hf://datasets/o/n/x", "huggingface-cli upload")] {
        let location = Location::of(url).unwrap().unwrap();
        let e = location.check_writable(url).unwrap_err();
        assert!(e.kind() == Kind::Unsupported && e.hint_text().unwrap().contains(hint), "{e}");
    }
    let web = Remote::new(&Location::of(&server.url).unwrap().unwrap(), options()).unwrap();
    assert_eq!(web.put("x", file.object(), false).unwrap_err().kind(), Kind::Unsupported);
    assert_eq!(web.remove("x").unwrap_err().kind(), Kind::Unsupported);
}
