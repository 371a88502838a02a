//! What a build brings along: how many crates, which it never does, and that each of them is used.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Names and versions of the crates that these arguments of `cargo tree` give.
fn tree(args: &str) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace()).args(["tree", "--quiet", "--locked", "--prefix", "none"]);
    let done = command.args(args.split_whitespace()).output().unwrap();
    assert!(done.status.success(), "cargo tree {args}: {}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    text.lines()
        .map(|line| line.split(" (").next().unwrap().to_string())
        .filter(|line| !line.is_empty())
        .collect()
}

fn names(tree: &BTreeSet<String>) -> BTreeSet<&str> {
    tree.iter().map(|line| line.split(' ').next().unwrap()).collect()
}

#[test]
fn the_light_build_has_no_runtime_no_tls_no_arrow_no_tokenizer_and_no_c_but_zstds() {
    let light = tree("-p windrow -e normal");
    let heavy =
        ["tokio", "rustls", "ring", "reqwest", "hyper", "object_store", "parquet", "tokenizers", "onig"];
    let heavy = [&heavy[..], &["splintr", "symphonia", "zarrs", "serde-saphyr", "rayon", "pyo3"]].concat();
    let found: Vec<&str> = names(&light)
        .into_iter()
        .filter(|name| {
            let is_c = name.ends_with("-sys") && !["zstd-sys", "linux-raw-sys"].contains(name);
            is_c || heavy.contains(name) || *name == "arrow" || name.starts_with("arrow-")
        })
        .collect();
    assert!(found.is_empty(), "the light build brings {found:?}");
}

#[test]
fn a_build_brings_no_more_crates_than_it_is_allowed() {
    for (what, args, most) in [
        ("windrow", "-p windrow -e normal", 70),
        ("make demo", "-p windrow-cli --no-default-features --features text -e normal", 180),
        ("the command", "-p windrow-cli -e normal", 385),
        ("the workspace and its tests", "--workspace -e normal,build,dev", 440),
    ] {
        let found = tree(args).len();
        assert!(found <= most, "{what}: {found} crates, at most {most} are allowed");
    }
}

/// The page for users of Rust says what each feature costs them.
#[test]
fn the_table_of_features_counts_their_crates() {
    let page = fs::read_to_string(workspace().join("docs/rust.md")).unwrap();
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let feature = cells[0].strip_prefix('`')?.strip_suffix('`')?;
        Some((feature.to_string(), cells.last()?.parse::<usize>().ok()?))
    });
    let rows: Vec<(String, usize)> = rows.collect();
    assert!(rows.len() >= 10, "{rows:?}");
    let light = tree("-p windrow -e normal").len();
    assert!(
        page.contains(&format!("\n{light} crates with windrow's own")),
        "the light build has {light} crates"
    );
    for (feature, said) in rows {
        let found = tree(&format!("-p windrow --features {feature} -e normal")).len() - light;
        assert_eq!(found, said, "crates that `{feature}` adds");
    }
}

/// Dependencies in a section of a crate's Cargo.toml, by the names that code gives them.
fn dependencies(folder: &Path) -> Vec<String> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let section = manifest.split("\n[dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let is_name = |line: &&str| line.starts_with(|c: char| c.is_ascii_alphabetic());
    let name = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().replace('-', "_");
    section.lines().filter(is_name).map(name).collect()
}

fn code(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all += &code(&path);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            all.extend(
                text.lines()
                    .filter(|line| !line.trim_start().starts_with("//"))
                    .flat_map(|line| [line, "\n"]),
            );
        }
    }
    all
}

fn is_named(code: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name)
        .any(|(at, _)| !code[..at].ends_with(is_part) && !code[at + name.len()..].starts_with(is_part))
}

#[test]
fn every_dependency_is_used() {
    let mut idle = Vec::new();
    let mut n_found = 0;
    for entry in fs::read_dir(workspace().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let code = code(&folder.join("src"));
        for name in dependencies(&folder) {
            n_found += 1;
            if !is_named(&code, &name) {
                idle.push(format!("{}: {name}", folder.file_name().unwrap().to_string_lossy()));
            }
        }
    }
    assert!(n_found > 100, "only {n_found} dependencies found");
    assert!(idle.is_empty(), "no source file names {idle:?}");
}
