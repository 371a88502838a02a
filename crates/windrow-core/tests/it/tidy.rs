//! Rules of the code base that the compiler does not keep: which module may name which, and where files are touched.

use std::fs;
use std::path::{Path, PathBuf};

/// A module, and the modules it may name besides `error`, `array`, `record`, `row` and `watch`, which all may.
const ARROWS: &[(&str, &[&str])] = &[
    ("error.rs", &[]),
    ("array.rs", &[]),
    ("record.rs", &[]),
    ("row.rs", &[]),
    ("watch.rs", &[]),
    ("threads.rs", &[]),
    ("store", &[]),
    ("values", &[]),
    ("manifest", &["store"]),
    ("output", &["manifest", "store"]),
    ("source", &["store"]),
    ("format", &["manifest", "output", "source", "store", "values"]),
    ("view", &[]),
    ("sampler", &[]),
    ("collate", &["source", "values"]),
    ("plan", &["collate", "sampler", "view", "source"]),
    ("loader", &["plan", "collate", "sampler", "store"]),
    ("prepare", &["format", "manifest", "output", "source", "store", "values"]),
];

const MODULES: &[&str] = &[
    "store", "values", "manifest", "output", "source", "format", "view", "sampler", "collate", "plan",
    "loader", "prepare",
];

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(source_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

// The code of a file without its tests, its comments and its strings' docs.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]\nmod tests"))
        .enumerate()
        .take_while(|(_, line)| *line != "mod tests {")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(i, line)| (i + 1, line.to_string()))
        .collect()
}

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn breaches(check: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for path in source_files(&source_folder()) {
        let name = path.strip_prefix(source_folder()).unwrap().to_string_lossy().into_owned();
        for (number, line) in code(&path) {
            found.extend(check(&name, &line).map(|why| format!("{name}:{number}: {why}: {}", line.trim())));
        }
    }
    found
}

#[test]
fn rooms_name_only_the_rooms_their_arrows_lead_to() {
    let found = breaches(|name, line| {
        let room = name.split('/').next()?;
        let (_, allowed) = ARROWS.iter().find(|(r, _)| *r == room)?;
        let named = MODULES.iter().find(|r| line.contains(&format!("crate::{r}")))?;
        (*named != room && !allowed.contains(named)).then(|| format!("{room} must not name {named}"))
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_room_has_its_arrows_written_down() {
    for entry in fs::read_dir(source_folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "lib.rs" || ARROWS.iter().any(|(room, _)| *room == name), "{name} is not in ARROWS");
    }
}

#[test]
fn files_are_touched_only_by_the_store_and_the_writer_of_prepare() {
    let found = breaches(|name, line| {
        let may = name.starts_with("store/") || name.starts_with("output/");
        (!may && (line.contains("std::fs") || line.contains("File::open")))
            .then(|| "touches files".to_string())
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn views_and_samplers_neither_read_nor_draw_nor_look_at_the_clock() {
    let found = breaches(|name, line| {
        let pure = name.starts_with("view/") || name.starts_with("sampler/");
        let impure = ["std::io", "std::time", "Instant", "rand::", "thread", "std::env"]
            .iter()
            .find(|w| line.contains(**w))?;
        pure.then(|| format!("uses {impure}"))
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_heart_depends_on_no_arm_no_runtime_and_no_python() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let dependencies =
        manifest.split("[dev-dependencies]").next().unwrap().split("[dependencies]").nth(1).unwrap();
    let names: Vec<&str> = dependencies.lines().filter_map(|l| l.split(['.', ' ', '=']).next()).collect();
    for banned in [
        "tokio",
        "pyo3",
        "rayon",
        "windrow",
        "windrow-text",
        "windrow-hub",
        "hf-hub",
        "ureq",
        "windrow-zarr",
        "windrow-audio",
        "symphonia",
        "rubato",
        "zarrs",
        "windrow-candle",
        "candle-core",
        "tokenizers",
        "reqwest",
        "rand",
    ] {
        assert!(!names.contains(&banned), "the core depends on {banned}");
    }
}

#[test]
fn every_file_says_in_its_first_line_what_it_is_for() {
    for path in source_files(&source_folder()) {
        let text = fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! ") && first.len() > 20, "{}: first line is {first:?}", path.display());
    }
}
