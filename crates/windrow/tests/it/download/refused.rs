//! Who may read what, and listings that lie.

use windrow::Kind;
use windrow::download::{download, hub_url};

use super::desk::Desk;
use super::server::{COMMIT, Fault, Server, Setup, large, noise, small};

fn gated() -> Server {
    Server::start(Setup {
        files: vec![small("a", "1"), large("x.bin", noise(1000))],
        token: Some("hf_right"),
        listing: None,
        faults: Box::new(|_| Fault::None),
    })
}

fn listing(entries: &str) -> Server {
    Server::start(Setup {
        files: vec![small("a", "1")],
        token: None,
        listing: Some(entries.to_string()),
        faults: Box::new(|_| Fault::None),
    })
}

#[test]
fn the_token_goes_to_the_endpoint_and_to_nobody_else() {
    let (desk, server) = (Desk::new(), gated());
    let mut request = desk.request(&server);
    request.options.store_options.insert("token".to_string(), "hf_right".to_string());
    assert_eq!(download(&request, &()).unwrap().done_files(), 2);
    for seen in server.log() {
        assert_eq!(seen.header("authorization").is_some(), !seen.is_cdn, "{seen:?}");
    }
    assert!(server.log().iter().any(|seen| seen.is_cdn));
}

#[test]
fn without_the_token_or_with_a_wrong_one_the_error_says_how_to_mend_it() {
    let (desk, server) = (Desk::new(), gated());
    for (name, value) in [("anon", "true"), ("token", "hf_wrong")] {
        let mut request = desk.request(&server);
        request.options.store_options.insert(name.to_string(), value.to_string());
        let e = download(&request, &()).unwrap_err();
        assert_eq!(e.kind(), Kind::Io);
        let hint = e.hint_text().unwrap();
        assert!(hint.contains("HF_TOKEN") && hint.contains("its page"), "{e}");
        assert!(!format!("{e:#}").contains("hf_wrong"), "{e}");
    }
    // A refusal is not asked about again.
    assert_eq!(server.log().len(), 2);
    assert!(!desk.path("out").exists());
}

#[test]
fn a_name_or_revision_that_is_not_there_says_so() {
    let (desk, server) = (Desk::new(), Server::good(vec![small("a", "1")]));
    let get = |repo, revision| {
        let mut request = desk.request(&server);
        request.url = hub_url(repo, revision)?;
        download(&request, &())
    };
    let e = get("some/thing-else", "main").unwrap_err();
    assert_eq!(e.kind(), Kind::NotFound);
    assert!(e.message().contains("some/thing-else"), "{e}");

    assert_eq!(get("some/data", "v9").unwrap_err().kind(), Kind::NotFound);
    for revision in ["", "../../x", "a b", "a?b"] {
        assert_eq!(get("some/data", revision).unwrap_err().kind(), Kind::Config, "{revision:?}");
    }
}

#[test]
fn listings_that_lead_elsewhere_or_make_no_sense_are_refused() {
    let entry = |path: &str| format!(r#"{{"type":"file","oid":"{COMMIT}","size":1,"path":"{path}"}}"#);
    let hostile = [
        format!("[{}]", entry("../x")),
        format!("[{}]", entry("/tmp/x")),
        format!("[{}]", entry("a/../../x")),
        format!("[{},{}]", entry("good"), entry(".windrow-download/record.json")),
        format!("[{},{}]", entry("a"), entry("a")),
        format!("[{}]", entry("a").replace(COMMIT, "nonsense")),
        format!("[{}]", entry("a").replace("\"size\":1", "\"size\":-1")),
        "{}".to_string(),
        "<html>".to_string(),
        "[".to_string(),
    ];
    for text in hostile {
        let (desk, server) = (Desk::new(), listing(&text));
        let e = desk.get(&server).unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt, "{text}: {e}");
        assert!(!desk.path("out").exists(), "{text}");
        assert_eq!(server.n_content(), 0);
    }
}

#[test]
fn a_listing_that_claims_more_than_there_is_room_for_is_refused_before_anything_is_fetched() {
    let entry = |path| format!(r#"{{"type":"file","oid":"{COMMIT}","size":{},"path":"{path}"}}"#, u64::MAX);
    let text = format!("[{},{}]", entry("a"), entry("b"));
    let (desk, server) = (Desk::new(), listing(&text));
    let e = desk.get(&server).unwrap_err();
    assert!(e.message().contains("room"), "{e}");
    assert_eq!(server.n_content(), 0);
}

#[test]
fn a_listing_that_continues_in_a_circle_or_elsewhere_is_refused() {
    let other = Server::good(vec![]);
    let elsewhere = format!("{}/api/datasets/some/data/tree/x", other.endpoint());
    for next in [String::new(), elsewhere] {
        let desk = Desk::new();
        let server = Server::faulty(vec![small("a", "1")], move |seen| {
            if !seen.target.contains("/tree/") {
                Fault::None
            } else if next.is_empty() {
                Fault::Next(format!("http://{}{}", seen.header("host").unwrap_or_default(), seen.target))
            } else {
                Fault::Next(next.clone())
            }
        });
        let e = desk.get(&server).unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt, "{e}");
        assert!(server.log().len() < 5 && other.log().is_empty());
    }
}

#[test]
fn a_circle_of_redirects_ends() {
    let server = Server::faulty(vec![small("a", "1")], |seen| {
        if seen.target.contains("/tree/") {
            Fault::Status(307, "Location: /api/datasets/some/data/tree/x\r\n")
        } else {
            Fault::None
        }
    });
    let e = Desk::new().get(&server).unwrap_err();
    assert!(e.message().contains("redirects"), "{e}");
    assert!(server.log().len() < 20);
}
