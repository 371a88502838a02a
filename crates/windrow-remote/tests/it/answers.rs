//! Stores that refuse: what is followed, what is asked otherwise, and errors that name what to set.

use windrow_core::{Kind, store::Store};

use crate::server::{Answer, Asked, Server};
use crate::{bucket, content, open, options, read, s3};

const MIB: usize = 1 << 20;
const KEYS: [(&str, &str); 3] =
    [("access_key_id", "AKEY"), ("secret_access_key", "ASECRET"), ("region", "us-east-1")];

fn refused(status: u16, body: &'static str) -> Answer {
    Answer { status: Some((status, body)), ..Answer::default() }
}

#[test]
fn what_a_store_says_of_keys_clocks_and_regions_is_in_the_hint_whatever_its_status() {
    let server = Server::new([("b/x.bin", content(3 * MIB))]);
    let cases = [
        (400, "<Error><Code>ExpiredToken</Code></Error>", "have expired"),
        (403, "<Error><Code>ExpiredToken</Code></Error>", "have expired"),
        (
            400,
            "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-9</Region></Error>",
            "eu-west-9",
        ),
        (400, "<Error><Code>AuthorizationHeaderMalformed</Code></Error>", "another region: set AWS_REGION"),
        (301, "<Error><Code>PermanentRedirect</Code></Error>", "another region: set AWS_REGION"),
        (403, "<Error><Code>RequestTimeTooSkewed</Code></Error>", "clock"),
        (403, "<Error><Code>AccessDenied</Code></Error>", "AWS_ACCESS_KEY_ID"),
    ];
    for (status, body, hint) in cases {
        server.script(|_| Answer::default());
        let store = bucket(&server, options());
        let object = store.open("x.bin").unwrap();
        server.script(move |_| refused(status, body));
        // Of a file, of one that is being read, and of a folder.
        let found = [
            bucket(&server, options()).open("x.bin").map(drop).unwrap_err(),
            read(object.as_ref(), 2 * MIB as u64, 10).unwrap_err(),
            bucket(&server, options()).walk("folder").map(drop).unwrap_err(),
        ];
        for e in found {
            assert_eq!(e.kind(), Kind::Io, "{status} {body}: {e}");
            assert!(e.hint_text().is_some_and(|text| text.contains(hint)), "{status} {body}: {e:#}");
        }
    }
}

#[test]
fn a_bucket_in_another_region_is_asked_there() {
    let whole = content(3 * MIB);
    let server = Server::new([("b/x.bin", whole.clone())]);
    let is_there = |asked: &Asked| asked.authorization.as_ref().unwrap().contains("/eu-west-9/s3/");
    let named = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-9</Region></Error>";
    let moved = "x-amz-bucket-region: eu-west-9";
    for (status, body, header) in [(301, "", Some(moved)), (400, "", Some(moved)), (400, named, None)] {
        server.script(move |asked| {
            if is_there(asked) {
                Answer::default()
            } else {
                Answer { header: header.map(str::to_string), ..refused(status, body) }
            }
        });
        let object = s3(&server, options(), &KEYS).open("x.bin").unwrap();
        assert_eq!(read(object.as_ref(), MIB as u64, 1000).unwrap(), whole[MIB..MIB + 1000]);
        // It is looked for there from the first answer on.
        let asked = server.asked();
        let detours = asked.iter().filter(|asked| !is_there(asked)).count();
        assert!((1..=3).contains(&detours) && is_there(asked.last().unwrap()), "{status}: {asked:?}");
    }
    // Once, not for ever.
    server.script(move |_| Answer { header: Some(moved.to_string()), ..refused(301, "") });
    let e = s3(&server, options(), &KEYS).open("x.bin").map(drop).unwrap_err();
    assert!(e.hint_text().unwrap().contains("AWS_REGION=eu-west-9"), "{e:#}");
    assert!(server.asked().len() < 10);
}

#[test]
fn a_store_that_gives_bytes_alone_is_asked_for_one() {
    let whole = content(2 * MIB);
    let server = Server::new([("b/x.bin", whole.clone()), ("b/y.bin", whole.clone())]);
    server.script(|asked| if asked.method == "HEAD" { refused(403, "") } else { Answer::default() });
    let store = bucket(&server, options());
    for name in ["x.bin", "y.bin"] {
        let object = store.open(name).unwrap();
        assert_eq!((object.size(), object.tag()), (whole.len() as u64, Some("\"v1\"")));
        assert_eq!(read(object.as_ref(), 5, 1000).unwrap(), whole[5..1005]);
    }
    assert_eq!(server.asked().iter().filter(|asked| asked.method == "HEAD").count(), 1);
}

#[test]
fn a_signature_that_has_expired_is_to_be_made_again() {
    let server = Server::new([("x.bin?X-Amz-Signature=0a", content(3 * MIB))]);
    let (_, object) = open(&server.url, "x.bin?X-Amz-Signature=0a", options());
    server.script(|_| {
        refused(403, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
    });
    let e = read(object.as_ref(), 2 * MIB as u64, 10).unwrap_err();
    assert!(e.kind() == Kind::Io && e.hint_text().unwrap().contains("sign it again"), "{e:#}");
    assert!(!format!("{e:#}").contains("0a"), "{e:#}");
}
