//! Words and phrases that read like a translation are in no comment, name, help, message or page, and the docs of an item
//! stand alone.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders and files of the repository that are read, below its root.
const READ: &[&str] = &[
    "crates",
    "python/windrow",
    "python/tests",
    "benches",
    "examples",
    "frameworks",
    "fuzz/src",
    "fuzz/fuzz_targets",
    "reliability",
    "docs",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
];
const ENDINGS: &[&str] = &["rs", "py", "pyi", "md"];

/// What is found, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("laid", "assembled, written, copied"),
    ("anew", "again"),
    ("lent", "borrowed"),
    ("lying", "located, stored"),
    ("goes on", "continues"),
    ("so many", "the number, or its name"),
    ("is none", "is not one, there is none"),
    ("is no … that", "is not one that"),
];

/// Where a word stays, and why.
const KEPT: &[(&str, &str, &str)] = &[
    ("crates/windrow-core/tests/it/english.rs", "", "the list itself"),
    ("crates/windrow-chat/tests/it/rendered.rs", "is none", "how a Jinja template asks for None"),
    ("docs/reliability.md", "lying", "the name of a row in the recorded runs"),
    ("reliability/hostile.py", "lying", "the name of a row in the recorded runs"),
];

struct Word<'t> {
    text: &'t str,
    line: usize,
    /// What is between it and the word before: `None` if that ends a sentence, a string or an expression.
    gap: Option<Gap>,
}

#[derive(Clone, Copy, PartialEq)]
enum Gap {
    /// Parts of one name: `goes_on`, `goesOn`.
    Name,
    /// White space, and the marks of a comment or string that continues on the next line.
    Space,
}

fn gap(between: &str) -> Option<Gap> {
    match between {
        "" | "_" => Some(Gap::Name),
        _ if between.chars().all(|c| c.is_whitespace() || "/!#\\*`".contains(c)) => Some(Gap::Space),
        _ => None,
    }
}

/// The words of a text. Names are split at underscores and where a capital follows a small letter.
fn words(text: &str) -> Vec<Word<'_>> {
    let bytes = text.as_bytes();
    let (mut found, mut line, mut before, mut at) = (Vec::new(), 1, 0, 0);
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphabetic() {
            line += usize::from(bytes[at] == b'\n');
            at += 1;
            continue;
        }
        let begin = at;
        at += 1;
        while at < bytes.len()
            && bytes[at].is_ascii_alphabetic()
            && !(bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase())
        {
            at += 1;
        }
        found.push(Word { text: &text[begin..at], line, gap: gap(&text[before..begin]) });
        before = at;
    }
    found
}

/// The lines of a text where a word or phrase of [`WORDS`] is, with it.
fn lines_with(text: &str) -> Vec<(usize, &'static str)> {
    let words = words(text);
    let is =
        |at: usize, wanted: &str| words.get(at).is_some_and(|word| word.text.eq_ignore_ascii_case(wanted));
    let follows = |at: usize| words.get(at).is_some_and(|word| word.gap.is_some());
    let is_spaced = |at: usize| words.get(at).is_some_and(|word| word.gap == Some(Gap::Space));
    let has = |at: usize, wanted: &str| match wanted {
        // Rust's method `is_none` and Python's `is None` are no English; "there is none" is.
        "is none" => {
            is(at, "is")
                && is_spaced(at + 1)
                && words[at + 1].text == "none"
                && !(at > 0 && is_spaced(at) && is(at - 1, "there"))
        }
        "is no … that" => {
            is(at, "is")
                && is(at + 1, "no")
                && is(at + 3, "that")
                && [1, 2, 3].into_iter().all(|next| is_spaced(at + next))
        }
        phrase => match phrase.split_once(' ') {
            Some((first, second)) => is(at, first) && is(at + 1, second) && follows(at + 1),
            None => is(at, phrase),
        },
    };
    (0..words.len())
        .flat_map(|at| {
            WORDS.iter().filter(move |(wanted, _)| has(at, wanted)).map(move |(wanted, _)| (at, *wanted))
        })
        .map(|(at, wanted)| (words[at].line, wanted))
        .collect()
}

/// The lines of a text where docs begin with "The same": of what, only the item before would say.
fn lines_of_the_same(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let mark = |line: &str| ["///", "//!"].into_iter().find(|mark| line.starts_with(mark));
    let begins = |at: usize| match mark(lines[at]) {
        Some(own) => at == 0 || mark(lines[at - 1]) != Some(own),
        None => false,
    };
    let is_one = |at: usize| {
        let line = lines[at];
        line.starts_with("\"\"\"The same") || (begins(at) && line[3..].trim_start().starts_with("The same"))
    };
    (0..lines.len()).filter(|at| is_one(*at)).map(|at| at + 1).collect()
}

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if !path.is_dir() {
        if path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known)) {
            found.push(path.to_path_buf());
        }
        return;
    }
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().is_some_and(|name| name != "target" && name != "__pycache__") {
            files(&path, found);
        }
    }
}

/// The texts that are read, by their paths from the root of the repository.
fn texts() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut found = Vec::new();
    READ.iter().for_each(|part| files(&root.join(part), &mut found));
    found.sort();
    let named = |path: &PathBuf| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
    found.iter().map(|path| (named(path), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn comments_names_help_and_messages_are_plain_english() {
    let texts = texts();
    assert!(texts.len() > 1_000, "{} files", texts.len());
    let mut wrong = Vec::new();
    for (name, text) in &texts {
        let is_kept = |word: &str| {
            KEPT.iter().any(|(file, kept, _)| file == name && (kept.is_empty() || *kept == word))
        };
        for (line, word) in lines_with(text).into_iter().filter(|(_, word)| !is_kept(word)) {
            let better = WORDS.iter().find(|(known, _)| *known == word).unwrap().1;
            let shown = text.lines().nth(line - 1).unwrap_or_default().trim();
            wrong.push(format!("{name}:{line}: {word:?}, say {better}: {shown}"));
        }
    }
    assert!(wrong.is_empty(), "{} places\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_first_sentence_of_docs_stands_alone() {
    let wrong: Vec<String> = texts()
        .iter()
        .filter(|(name, _)| !name.ends_with("/english.rs"))
        .flat_map(|(name, text)| {
            lines_of_the_same(text).into_iter().map(move |line| format!("{name}:{line}"))
        })
        .collect();
    assert!(wrong.is_empty(), "begins with \"The same\":\n{}", wrong.join("\n"));
}

#[test]
fn words_are_found_in_names_and_over_the_ends_of_lines() {
    let check = |text: &str, expected: &[(usize, &str)]| assert_eq!(lines_with(text), expected, "{text}");
    check("/// What is\n/// laid.", &[(2, "laid")]);
    check("fn list_anew() {} struct Lent; let isLying = 1;", &[(1, "anew"), (1, "lent"), (1, "lying")]);
    check(
        "// A run goes\n// on. Files: so\n// many.\nfn a_run_goes_on() {}",
        &[(1, "goes on"), (2, "so many"), (4, "goes on")],
    );
    check("\"the name is none of \\\n    them\"", &[(1, "is none")]);
    check("# This is no file that counts, which\n# is none.", &[(1, "is no … that"), (2, "is none")]);
    for fine in [
        "silent, equivalent, underlying, talent, relaying, inlaid",
        "x.is_none() and y is None; None where there is none.",
        "So it goes. On Linux, so much; many. There is no more. That is all.",
        "goes(on)",
    ] {
        check(fine, &[]);
    }
    let docs = "/// The same.\nfn f() {}\n/// Reads it.\n/// The same again.\n    \"\"\"The same.\"\"\"\n// The same.\n";
    assert_eq!(lines_of_the_same(docs), [1, 5]);
}
