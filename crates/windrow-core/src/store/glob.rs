//! Paths by pattern, as shells know them: `*` and `?` within a name, `[a-z]` and `[!a-z]`, `**` for folders of any depth.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{braces, hidden_part, is_hidden, key};
use crate::error::{Error, Kind, Result};

/// Whether a text has characters that stand for others.
pub fn is_glob(text: &str) -> bool {
    text.split('/').any(|part| !matches!(Part::of(part), Part::Name(_)))
}

/// What a pattern names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Globbed<T> {
    /// Files and folders, in no order.
    pub found: Vec<T>,
    /// What fits but for its name, which is hidden; in no order.
    pub hidden: Vec<T>,
}

/// The files and folders below `folder` that a pattern names. A name that is there as it is written is that name. Hidden
/// names ([`is_hidden`]) are found only by a pattern that begins with the same character. With `**` files are meant, and
/// folders where no file fits; a link to a folder is followed, and each folder is searched once.
///
/// # Errors
/// `Io`, where a folder cannot be listed.
pub fn glob(folder: &Path, pattern: &str) -> Result<Globbed<PathBuf>> {
    let mut parts: Vec<Part> = pattern.split('/').filter(|part| !part.is_empty()).map(Part::of).collect();
    parts.dedup_by(|a, b| matches!((a, b), (Part::Deep, Part::Deep)));
    let is_deep = parts.iter().any(|part| matches!(part, Part::Deep));
    let mut search = Search { only_folders: pattern.ends_with('/'), ..Search::default() };
    search.step(folder, &parts)?;
    let Search { files, folders, hidden, .. } = search;
    let found = match (is_deep, files.is_empty()) {
        (true, false) => files,
        _ => files.into_iter().chain(folders).collect(),
    };
    Ok(Globbed { found, hidden: hidden.into_iter().collect() })
}

/// The keys that a pattern names, and the folders above them that it does: as [`glob`] of a store's listing, whose keys are
/// relative to the folder where the pattern begins.
///
/// ```
/// use windrow_core::store::glob::among;
///
/// let keys = ["a/x.bin", "a/y.bin", "b/x.bin", "c.txt", "c?.txt"];
/// assert_eq!(among("*/x.bin", &keys).found, ["a/x.bin", "b/x.bin"]);
/// assert_eq!(among("[ab]", &keys).found, ["a", "b"]);
/// assert_eq!(among("c?.txt", &keys).found, ["c?.txt"]);
/// ```
pub fn among<'k>(pattern: &str, keys: &[&'k str]) -> Globbed<&'k str> {
    let parts: Vec<Part> = pattern.split('/').filter(|part| !part.is_empty()).map(Part::of).collect();
    let is_deep = parts.iter().any(|part| matches!(part, Part::Deep));
    let written = as_written(&parts, keys);
    let (mut files, mut folders, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    let mut hidden: BTreeSet<&str> = BTreeSet::new();
    for &key in keys {
        let names: Vec<&str> = key.split('/').collect();
        let mut end = 0;
        for (depth, name) in names.iter().enumerate() {
            end += name.len() + usize::from(depth > 0);
            let is_file = depth + 1 == names.len();
            // What ends in `**` means files.
            let is_meant = is_file || !matches!(parts.last(), Some(Part::Deep));
            let path = &key[..end];
            if is_meant && leads_to(&parts, &names[..=depth], &written, is_hidden) && seen.insert(path) {
                if is_file { &mut files } else { &mut folders }.push(path);
            } else if is_meant
                && let Some(part) = hidden_part("", path)
                && leads_to(&parts, &names[..=depth], &written, |_| false)
            {
                hidden.insert(part);
            }
        }
    }
    let found = match (pattern.ends_with('/'), is_deep && !files.is_empty()) {
        (true, _) => folders,
        (false, true) => files,
        (false, false) => files.into_iter().chain(folders).collect(),
    };
    let shown: HashSet<&str> = found.iter().filter_map(|path| hidden_part("", path)).collect();
    hidden.retain(|part| !shown.contains(part));
    Globbed { found, hidden: hidden.into_iter().collect() }
}

// Objects, and folders above them, whose name is a pattern as it is written: each is that name.
fn as_written<'k>(parts: &[Part], keys: &[&'k str]) -> HashSet<&'k str> {
    let patterns: Vec<&str> = parts
        .iter()
        .filter_map(|part| if let Part::Pattern(_, written) = part { Some(written.as_str()) } else { None })
        .collect();
    let mut found = HashSet::new();
    for &key in keys.iter().filter(|key| patterns.iter().any(|pattern| key.contains(pattern))) {
        let ends = key.match_indices('/').map(|(at, _)| at).chain([key.len()]);
        found.extend(ends.map(|end| &key[..end]).filter(|path| patterns.contains(&key::name_of(path))));
    }
    found
}

// Whether names one below the other are what the parts stand for; of those that are passed over, only what is named.
fn leads_to(parts: &[Part], names: &[&str], written: &HashSet<&str>, is_passed: fn(&str) -> bool) -> bool {
    // Up to which part each number of names may have come: row by row, so that many `**` take no longer than one.
    let mut reached: Vec<bool> = vec![false; parts.len() + 1];
    let skip = |reached: &mut Vec<bool>| {
        for (at, part) in parts.iter().enumerate() {
            reached[at + 1] |= reached[at] && matches!(part, Part::Deep);
        }
    };
    reached[0] = true;
    skip(&mut reached);
    for (depth, name) in names.iter().enumerate() {
        let mut next = vec![false; parts.len() + 1];
        let beside = |other: &str| key::below(&names[..depth].join("/"), other);
        for (at, part) in parts.iter().enumerate().filter(|(at, _)| reached[*at]) {
            match part {
                Part::Name(name_written) => next[at + 1] |= name_written == name,
                Part::Pattern(letters, pattern) => {
                    let is_name = !written.is_empty() && written.contains(beside(pattern).as_str());
                    let is_shown = begins_alike(letters, name) || !is_passed(name);
                    next[at + 1] |= pattern == name || (!is_name && is_shown && fits(letters, name));
                }
                Part::Deep => next[at] |= !is_passed(name),
            }
        }
        skip(&mut next);
        reached = next;
    }
    reached[parts.len()]
}

/// What is between two slashes.
enum Part {
    /// A name as it is.
    Name(String),
    /// A pattern, and how it is written.
    Pattern(Vec<Letter>, String),
    /// `**`: no folder, or folders in folders.
    Deep,
}

/// What one character of a pattern stands for.
enum Letter {
    Is(char),
    Any,
    /// Any number of characters.
    Many,
    /// One in these ranges, or in none of them.
    In(Vec<(char, char)>, bool),
}

impl Part {
    fn of(text: &str) -> Part {
        if text == "**" {
            return Part::Deep;
        }
        let letters = letters(text);
        if letters.iter().all(|letter| matches!(letter, Letter::Is(_))) {
            Part::Name(text.to_string())
        } else {
            Part::Pattern(letters, text.to_string())
        }
    }
}

fn letters(text: &str) -> Vec<Letter> {
    let chars: Vec<char> = text.chars().collect();
    let (mut letters, mut at) = (Vec::new(), 0);
    while let Some(&c) = chars.get(at) {
        at += 1;
        letters.push(match c {
            '*' => Letter::Many,
            '?' => Letter::Any,
            '[' => match class(&chars[at..]) {
                Some((letter, size)) => {
                    at += size;
                    letter
                }
                None => Letter::Is('['),
            },
            c => Letter::Is(c),
        });
    }
    letters
}

/// A pattern of whole paths, in which `*` and `?` stand for slashes too, as the Hub's own tools have it. `**/` may stand for no
/// folder at all, and braces are expanded.
///
/// ```
/// use windrow_core::store::glob::Flat;
///
/// let pattern = Flat::new("train/*.{bin,idx}")?;
/// assert!(pattern.fits("train/a/b.bin") && pattern.fits("train/c.idx"));
/// assert!(!pattern.fits("train/c.txt"));
/// # Ok::<(), windrow_core::Error>(())
/// ```
pub struct Flat(Vec<Vec<Letter>>);

impl Flat {
    /// # Errors
    /// `Config` for a `[` without its `]`, and braces that stand for too much.
    pub fn new(pattern: &str) -> Result<Flat> {
        const MOST: u64 = 10_000;
        let wrong = || Error::config(format!("{pattern:?} is not a pattern"));
        braces::check(pattern).map_err(|e| wrong().caused_by(e))?;
        if braces::count(pattern) > MOST {
            return Err(wrong().hint(format!("its braces stand for more than {MOST} names")));
        }
        let mut all = Vec::new();
        braces::expand(pattern, &mut |one| {
            for form in [one, &one.replace("**/", "")] {
                all.push(letters(form));
            }
            Ok(())
        })?;
        // A name may hold the character, but whoever types it means a class.
        if all.iter().flatten().any(|letter| matches!(letter, Letter::Is('['))) {
            Err(wrong().hint("a `[` is closed by a `]`"))
        } else {
            Ok(Flat(all))
        }
    }

    /// Whether it stands for this path.
    pub fn fits(&self, path: &str) -> bool {
        self.0.iter().any(|letters| fits(letters, path))
    }
}

// What is behind `[` up to its `]`, and how many characters that are; `]` as the first is one of those that are meant.
fn class(rest: &[char]) -> Option<(Letter, usize)> {
    let is_negated = matches!(rest.first(), Some('!' | '^'));
    let start = usize::from(is_negated);
    let end = (start + 1..rest.len()).find(|at| rest[*at] == ']')?;
    let (inner, mut ranges, mut at) = (&rest[start..end], Vec::new(), 0);
    while at < inner.len() {
        let is_range = inner.get(at + 1) == Some(&'-') && at + 2 < inner.len();
        ranges.push((inner[at], inner[if is_range { at + 2 } else { at }]));
        at += if is_range { 3 } else { 1 };
    }
    Some((Letter::In(ranges, is_negated), end + 1))
}

// Whether a pattern begins as a name does, not with a letter that stands for others: so hidden names are asked for.
fn begins_alike(letters: &[Letter], name: &str) -> bool {
    matches!(letters.first(), Some(Letter::Is(first)) if name.starts_with(*first))
}

// Goes back to the last `*` alone: each of the others has taken as little as it can.
fn fits(letters: &[Letter], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut letter) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while at < name.len() {
        let is_one = match letters.get(letter) {
            Some(Letter::Many) => {
                back = Some((at, letter));
                letter += 1;
                continue;
            }
            Some(Letter::Is(c)) => *c == name[at],
            Some(Letter::Any) => true,
            Some(Letter::In(ranges, is_negated)) => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&name[at])) != *is_negated
            }
            None => false,
        };
        (at, letter) = match (is_one, back) {
            (true, _) => (at + 1, letter + 1),
            (false, Some((taken, many))) => {
                back = Some((taken + 1, many));
                (taken + 1, many + 1)
            }
            (false, None) => return false,
        };
    }
    letters[letter..].iter().all(|letter| matches!(letter, Letter::Many))
}

#[derive(Default)]
struct Search {
    only_folders: bool,
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    hidden: BTreeSet<PathBuf>,
    found: HashSet<PathBuf>,
    /// Folders that were searched at any depth, by how many parts were left.
    seen: HashSet<(usize, u64, u64)>,
}

impl Search {
    fn step(&mut self, at: &Path, parts: &[Part]) -> Result<()> {
        let Some((part, rest)) = parts.split_first() else {
            return self.add(at);
        };
        match part {
            Part::Name(name) => self.go_on(&at.join(name), rest),
            Part::Pattern(_, written)
                if about(&at.join(written), |path| fs::symlink_metadata(path))?.is_some() =>
            {
                self.go_on(&at.join(written), rest)
            }
            Part::Pattern(letters, _) => {
                for (name, path) in names(at)?.into_iter().filter(|(name, _)| fits(letters, name)) {
                    if !is_hidden(&name) || begins_alike(letters, &name) {
                        self.go_on(&path, rest)?
                    } else if rest.is_empty() || is_folder(&path)? {
                        self.hidden.insert(path);
                    }
                }
                Ok(())
            }
            Part::Deep => self.deep(at, parts, rest),
        }
    }

    // What is there, where more of the pattern is left only a folder.
    fn go_on(&mut self, path: &Path, rest: &[Part]) -> Result<()> {
        match about(path, |path| fs::symlink_metadata(path))? {
            Some(_) if rest.is_empty() || is_folder(path)? => self.step(path, rest),
            _ => Ok(()),
        }
    }

    fn deep(&mut self, at: &Path, parts: &[Part], rest: &[Part]) -> Result<()> {
        if let Some(about) = about(at, |path| fs::metadata(path))?
            && !self.seen.insert((parts.len(), about.dev(), about.ino()))
        {
            return Ok(());
        }
        if !rest.is_empty() {
            self.step(at, rest)?;
        }
        for (name, path) in names(at)? {
            let is_folder = is_folder(&path)?;
            if is_hidden(&name) {
                if is_folder || rest.is_empty() {
                    self.hidden.insert(path);
                }
            } else if is_folder {
                self.step(&path, parts)?
            } else if rest.is_empty() {
                self.add(&path)?
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        if self.found.insert(path.to_path_buf()) {
            if is_folder(path)? {
                self.folders.push(path.to_path_buf())
            } else if !self.only_folders {
                // A link that leads nowhere too, so that opening it says so: a shard must not vanish.
                self.files.push(path.to_path_buf())
            }
        }
        Ok(())
    }
}

// What `ask` says of a path; `None` where nothing is there. Any other failure is an error: a shard must not vanish.
fn about(path: &Path, ask: fn(&Path) -> io::Result<fs::Metadata>) -> Result<Option<fs::Metadata>> {
    match ask(path).map_err(|e| Error::io("find it", path, e)) {
        Ok(about) => Ok(Some(about)),
        Err(e) if e.kind() == Kind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

// Whether it is a folder, or a link to one. A link that leads nowhere, or to itself, is a file that cannot be opened.
fn is_folder(path: &Path) -> Result<bool> {
    match about(path, |path| fs::metadata(path)) {
        Ok(about) => Ok(about.is_some_and(|about| about.is_dir())),
        Err(_) if about(path, |path| fs::symlink_metadata(path))?.is_some_and(|link| link.is_symlink()) => {
            Ok(false)
        }
        Err(e) => Err(e),
    }
}

/// Names in a folder and their paths, sorted; none where there is no such folder.
fn names(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let failed = |e| Error::io("list the folder", folder, e);
    let listing = match fs::read_dir(folder).map_err(failed) {
        Ok(listing) => listing,
        Err(e) if e.kind() == Kind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let mut names = Vec::new();
    for item in listing {
        let item = item.map_err(failed)?;
        // Of a relative folder the paths are relative, without the dot.
        let path = if folder == Path::new(".") { PathBuf::from(item.file_name()) } else { item.path() };
        names.push((item.file_name().to_string_lossy().into_owned(), path));
    }
    names.sort();
    Ok(names)
}

/// Some names in a folder, in words: `a.tar, b.tar and 3 more`; `None` where it has none, or is not there.
pub fn some_names(folder: &Path) -> Option<String> {
    const SHOWN: usize = 3;
    let names = names(folder).ok()?;
    let names: Vec<&str> =
        names.iter().map(|(name, _)| name.as_str()).filter(|n| !n.starts_with('.')).collect();
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => None,
        1..=SHOWN => Some(shown),
        n => Some(format!("{shown} and {} more", n - SHOWN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, fitting: &[&str], others: &[&str]) {
        let Part::Pattern(letters, _) = Part::of(pattern) else { panic!("{pattern} is a name") };
        for (name, expected) in fitting.iter().map(|n| (n, true)).chain(others.iter().map(|n| (n, false))) {
            assert_eq!(fits(&letters, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_fit_names() {
        check("*.tar", &["a.tar", "a.b.tar"], &["a.tar.gz", "a"]);
        check("?-[0-9].x", &["a-0.x", "ü-9.x"], &["a-10.x", "-1.x"]);
        check("[!a-c]*[]x]", &["dx", "d]"], &["ax", "d"]);
        check("a*b*c", &["abc", "a-b-b-c"], &["ab", "acb"]);
        check(".*", &[".a"], &["a"]);
        check(&"*a".repeat(40), &[], &[&"a".repeat(39), "b"]);
        for name in ["a", "a[b", "[]", "{a}"] {
            assert!(!is_glob(name), "{name}");
        }
        assert!(is_glob("a/**") && is_glob("[a]/b"));
    }

    const FILES: [&str; 14] = [
        "[v1]/a.x",
        "[v1]/z/b.x",
        ".h.x",
        ".h/a.x",
        "_SUCCESS",
        "_t/a.x",
        "_t.x",
        "_day=1/p.z",
        "a.x",
        "b.x",
        "c.y",
        "s.x/c.x",
        "q?.w",
        "qq.w",
    ];

    /// What each pattern names of these files, on a disk and in a store's listing.
    const CHOSEN: &[(&str, &[&str])] = &[
        ("*.x", &["a.x", "b.x", "s.x"]),
        ("*.x/", &["s.x"]),
        ("[v1]/*.x", &["[v1]/a.x"]),
        ("**/*.x", &["[v1]/a.x", "[v1]/z/b.x", "a.x", "b.x", "s.x/c.x"]),
        ("**/**/b.x", &["[v1]/z/b.x", "b.x"]),
        ("**", &["[v1]/a.x", "[v1]/z/b.x", "_day=1/p.z", "a.x", "b.x", "c.y", "q?.w", "qq.w", "s.x/c.x"]),
        ("**/s.*", &["s.x"]),
        (".h/*", &[".h/a.x"]),
        ("_*", &["_SUCCESS", "_day=1", "_t", "_t.x"]),
        ("_t/*.x", &["_t/a.x"]),
        ("*/p.z", &["_day=1/p.z"]),
        ("*/none/*", &[]),
        // A name that is there as it is written.
        ("q?.w", &["q?.w"]),
        ("q*.w", &["q?.w", "qq.w"]),
    ];

    /// What each pattern would name, were it not hidden.
    const HIDDEN: &[(&str, &[&str])] = &[
        ("*.x", &[".h.x", "_t.x"]),
        ("*", &[".h", ".h.x", "_SUCCESS", "_t", "_t.x"]),
        ("*/a.x", &[".h", "_t"]),
        ("**/a.x", &[".h", "_t"]),
        ("_*", &[]),
        ("*.w", &[]),
    ];

    #[test]
    fn keys_are_chosen_as_files_are() {
        let check = |pattern: &str, expected: &[&str]| {
            let mut found = among(pattern, &FILES).found;
            found.sort_unstable();
            assert_eq!(found, expected, "{pattern}");
        };
        CHOSEN.iter().for_each(|(pattern, expected)| check(pattern, expected));
        for (pattern, expected) in HIDDEN {
            assert_eq!(among(pattern, &FILES).hidden, *expected, "{pattern}");
        }
        check(&format!("{}b.x", "**/".repeat(60)), &["[v1]/z/b.x", "b.x"]);
    }

    #[test]
    fn files_are_found_below_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        for name in FILES {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), folder.path().join("[v1]/back")).unwrap();
        let check = |mut found: Vec<PathBuf>, pattern: &str, expected: &[&str]| {
            found.sort();
            let found: Vec<&str> = found
                .iter()
                .map(|path| path.strip_prefix(folder.path()).unwrap().to_str().unwrap())
                .collect();
            assert_eq!(found, expected, "{pattern}");
        };
        let named = |pattern| glob(folder.path(), pattern).unwrap();
        CHOSEN.iter().for_each(|(pattern, expected)| check(named(pattern).found, pattern, expected));
        HIDDEN.iter().for_each(|(pattern, expected)| check(named(pattern).hidden, pattern, expected));
        check(named("none/*").found, "none/*", &[]);
        assert_eq!(some_names(folder.path()).as_deref(), Some("[v1], _SUCCESS, _day=1 and 8 more"));
    }
}
