//! Buckets and web servers: what they say of a version is compared, and the hash that windrow leaves beside what it writes.

use std::io::{Read, Write};
use std::net::TcpStream;

use windrow::Kind;
use windrow::download::{Digest, Request, choose, download};
use windrow::format::Options;
use xxhash_rust::xxh3::xxh3_64;

use super::desk::{Desk, QUICK};
use super::server::{COMMIT, Fault, Seen, Server, noise, small};
use super::store;
use crate::s3::S3;

const SIZE: usize = 300_000;

fn of_bucket(desk: &Desk, s3: &S3, url: &str) -> Request {
    let mut request = Request::new(url, desk.path("out"));
    request.options = Options { timeout: Some(QUICK), ..s3.options() };
    request
}

#[test]
fn a_folder_of_a_bucket_comes_once() {
    let desk = Desk::new();
    desk.write("bucket/corpus/a/x.bin", noise(SIZE));
    desk.write("bucket/corpus/.hidden", "h");
    desk.write("bucket/corpus/empty", "");
    desk.write("bucket/other/y.bin", "y");
    let s3 = S3::serve(&desk.path(""));
    let mut request = of_bucket(&desk, &s3, "s3://bucket/corpus");
    let listing = choose(&request, &()).unwrap();
    assert_eq!(listing.commit, None);
    assert!(listing.files.iter().all(|file| matches!(&file.digest, Digest::Tag(tag) if !tag.is_empty())));

    let report = download(&request, &()).unwrap();
    assert_eq!((report.downloaded_files, report.bytes, report.failed.len()), (3, SIZE as u64 + 1, 0));
    let seen = desk.seen();
    assert_eq!(seen.keys().collect::<Vec<_>>(), [".hidden", "a/x.bin", "empty"]);
    assert_eq!(seen["a/x.bin"], noise(SIZE));
    assert_eq!(download(&request, &()).unwrap().unchanged_files, 3);

    // A newer version replaces what was downloaded; what somebody else wrote stays.
    desk.write("bucket/corpus/a/x.bin", noise(SIZE + 1));
    desk.write("out/.hidden", "mine");
    let report = download(&request, &()).unwrap();
    assert_eq!((report.unchanged_files, report.downloaded_files), (1, 1));
    assert_eq!((report.failed[0].path.as_str(), report.failed[0].error.kind()), (".hidden", Kind::Exists));
    assert_eq!(desk.seen()["a/x.bin"], noise(SIZE + 1));
    request.include = vec!["nothing*".to_string()];
    assert_eq!(download(&request, &()).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn the_hash_that_was_left_beside_an_object_is_compared() {
    let desk = Desk::new();
    let server = store::Server::new([]);
    let put = |name: &str, hash: u64| {
        let mut stream = TcpStream::connect(server.url.trim_start_matches("http://")).unwrap();
        let head =
            format!("x-amz-meta-windrowxxh3: {hash:016x}\r\ncontent-length: {SIZE}\r\nconnection: close");
        write!(stream, "PUT /b/{name} HTTP/1.1\r\n{head}\r\n\r\n").unwrap();
        stream.write_all(&noise(SIZE)).unwrap();
        assert!(stream.read(&mut [0; 16]).unwrap() > 0);
    };
    put("right.bin", xxh3_64(&noise(SIZE)));
    put("wrong.bin", 7);
    let get = |name: &str| {
        let mut request = Request::new(format!("s3://b/{name}"), desk.path("out"));
        let said = [("endpoint_url", server.url.as_str()), ("anon", "true"), ("region", "us-east-1")];
        request.options.store_options =
            said.map(|(name, value)| (name.to_string(), value.to_string())).into();
        download(&request, &()).unwrap()
    };
    assert_eq!(get("right.bin").downloaded_files, 1);
    let failed = get("wrong.bin").failed.remove(0).error;
    assert!(failed.kind() == Kind::Corrupt && failed.message().contains("0000000000000007"), "{failed}");
    assert_eq!(desk.seen().keys().collect::<Vec<_>>(), ["right.bin"]);
}

// The server of the Hub, as a web server.
fn of_web(desk: &Desk, server: &Server, path: &str) -> Request {
    let mut request = Request::new(format!("{}/{path}", server.endpoint()), desk.path("out"));
    request.options.timeout = Some(QUICK);
    request
}

#[test]
fn a_file_of_a_web_server_is_resumed_if_it_is_the_same() {
    let desk = Desk::new();
    let cut = |seen: &Seen| {
        if seen.header("range").is_some() && seen.nth == 2 { Fault::Cut(SIZE / 2) } else { Fault::None }
    };
    let path = format!("datasets/some/data/resolve/{}/x.bin", COMMIT);
    let server = Server::faulty(vec![small("x.bin", noise(SIZE))], cut);
    let request = of_web(&desk, &server, &path);
    let report = download(&request, &()).unwrap();
    assert_eq!((report.downloaded_files, report.name), (1, request.url.clone()));
    assert_eq!(desk.seen()["x.bin"], noise(SIZE));
    let asked: Vec<Seen> = server.log().into_iter().filter(|seen| seen.header("range").is_some()).collect();
    assert_eq!(asked.iter().map(Seen::start).collect::<Vec<_>>(), [0, SIZE / 2]);
    assert!(asked.iter().all(|seen| seen.header("if-match").is_some()));
    assert_eq!(download(&request, &()).unwrap().unchanged_files, 1);

    let mut signed = of_web(&desk, &server, &format!("{path}?X-Signature=secret"));
    signed.output = desk.path("signed");
    assert!(!download(&signed, &()).unwrap().name.contains("secret"));
    let e = download(&of_web(&desk, &server, "no/such.bin"), &()).unwrap_err();
    assert_eq!(e.kind(), Kind::NotFound, "{e}");
}
