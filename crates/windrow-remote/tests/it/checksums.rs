//! Bytes that changed on the way, of objects that their store keeps a checksum of.

use std::collections::BTreeMap;

use crc_fast::{CrcAlgorithm, checksum};
use windrow_core::Kind;
use windrow_core::store::Store;
use windrow_remote::{Location, Options, Remote};

use crate::server::{Answer, Asked, Server};
use crate::{bucket, content, options, read, s3};

const MIB: usize = 1 << 20;

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn crc32c(bytes: &[u8]) -> String {
    base64(&(checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32).to_be_bytes())
}

/// As S3: to those that ask for it, and for no range.
fn as_s3(asked: &Asked, header: &str) -> Option<String> {
    (asked.asks_for_checksum && asked.range.is_none()).then(|| header.to_string())
}

fn one(server: &Server, path: &str, answer: impl Fn(&Asked, u64) -> Answer + Send + Sync + 'static) {
    let path = path.to_string();
    let first = std::sync::atomic::AtomicU64::new(0);
    server.script(move |asked| {
        if asked.path != path || asked.method != "GET" {
            return Answer::default();
        }
        answer(asked, first.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    });
}

#[test]
fn bytes_that_changed_on_the_way_are_asked_for_again() {
    let whole = content(100_000);
    let header = format!("x-amz-checksum-crc32c: {}", crc32c(&whole));
    let server = Server::new([("b/x.bin", whole.clone())]);
    let store =
        s3(&server, options(), &[("access_key_id", "K"), ("secret_access_key", "S"), ("region", "r")]);
    let object = store.open("x.bin").unwrap();
    // The second body is cut before the byte that changes in the third.
    one(&server, "/b/x.bin", move |asked, number| Answer {
        header: as_s3(asked, &header),
        flip: [Some(70_000), None, Some(3), None].get(number as usize).copied().flatten(),
        cut: (number == 1).then_some(60_000),
        ..Answer::default()
    });
    server.asked();
    assert_eq!(read(object.as_ref(), 500, 100).unwrap(), whole[500..600]);
    let asked = server.asked();
    let ranges: Vec<_> = asked.iter().map(|asked| asked.range.map(|(start, _)| start)).collect();
    assert_eq!(ranges.len(), 4, "{asked:?}");
    assert!(ranges[0].is_none() && ranges[1].is_none() && ranges[2].is_some() && ranges[3].is_none());
    assert!(asked.iter().all(|asked| asked.asks_for_checksum == asked.range.is_none()), "{asked:?}");
    assert!(asked.iter().all(|asked| asked.if_match.as_deref() == Some("\"v1\"")), "{asked:?}");
    assert!(asked[0].authorization.as_ref().unwrap().contains("x-amz-checksum-mode"), "{asked:?}");
    assert_eq!(store.traffic().unwrap().retries, 3);
}

#[test]
fn bytes_that_are_never_those_of_the_checksum_are_corrupt() {
    let header = format!("x-amz-checksum-crc32c: {}", crc32c(&content(1000)));
    let server = Server::new([("b/x.bin", content(1001))]);
    let store = bucket(&server, options());
    let object = store.open("x.bin").unwrap();
    one(&server, "/b/x.bin", move |asked, _| Answer { header: as_s3(asked, &header), ..Answer::default() });
    server.asked();
    let e = read(object.as_ref(), 0, 10).unwrap_err();
    assert_eq!(e.kind(), Kind::Corrupt);
    assert_eq!(e.place().file.as_deref(), Some("s3://b/x.bin"));
    let said = format!("{e:#}");
    assert!(said.contains("expected Crc32c") && said.contains(&crc32c(&content(1001))), "{said}");
    assert_eq!(server.asked().len(), 4);
}

#[test]
fn what_a_checksum_is_not_of_is_not_compared_with_it() {
    let (small, large) = (content(1000), content(3 * MIB));
    let server = Server::new([("b/small.bin", small.clone()), ("b/large.bin", large.clone())]);
    let store = bucket(&server, options());
    let wrong = crc32c(b"something else");
    let answers = [
        // Of the parts that the object came in.
        ("small.bin", format!("x-amz-checksum-crc32c: {wrong}-2")),
        ("small.bin", format!("x-amz-checksum-type: COMPOSITE\r\nx-amz-checksum-crc32c: {wrong}")),
        // Of all of an object whose first part is asked for.
        ("large.bin", format!("x-amz-checksum-crc32c: {wrong}")),
        ("large.bin", format!("x-goog-hash: crc32c={wrong}")),
        ("large.bin", format!("x-ms-blob-content-md5: {wrong}")),
    ];
    for (name, header) in answers {
        let whole = if name == "small.bin" { &small } else { &large };
        let said = header.clone();
        server.script(move |_| Answer { header: Some(said.clone()), ..Answer::default() });
        store.forget();
        let object = store.open(name).unwrap();
        assert_eq!(read(object.as_ref(), 10, 500).unwrap(), whole[10..510], "{header}");
    }
}

#[test]
fn checksums_are_not_asked_for_where_the_setting_of_aws_says_so() {
    let whole = content(1000);
    let server = Server::new([("b/x.bin", whole.clone())]);
    let given = |value| s3(&server, options(), &[("anon", "true"), ("response_checksum_validation", value)]);
    let object = given("when_required").open("x.bin").unwrap();
    server.asked();
    assert_eq!(read(object.as_ref(), 0, 1000).unwrap(), whole);
    assert!(server.asked().iter().all(|asked| !asked.asks_for_checksum && asked.range.is_some()));
    let location = Location::of("s3://b").unwrap().unwrap();
    let store = BTreeMap::from([("response_checksum_validation".to_string(), "never".to_string())]);
    let e = Remote::new(&location, Options { store, ..options() }).err().unwrap();
    assert!(e.kind() == Kind::Config && e.message().contains("when_required"), "{e}");
}

#[test]
fn google_and_azure_say_theirs_unasked() {
    let whole = content(1000);
    let md5 = "1cwlsEyAE0kjubvQ8S0TKA==";
    for (url, key, header) in [
        ("gs://b", "b/x%2Ebin", format!("x-goog-hash: crc32c={},md5=x", crc32c(&whole))),
        ("az://b", "b/x.bin", format!("x-ms-blob-content-md5: {md5}")),
    ] {
        let server = Server::new([(key, whole.clone())]);
        let mut given = options();
        for (name, value) in [("endpoint_url", server.url.as_str()), ("anon", "true")] {
            given.store.insert(name.to_string(), value.to_string());
        }
        if url.starts_with("az") {
            given.store.insert("account_name".to_string(), "a".to_string());
        }
        let store = Remote::new(&Location::of(url).unwrap().unwrap(), given).unwrap();
        let object = store.open("x.bin").unwrap();
        one(&server, &format!("/{key}"), move |_, number| Answer {
            header: Some(header.clone()),
            flip: (number == 0).then_some(999),
            ..Answer::default()
        });
        server.asked();
        assert_eq!(read(object.as_ref(), 0, 1000).unwrap(), whole, "{url}");
        assert_eq!(server.asked().len(), 2, "{url}");
    }
}

#[test]
fn an_object_that_is_handed_over_as_it_comes_comes_once_more() {
    let whole = content(3 * MIB);
    let header = format!("x-amz-checksum-crc32c: {}", crc32c(&whole));
    let server = Server::new([("b/x.bin", whole.clone())]);
    let store = bucket(&server, options());
    let entry = store.entry("x.bin").unwrap();
    let answer = move |asked: &Asked, flip: bool| Answer {
        header: as_s3(asked, &header),
        flip: flip.then_some(2 * MIB),
        ..Answer::default()
    };
    let always = answer.clone();
    one(&server, "/b/x.bin", move |asked, number| answer(asked, number == 0));
    let mut came = Vec::new();
    let mut take = |at: u64, bytes: &[u8]| {
        if at == 0 {
            came.clear();
        }
        assert_eq!(at, came.len() as u64);
        came.extend_from_slice(bytes);
        Ok(())
    };
    store.stream(&entry, 0, &mut take).unwrap();
    assert_eq!(came, whole);
    one(&server, "/b/x.bin", move |asked, _| always(asked, true));
    let e = store.stream(&entry, 0, &mut |_, _| Ok(())).unwrap_err();
    assert!(e.kind() == Kind::Corrupt && e.place().file.as_deref() == Some("s3://b/x.bin"), "{e:#}");
    // From elsewhere on nothing can be compared.
    store.stream(&entry, 1, &mut |_, _| Ok(())).unwrap();
}
