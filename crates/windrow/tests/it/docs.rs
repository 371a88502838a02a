//! The pages are true to the code: formats, kinds of error, links, tests named in claims, and Rust examples that run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use windrow::Kind;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap()
}

fn pages() -> Vec<String> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    let names = docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(String::from));
    pages.sort();
    pages
}

/// The lines of a page that stand in no fenced block.
fn prose(text: &str) -> Vec<&str> {
    let mut is_code = false;
    text.lines()
        .filter(|line| {
            let is_fence = line.starts_with("```");
            is_code ^= is_fence;
            !is_code && !is_fence
        })
        .collect()
}

/// The links of a page: what is shown, and where it leads.
fn links(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in prose(text) {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("](") {
            let shown = before.rsplit('[').next().unwrap_or_default();
            let (target, tail) = after.split_once(')').unwrap();
            found.push((shown.to_string(), target.to_string()));
            rest = tail;
        }
    }
    found
}

/// What a heading is called in a link: lower case, hyphens for spaces, no other signs.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn every_format_is_in_the_table_that_the_readme_links() {
    let (readme, page) = (read("README.md"), read("docs/formats.md"));
    assert!(links(&readme).iter().any(|(_, target)| target == "docs/formats.md"));
    for format in windrow::formats() {
        let (name, about) = (format.name(), format.info());
        let row = format!(
            "| `{name}` | {} | {} | {} | {} |",
            about.title, about.layout, about.records, about.written_by
        );
        assert!(page.contains(&row), "docs/formats.md should have the row\n{row}");
    }
}

#[test]
fn the_readme_is_short() {
    let n_lines = read("README.md").lines().count();
    assert!(n_lines <= 130, "{n_lines} lines");
}

#[test]
fn a_format_that_is_written_says_by_what() {
    for written in windrow::written() {
        let (to, by) = (written.to, written.info.written_by);
        assert!(by.contains(&format!("`windrow convert --to {to}`")), "{to}: {by}");
        assert!(by.contains("`wr.write`"), "{to}: {by}");
        assert_eq!(by.contains("`windrow tokenize"), written.is_for_tokenize, "{to}: {by}");
    }
}

#[test]
fn the_page_of_a_format_is_that_of_its_folder() {
    let page = read("docs/formats.md");
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("../windrow-formats/src");
    let mut headings = Vec::new();
    let mut folders: Vec<PathBuf> =
        fs::read_dir(folders).unwrap().map(|folder| folder.unwrap().path()).collect();
    folders.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("../windrow-arrow"));
    for folder in folders {
        let path = folder.join("README.md");
        if let Ok(text) = fs::read_to_string(&path) {
            assert!(page.contains(&text), "docs/formats.md should have the text of {}", path.display());
            headings.push(text.lines().next().unwrap().to_string());
        }
    }
    for format in windrow_formats::FORMATS {
        let name = format!("`{}`", format.name());
        assert!(headings.iter().any(|heading| heading.contains(&name)), "{name} has no README.md");
    }
}

#[test]
fn every_kind_of_error_is_explained() {
    let page = read("docs/errors.md");
    let kinds = [
        Kind::NotFound,
        Kind::Unrecognised,
        Kind::Corrupt,
        Kind::Stale,
        Kind::OutOfRange,
        Kind::Unsupported,
        Kind::Mismatch,
        Kind::Config,
        Kind::Exists,
        Kind::Io,
        Kind::Interrupted,
    ];
    for kind in kinds {
        assert!(
            page.contains(&format!("| `{}` |", kind.name())),
            "docs/errors.md has no row of {}",
            kind.name()
        );
    }
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        for (_, target) in links(&read(&page)) {
            if target.contains("://") {
                continue;
            }
            let (file, part) = target.split_once('#').unwrap_or((&target, ""));
            let folder = Path::new(&page).parent().unwrap();
            let to = if file.is_empty() { PathBuf::from(&page) } else { folder.join(file) };
            let Ok(text) = std::fs::read_to_string(root().join(&to)) else {
                broken.push(format!("{page}: {target}"));
                continue;
            };
            let has_part = || prose(&text).iter().any(|line| line.starts_with('#') && anchor(line) == part);
            if !part.is_empty() && !has_part() {
                broken.push(format!("{page}: {target}: no such heading"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn tests_that_the_pages_name_exist() {
    let mut n_named = 0;
    for page in pages() {
        for (shown, target) in links(&read(&page)) {
            let (Some(name), true) =
                (shown.strip_prefix('`').and_then(|s| s.strip_suffix('`')), target.contains("/tests/"))
            else {
                continue;
            };
            let code = std::fs::read_to_string(root().join(&page).parent().unwrap().join(&target)).unwrap();
            let is_there = code.contains(&format!("fn {name}(")) || code.contains(&format!("def {name}("));
            assert!(is_there, "{page}: {target} has no {name}");
            n_named += 1;
        }
    }
    assert!(n_named > 0);
}

#[test]
fn rust_examples_are_run() {
    // A page about an integration crate is run by that crate.
    let run = ["crates/windrow", "frameworks/windrow-candle", "frameworks/windrow-burn"]
        .map(|name| read(&format!("{name}/src/pages.rs")))
        .concat();
    let with_rust: BTreeSet<String> = pages()
        .into_iter()
        .filter(|page| read(page).lines().any(|line| line.starts_with("```rust")))
        .collect();
    for page in &with_rust {
        assert!(run.contains(&format!("\"../../../{page}\"")), "no src/pages.rs runs {page}");
    }
    assert!(with_rust.contains("README.md"));
}
