//! `download` as it is typed, from a hub on loopback: what it says, what it exits with, how it is stopped.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::program::{Desk, Ran};
use crate::server::{COMMIT, Fault, Remote, Server, Setup, large, noise, small};

const SIZE: usize = 300_000;

fn files() -> Vec<Remote> {
    vec![
        small("README.md", "# data\n"),
        large("energy/x/data-1-of-1.bin", noise(SIZE)),
        small("energy/x/meta.json", "{}"),
        small("energy/x/meta.json.lock", ""),
        large("other/m4_daily/data-1-of-1.bin", noise(100)),
    ]
}

fn download(desk: &Desk, server: &Server, words: &str) -> Ran {
    desk.windrow_with(&format!("download {words}"), &[("HF_ENDPOINT", server.endpoint())])
}

fn paths(desk: &Desk, folder: &str) -> Vec<String> {
    desk.tree(folder).into_keys().filter(|path| !path.starts_with('.')).collect()
}

#[test]
fn a_data_set_comes_into_a_folder_of_its_name() {
    let (desk, server) = (Desk::new(), Server::good(files()));
    let out = download(&desk, &server, "some/data").done();
    assert!(out.starts_with("data: 5 files, 300 kB in ") && out.ends_with(" s, checked\n"), "{out}");
    assert_eq!(desk.tree("data")["energy/x/data-1-of-1.bin"], noise(SIZE));

    let again = download(&desk, &server, "some/data").done();
    assert!(again.ends_with("checked; 5 there already\n"), "{again}");

    let ran = download(&desk, &server, "some/data --include energy/* --exclude *.lock --out d/e --json");
    let json = ran.json();
    assert_eq!((&json["commit"], &json["output"]), (&json!(COMMIT), &json!("d/e")));
    assert_eq!(
        (&json["files"], &json["downloaded_files"], &json["failed"]),
        (&json!(2), &json!(2), &json!([]))
    );
    assert_eq!(paths(&desk, "d/e"), ["energy/x/data-1-of-1.bin", "energy/x/meta.json"]);
}

#[test]
fn a_dry_run_says_what_would_come() {
    let (desk, server) = (Desk::new(), Server::good(files()));
    let out = download(&desk, &server, "some/data --include energy/** --dry-run").done();
    assert!(
        out.contains("  300 kB  energy/x/data-1-of-1.bin\n") && out.contains("3 files, 300 kB in all"),
        "{out}"
    );
    assert!(desk.tree("data").is_empty());
    assert_eq!(server.n_content(), 0);
}

#[test]
fn a_url_of_a_file_is_downloaded_into_a_folder_of_its_name() {
    let (desk, server) = (Desk::new(), Server::good(files()));
    let url = format!("{}/datasets/some/data/resolve/{COMMIT}/README.md", server.endpoint());
    let out = desk.windrow(&format!("download {url}?X-Signature=secret")).done();
    assert!(out.starts_with("README: 1 file, 7 B in "), "{out}");
    let json = desk.windrow(&format!("download {url}?X-Signature=secret --json")).json();
    assert_eq!(
        (&json["repo"], &json["commit"], &json["unchanged_files"]),
        (&json!(url), &json!(null), &json!(1))
    );
    assert_eq!(paths(&desk, "README"), ["README.md"]);
    let dry = download(&desk, &server, "hf://datasets/some/data@main/energy --dry-run").done();
    assert!(dry.contains("  300 kB  x/data-1-of-1.bin\n"), "{dry}");
    assert!(desk.windrow(&format!("download {url} --revision x")).failed(2).contains("in the URL"));
    assert!(desk.windrow("download ftp://host/x").failed(1).contains("s3://"));
}

#[test]
fn partitions_are_those_of_time_300b_alone() {
    let desk = Desk::new();
    let usage = |words: &str| desk.windrow(&format!("download {words}")).failed(2);
    assert!(usage("time-300b --partitions ,").contains("names no partition"));
    assert!(usage("time-300b --partition-set all").contains("train, debug"));
    assert!(usage("some/data --partitions a").contains("--include"));
    assert!(usage("time-300b --partitions a --partition-set debug").contains("cannot be used with"));
    assert!(usage("time300b").contains("owner/name"));
    assert!(usage("some/data --include a[").contains("is not a pattern"));
    assert!(usage("some/data --revision ../x").contains("is not a revision"));
}

#[test]
fn time_300b_comes_by_partitions() {
    let mut files = files();
    for set in ["nature", "synthetic_small", "web", "sales/dominick", "finance", "healthcare/hospital"] {
        files.push(small(&format!("{set}/meta.json"), set));
    }
    let (desk, server) = (Desk::new(), Server::good(files));
    let time_300b = |words: &str| download(&desk, &server, &format!("time-300b {words}"));

    // The sets, without the locks that lie in the data set.
    time_300b("").done();
    let train = paths(&desk, "time300b_selected");
    assert_eq!(train.len(), 7, "{train:?}");
    assert!(
        train.contains(&"energy/x/meta.json".to_string())
            && !train.iter().any(|path| path.ends_with(".lock"))
    );
    time_300b("--partition-set debug --out debug").done();
    let debug =
        ["healthcare/hospital/meta.json", "other/m4_daily/data-1-of-1.bin", "sales/dominick/meta.json"];
    assert_eq!(paths(&desk, "debug"), debug);

    time_300b("--partitions sales/dominick/,web --out some").done();
    assert_eq!(paths(&desk, "some"), ["sales/dominick/meta.json", "web/meta.json"]);
    let err = time_300b("--partitions web,sale --out none").failed(1);
    assert!(err.contains("\"sale/**\"") && err.contains("sales/dominick"), "{err}");
    assert!(desk.tree("none").is_empty());
}

#[test]
fn a_refusal_and_nobody_there_exit_1_with_a_hint() {
    let gated = Server::start(Setup {
        files: files(),
        token: Some("hf_right"),
        listing: None,
        faults: Box::new(|_| Fault::None),
    });
    let desk = Desk::new();
    let err = download(&desk, &gated, "some/data").failed(1);
    assert!(err.contains("401") && err.contains("HF_TOKEN"), "{err}");
    let with = |token| {
        desk.windrow_with("download some/data", &[("HF_ENDPOINT", gated.endpoint()), ("HF_TOKEN", token)])
    };
    let err = with("hf_wrong").failed(1);
    assert!(err.contains("403") && !err.contains("hf_wrong"), "{err}");
    with("hf_right").done();
    // Kept by a login in the Hub's home, it is found there.
    std::fs::create_dir_all(desk.path("hf-home")).unwrap();
    std::fs::write(desk.path("hf-home/token"), "hf_right\n").unwrap();
    download(&desk, &gated, "some/data --out again").done();

    let offline = [("HF_ENDPOINT", gated.endpoint()), ("HF_HUB_OFFLINE", "1")];
    assert!(desk.windrow_with("download some/other", &offline).failed(1).contains("HF_HUB_OFFLINE"));
    desk.windrow_with("download some/data", &offline).done();
    assert!(download(&desk, &gated, "no/such").failed(1).contains("hint"));
}

#[test]
fn bad_bytes_exit_3_and_beside_good_ones_5() {
    let bad = |seen: &crate::server::Seen| {
        if seen.is_cdn && seen.target.contains(&large("", noise(SIZE)).sha256()) {
            Fault::Content(noise(SIZE - 1))
        } else {
            Fault::None
        }
    };
    let (desk, server) = (Desk::new(), Server::faulty(files(), bad));
    let err = download(&desk, &server, "some/data --include energy/x/*.bin -q").failed(3);
    assert!(err.contains("299999") && err.contains("energy/x/data-1-of-1.bin"), "{err}");

    let ran = download(&desk, &server, "some/data");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.out.contains("failed: energy/x/data-1-of-1.bin: ") && ran.out.contains("data: 4 of 5 files"),
        "{ran:?}"
    );
    let json = download(&desk, &server, "some/data --json").json();
    assert_eq!(json["failed"][0]["kind"], "corrupt");
    assert_eq!(json["failed"][0]["path"], "energy/x/data-1-of-1.bin");
    assert_eq!(paths(&desk, "data").len(), 4);
}

#[test]
fn ctrl_c_exits_130_and_the_same_command_continues() {
    let stall = |seen: &crate::server::Seen| {
        if seen.is_cdn && seen.nth == 1 { Fault::Stall(SIZE / 2) } else { Fault::None }
    };
    let (desk, server) = (Desk::new(), Server::faulty(vec![large("x.bin", noise(SIZE))], stall));
    let child = desk.start_with("download some/data", &[("HF_ENDPOINT", server.endpoint())]);
    let started = Instant::now();
    let part =
        |desk: &Desk| desk.tree("data").into_iter().any(|(p, b)| p.ends_with(".part") && b.len() == SIZE / 2);
    while !part(&desk) {
        assert!(started.elapsed() < Duration::from_secs(60), "nothing came");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output: Ran = child.wait_with_output().unwrap().into();
    assert!(output.failed(130).contains("run the same command again"));
    assert!(paths(&desk, "data").is_empty());

    let json = download(&desk, &server, "some/data --json").json();
    assert_eq!(json["resumed_bytes"], SIZE / 2);
    assert_eq!(desk.tree("data")["x.bin"], noise(SIZE));
}
