//! Rules of the code base that the compiler does not keep: which module may name which, and where files are touched.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A module, and the modules it may name besides `error`, `array`, `near`, `number`, `record`, `row`, `secrets`, `touch` and `watch`,
/// which all may.
const ARROWS: &[(&str, &[&str])] = &[
    ("error.rs", &[]),
    ("array.rs", &[]),
    ("record.rs", &[]),
    ("near.rs", &[]),
    ("number.rs", &[]),
    ("row.rs", &[]),
    ("secrets.rs", &[]),
    ("watch.rs", &[]),
    ("panics.rs", &[]),
    ("per_process.rs", &[]),
    ("permutation.rs", &[]),
    ("stop.rs", &[]),
    ("threads.rs", &[]),
    ("spelling.rs", &[]),
    ("touch.rs", &[]),
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
];

const MODULES: &[&str] = &[
    "store", "values", "manifest", "output", "source", "format", "view", "sampler", "collate", "plan",
    "loader",
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

/// The sources of another crate of the workspace.
fn sources_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")
}

fn breaches(check: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    breaches_in(&source_folder(), check)
}

fn breaches_in(sources: &Path, check: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for path in source_files(sources) {
        let name = path.strip_prefix(sources).unwrap().to_string_lossy().into_owned();
        for (number, line) in code(&path) {
            found.extend(check(&name, &line).map(|why| format!("{name}:{number}: {why}: {}", line.trim())));
        }
    }
    found
}

#[test]
fn modules_name_only_the_modules_their_arrows_lead_to() {
    let found = breaches(|name, line| {
        let module = name.split('/').next()?;
        let (_, allowed) = ARROWS.iter().find(|(m, _)| *m == module)?;
        let named = MODULES.iter().find(|m| line.contains(&format!("crate::{m}")))?;
        (*named != module && !allowed.contains(named)).then(|| format!("{module} must not name {named}"))
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_module_has_its_arrows_written_down() {
    for entry in fs::read_dir(source_folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name == "lib.rs" || ARROWS.iter().any(|(module, _)| *module == name),
            "{name} is not in ARROWS"
        );
    }
}

#[test]
fn files_are_touched_only_by_the_store_and_what_writers_stand_on() {
    let touches = |line: &str| line.contains("std::fs") || line.contains("File::open");
    let mut found = breaches(|name, line| {
        let may = name.starts_with("store/") || name.starts_with("output/");
        (!may && touches(line)).then(|| "touches files".to_string())
    });
    for other in ["windrow-ipc", "windrow-pickle", "windrow-formats", "windrow-prepare"] {
        found.extend(breaches_in(&sources_of(other), |_, line| {
            touches(line).then(|| format!("{other} touches files"))
        }));
    }
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

/// What a crate depends on, tests apart.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = fs::read_to_string(sources_of(name).join("../Cargo.toml")).unwrap();
    let section =
        manifest.split("[dev-dependencies]").next().unwrap().split("[dependencies]").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).map(str::to_string).collect()
}

#[test]
fn the_core_depends_on_no_format_no_integration_no_runtime_and_no_python() {
    let of_core = dependencies("windrow-core");
    for banned in
        ["tokio", "pyo3", "rayon", "zip", "serde-saphyr", "tokenizers", "zarrs", "ureq", "reqwest", "rand"]
    {
        assert!(!of_core.iter().any(|name| name == banned), "the core depends on {banned}");
    }
    assert!(!of_core.iter().any(|name| name.starts_with("windrow")), "{of_core:?}");
}

/// Formats, by names that say nothing else. A group of zarr is known by hidden names, before any format is asked.
const FORMATS: [&str; 24] = [
    "Arrow",
    "ArrayRecord",
    "Avro",
    "Bagz",
    "CSV",
    "GGUF",
    "HDF5",
    "Lance",
    "LitData",
    "MDS",
    "Megatron",
    "MosaicML",
    "OLMo",
    "ORC",
    "Parquet",
    "SQLite",
    "TFRecord",
    "WebDataset",
    "YAML",
    "datatrove",
    "fastText",
    "llm.c",
    "pickle",
    "safetensors",
];

#[test]
fn the_core_names_no_format() {
    let found = breaches(|name, line| {
        let named = FORMATS.iter().find(|format| line.contains(**format))?;
        (!name.ends_with("tests.rs")).then(|| format!("names {named}"))
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn formats_and_prepare_stand_beside_each_other_on_the_core() {
    for (name, allowed) in [
        ("windrow-prepare", &["windrow-core"][..]),
        ("windrow-ipc", &["windrow-core"]),
        ("windrow-pickle", &["windrow-core"]),
        ("windrow-formats", &["windrow-core", "windrow-ipc", "windrow-pickle"]),
    ] {
        let found: Vec<String> =
            dependencies(name).into_iter().filter(|name| name.starts_with("windrow")).collect();
        assert_eq!(found, allowed, "{name}");
    }
}

#[test]
fn every_file_says_in_its_first_line_what_it_is_for() {
    let crates = ["windrow-core", "windrow-ipc", "windrow-pickle", "windrow-formats", "windrow-prepare"];
    for path in crates.iter().flat_map(|name| source_files(&sources_of(name))) {
        let text = fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! ") && first.len() > 20, "{}: first line is {first:?}", path.display());
    }
}

/// What the list of modules in a crate's `//!` names: lines of `` * `name`: … ``.
fn listed(text: &str) -> BTreeSet<String> {
    let docs = text.lines().filter_map(|line| line.strip_prefix("//! * `"));
    docs.filter_map(|line| line.split_once("`:")).map(|(name, _)| name.to_string()).collect()
}

#[test]
fn every_crate_says_what_each_of_its_modules_is_for() {
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap() {
        let src = entry.unwrap().path().join("src");
        let entries = fs::read_dir(&src).unwrap().map(|entry| entry.unwrap().path());
        let modules: BTreeSet<String> = entries
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .filter(|name| name != "lib" && name != "main")
            .collect();
        let root = src.join("lib.rs");
        let listed = listed(&fs::read_to_string(&root).unwrap());
        let differing: Vec<&String> = modules.symmetric_difference(&listed).collect();
        assert!(differing.is_empty(), "{}: its //! and its folder differ in {differing:?}", root.display());
    }
}

#[test]
fn the_map_fits_on_a_page() {
    let map = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let text = fs::read_to_string(map).unwrap();
    assert!(text.lines().count() <= 120, "{} lines", text.lines().count());
    for (i, line) in text.lines().enumerate() {
        assert!(line.chars().count() <= 120, "line {} has {} characters", i + 1, line.chars().count());
    }
}

/// A file as the map names it, by crate and path below `src`: `core:view/fit.rs`. None for other text.
fn named_file(text: &str) -> Option<PathBuf> {
    let (name, path) =
        text.split_once(':').filter(|(_, path)| path.ends_with(".rs") || path.ends_with(".py"))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Some(match name {
        "python" => root.join("python/windrow").join(path),
        "facade" => root.join("crates/windrow/src").join(path),
        name => sources_of(&format!("windrow-{name}")).join(path),
    })
}

#[test]
fn files_that_the_map_names_are_there() {
    let map = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let text = fs::read_to_string(map).unwrap();
    let files: Vec<PathBuf> = text.split('`').skip(1).step_by(2).filter_map(named_file).collect();
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        assert!(file.is_file(), "{}", file.display());
    }
}
