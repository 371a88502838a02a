//! `windrow cache`, and what the commands do with a cache that is small, full or for reading only.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::program::{Desk, Ran};

/// A file of JSON lines, compressed, and another: what they expand to takes as many bytes each, and little more.
fn compressed(desk: &Desk) {
    for name in ["a", "b", "c"] {
        let lines: String = (0..2_000).map(|i| format!("{{\"text\": \"{name} {i:0>290}\"}}\n")).collect();
        desk.write(&format!("{name}.jsonl.zst"), zstd::encode_all(lines.as_bytes(), 1).unwrap());
    }
}

const LARGE: u64 = 2_000 * 300;

#[test]
fn the_cache_is_listed_and_cleared() {
    let desk = Desk::new();
    compressed(&desk);
    assert!(desk.windrow("cache").done().contains("cache: 0 entries, 0 B of at most "));
    desk.windrow("peek a.jsonl.zst -n 1").done();
    desk.windrow("peek b.jsonl.zst -n 1").done();
    let said = desk.windrow_with("cache", &[("WINDROW_CACHE_LIMIT", "2GB")]).done();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("expanded  ") && lines[0].ends_with("b.jsonl.zst"), "{said}");
    assert!(lines[0].contains(" s ago  ") && lines[1].ends_with("a.jsonl.zst"), "{said}");
    assert!(lines[2].contains("cache: 2 entries, ") && lines[2].ends_with(" of at most 2.0 GB"), "{said}");
    let listed = desk.windrow_with("cache --json", &[("WINDROW_CACHE_LIMIT", "2GB")]).json();
    assert_eq!((&listed["command"], &listed["limit_bytes"]), (&json!("cache"), &json!(2_000_000_000u64)));
    let entries = listed["entries"].as_array().unwrap();
    let bytes: u64 = entries.iter().map(|entry| entry["bytes"].as_u64().unwrap()).sum();
    assert!(bytes > 2 * LARGE && listed["bytes"] == bytes, "{listed}");
    assert_eq!((&entries[0]["kind"], &entries[0]["is_open"]), (&json!("expanded"), &json!(false)));
    let cleared = desk.windrow("cache --clear --json").json();
    assert_eq!(cleared["cleared"], json!({ "removed": 2, "removed_bytes": bytes, "left": [] }));
    assert!(desk.windrow("cache --clear").done().ends_with("cache: 0 entries removed, 0 B\n"));
    assert!(desk.tree("cache").is_empty());
}

#[test]
fn copies_of_what_was_fetched_are_listed_and_cleared_too() {
    let desk = Desk::new();
    compressed(&desk);
    let copy = |number: u8, about: &str| {
        let folder = format!("cache/remote/{number:032x}");
        desk.write(&format!("{folder}/data"), [1; 100_000]);
        desk.write(&format!("{folder}/sums"), [1; 16]);
        desk.write(&format!("{folder}/about.json"), about);
        std::fs::File::open(desk.path(&format!("{folder}/data"))).unwrap()
    };
    let open = copy(1, r#"{"url": "s3://bucket/tokens.bin", "size": 100000, "tag": "1"}"#);
    open.lock_shared().unwrap();
    copy(2, "not JSON");
    desk.windrow("peek a.jsonl.zst -n 1").done();
    let said = desk.windrow("cache").done();
    assert_eq!(said.lines().count(), 4, "{said}");
    assert!(said.contains("a.jsonl.zst\n") && said.contains("cache: 3 entries, "), "{said}");
    let line = |word: &str| said.lines().find(|line| line.ends_with(word)).unwrap().to_string();
    let fetched = line("  s3://bucket/tokens.bin");
    assert!(fetched.starts_with("fetched ") && fetched.contains(" kB     open  "), "{said}");
    assert!(line("  remote/00000000000000000000000000000002").contains("s ago"), "{said}");
    let listed = desk.windrow("cache --json").json();
    let entries = listed["entries"].as_array().unwrap();
    let bytes: u64 = entries.iter().map(|entry| entry["bytes"].as_u64().unwrap()).sum();
    assert!(bytes > LARGE + 200_000 && listed["bytes"] == bytes, "{listed}");
    let of = |source: &str| entries.iter().find(|entry| entry["source"] == source).unwrap();
    let open_one = of("s3://bucket/tokens.bin");
    assert_eq!((&open_one["kind"], &open_one["is_open"]), (&json!("fetched"), &json!(true)));
    assert_eq!(open_one["name"], "remote/00000000000000000000000000000001");
    let cleared = desk.windrow("cache --clear --json").json();
    assert_eq!(
        (&cleared["cleared"]["removed"], &cleared["cleared"]["left"]),
        (&json!(2), &json!([open_one]))
    );
    assert!(desk.path("cache/remote/00000000000000000000000000000001/data").exists());
    drop(open);
    assert!(desk.windrow("cache --clear").done().contains("cache: 1 entry removed, "));
    assert!(desk.windrow("cache").done().contains("cache: 0 entries, 0 B of at most "));
}

#[test]
fn a_limit_that_is_too_small_is_an_error_that_names_it() {
    let desk = Desk::new();
    compressed(&desk);
    let err = desk.windrow_with("peek a.jsonl.zst", &[("WINDROW_CACHE_LIMIT", "500kB")]).failed(2);
    for word in
        ["500000 bytes", "WINDROW_CACHE_LIMIT", "a.jsonl.zst", "hint: set WINDROW_CACHE_LIMIT to more"]
    {
        assert!(err.contains(word), "{word}: {err}");
    }
    assert!(desk.tree("cache").is_empty());
    // One after the other has its space.
    for name in ["a", "b", "c", "a"] {
        let peek = format!("peek {name}.jsonl.zst -n 1");
        desk.windrow_with(&peek, &[("WINDROW_CACHE_LIMIT", "700kB")]).done();
        assert_eq!(desk.tree("cache").len(), 1);
    }
    let err = desk.windrow_with("cache", &[("WINDROW_CACHE_LIMIT", "lots")]).failed(2);
    assert!(err.contains("\"lots\" is not a size") && err.contains("20GB"), "{err}");
}

// Runs a script whose cache is a disk of its own, of a megabyte; `None` where this machine lets nobody mount.
fn on_a_small_disk(desk: &Desk, script: &str) -> Option<Ran> {
    let mount = "mount -t tmpfs -o size=1m none cache";
    let run = |script: String| {
        let mut command = Command::new("unshare");
        command.args(["-Urm", "bash", "-ec", &script]).current_dir(desk.path("")).stdin(Stdio::null());
        command
            .env("WINDROW_CACHE", desk.path("cache"))
            .env("WINDROW", env!("CARGO_BIN_EXE_windrow"))
            .output()
    };
    std::fs::create_dir_all(desk.path("cache")).unwrap();
    run(mount.to_string()).ok().filter(|output| output.status.success())?;
    Some(run(format!("{mount}; {script}")).unwrap().into())
}

#[test]
fn a_full_disk_loses_what_was_used_least_recently_and_names_itself_where_that_is_not_enough() {
    let desk = Desk::new();
    compressed(&desk);
    let lines: String = (0..20_000).map(|i| format!("{{\"text\": \"{i:0>90}\"}}\n")).collect();
    desk.write("large.jsonl.zst", zstd::encode_all(lines.as_bytes(), 1).unwrap());
    let Some(ran) = on_a_small_disk(
        &desk,
        "export WINDROW_CACHE_LIMIT=1TB; for f in a b c; do $WINDROW peek $f.jsonl.zst -n 1 >/dev/null; done; \
         $WINDROW cache; $WINDROW peek large.jsonl.zst && exit 9; ls -A cache; \
         unset WINDROW_CACHE_LIMIT; $WINDROW cache",
    ) else {
        return;
    };
    let err = ran.err.clone();
    let said = ran.done();
    assert!(said.contains("c.jsonl.zst\n") && said.contains("1 entry, "), "{said}");
    assert!(!said.contains("a.jsonl.zst") && said.contains("0 entries, 0 B of at most 524 kB"), "{said}");
    assert!(err.contains("No space left") || err.contains("cannot write"), "{err}");
    assert!(err.contains("set WINDROW_CACHE to a folder with more space"), "{err}");
}

#[test]
fn a_cache_for_reading_only_is_read() {
    let desk = Desk::new();
    compressed(&desk);
    desk.windrow("peek a.jsonl.zst -n 1").done();
    let Some(ran) = on_a_small_disk(
        &desk,
        "umount cache; mount --bind cache cache; mount -o remount,bind,ro cache; \
         $WINDROW peek a.jsonl.zst -n 1 && $WINDROW cache && $WINDROW peek b.jsonl.zst -n 1",
    ) else {
        return;
    };
    assert!(ran.out.contains("1 entry, "), "{ran:?}");
    let err = ran.failed(1);
    assert!(err.contains("create a file in the cache") && err.contains("WINDROW_CACHE"), "{err}");
}
