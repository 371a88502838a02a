//! Which file imports which, over the whole workspace: files with different jobs do not import each other in a circle.
//!
//! Only a module and its own descendants may name each other. Tests within files do not count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, Macro, Meta, UseTree, Visibility};

/// A module, by its path from the root of its crate.
type Name = Vec<String>;

/// The modules of a crate.
#[derive(Default)]
struct Modules {
    /// The file of each, below `src`.
    files: BTreeMap<Name, String>,
    /// What each re-exports, by name, and the modules that it re-exports whole.
    reexports: BTreeMap<Name, BTreeMap<String, Name>>,
    globs: BTreeMap<Name, Vec<Name>>,
    /// Paths that are named, with the module they are named in.
    named: Vec<(Name, Name)>,
}

impl Modules {
    fn read(root: &Path) -> Modules {
        let mut modules = Modules::default();
        modules.add(root.parent().unwrap(), root, Vec::new());
        modules
    }

    // A file, and those that it declares.
    fn add(&mut self, src: &Path, path: &Path, name: Name) {
        let text = fs::read_to_string(path).unwrap();
        let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        self.files.insert(name.clone(), path.strip_prefix(src).unwrap().display().to_string());
        let mut reader = Reader { modules: self, name: name.clone(), declared: Vec::new() };
        reader.visit_file(&file);
        let is_folder = ["mod.rs", "lib.rs", "main.rs"].iter().any(|end| path.ends_with(end));
        let below = if is_folder { path.parent().unwrap().to_path_buf() } else { path.with_extension("") };
        for child in reader.declared {
            // A module in braces has its files in a folder of its name.
            let below =
                child[name.len()..child.len() - 1].iter().fold(below.clone(), |path, part| path.join(part));
            let last = child.last().unwrap();
            let found = [below.join(format!("{last}.rs")), below.join(last).join("mod.rs")];
            let found = found.iter().find(|path| path.is_file());
            let found = found.unwrap_or_else(|| panic!("{}: no file of mod {last}", path.display()));
            self.add(src, found, child);
        }
    }

    /// The module that a path names something of, as seen in `from`; none for other crates.
    fn resolve(&self, from: &Name, path: &[String]) -> Option<Name> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => from.clone(),
            "super" => from[..from.len().checked_sub(1)?].to_vec(),
            child => {
                let child = [from.as_slice(), &[child.to_string()]].concat();
                self.files.contains_key(&child).then_some(child)?
            }
        };
        while let Some((next, after)) = rest.split_first() {
            if next == "super" {
                at.pop()?;
            } else {
                let child = [at.as_slice(), std::slice::from_ref(next)].concat();
                if !self.files.contains_key(&child) {
                    return Some(self.definition(at, next, 0));
                }
                at = child;
            }
            rest = after;
        }
        Some(at)
    }

    // Where the thing that a module re-exports under this name is defined.
    fn definition(&self, module: Name, name: &str, depth: usize) -> Name {
        if depth > 8 {
            return module;
        }
        let reexports = self.reexports.get(&module).and_then(|reexports| reexports.get(name));
        if let Some(path) = reexports {
            // The last part of the path is the thing itself, or a module.
            let from = self.resolve_shallow(&module, path);
            return match from {
                Some((found, None)) => found,
                Some((found, Some(rest))) if found != module || rest != name => {
                    self.definition(found, &rest, depth + 1)
                }
                _ => module,
            };
        }
        for glob in self.globs.get(&module).into_iter().flatten() {
            if let Some((found, None)) = self.resolve_shallow(&module, glob)
                && self.reexports.get(&found).is_some_and(|reexports| reexports.contains_key(name))
            {
                return self.definition(found, name, depth + 1);
            }
        }
        module
    }

    // The module at the beginning of a path, and the name after it.
    fn resolve_shallow(&self, from: &Name, path: &[String]) -> Option<(Name, Option<String>)> {
        for n in (1..=path.len()).rev() {
            let at = match path[0].as_str() {
                "crate" => Vec::new(),
                "self" => from.clone(),
                "super" => from[..from.len().checked_sub(1)?].to_vec(),
                child => [from.as_slice(), &[child.to_string()]].concat(),
            };
            let at = [at.as_slice(), &path[1..n]].concat();
            if self.files.contains_key(&at) {
                return Some((at, path.get(n).cloned()));
            }
        }
        None
    }

    /// Which file names which: from, to. `up`: whether a descendant that names an ancestor counts, else the other way.
    fn edges(&self, up: bool) -> BTreeMap<String, BTreeSet<String>> {
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, path) in &self.named {
            let Some(to) = self.resolve(from, path) else { continue };
            let is_left_out = if up { to.starts_with(from) } else { from.starts_with(&to) };
            let (from, to) = (&self.files[from], &self.files[&to]);
            if from != to && !is_left_out {
                edges.entry(from.clone()).or_default().insert(to.clone());
            }
        }
        edges
    }
}

/// Takes down what a file declares and names.
struct Reader<'a> {
    modules: &'a mut Modules,
    name: Name,
    declared: Vec<Name>,
}

impl Reader<'_> {
    fn names(&mut self, path: Vec<String>) {
        self.modules.named.push((self.name.clone(), path));
    }

    fn uses(&mut self, tree: &UseTree, before: &[String], is_reexport: bool) {
        let give = |reader: &mut Self, name: String, path: Vec<String>| {
            if is_reexport {
                reader.modules.reexports.entry(reader.name.clone()).or_default().insert(name, path.clone());
            }
            reader.names(path);
        };
        let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.uses(&path.tree, &with(&path.ident), is_reexport),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.uses(tree, before, is_reexport)),
            UseTree::Glob(_) => {
                if is_reexport {
                    self.modules.globs.entry(self.name.clone()).or_default().push(before.to_vec());
                }
                self.names(before.to_vec());
            }
            UseTree::Name(name) if name.ident == "self" => {
                let last = before.last().cloned().unwrap_or_default();
                give(self, last, before.to_vec());
            }
            UseTree::Name(name) => give(self, name.ident.to_string(), with(&name.ident)),
            UseTree::Rename(name) => give(self, name.rename.to_string(), with(&name.ident)),
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if is_test(&item.attrs) {
            return;
        }
        self.name.push(item.ident.to_string());
        match &item.content {
            None => self.declared.push(self.name.clone()),
            Some(_) => {
                let parent = self.name[..self.name.len() - 1].to_vec();
                let file = self.modules.files[&parent].clone();
                self.modules.files.insert(self.name.clone(), file);
                visit::visit_item_mod(self, item);
            }
        }
        self.name.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_test(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_test(&item.attrs) {
            let is_reexport = !matches!(item.vis, Visibility::Inherited);
            self.uses(&item.tree, &[], is_reexport);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 && path.leading_colon.is_none() {
            self.names(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    // The tokens of a macro are not parsed: paths from the root are found as text.
    fn visit_macro(&mut self, item: &'ast Macro) {
        let text = item.tokens.to_string().replace(" :: ", "::");
        for after in text.split("crate::").skip(1) {
            let path = after
                .split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
                .next()
                .unwrap_or_default();
            let path = path.split("::").filter(|part| !part.is_empty()).map(str::to_string);
            self.names(["crate".to_string()].into_iter().chain(path).collect());
        }
        visit::visit_macro(self, item);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let text = list.tokens.to_string().replace(' ', "");
            text == "test" || text == "doctest" || text.starts_with("all(test")
        }
        _ => false,
    })
}

/// Sets of files that all lead to each other, each of two or more.
fn circles(edges: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let (mut found, mut left) = (BTreeSet::new(), vec![from]);
        while let Some(file) = left.pop() {
            for next in edges.get(file).into_iter().flatten() {
                if found.insert(next.clone()) {
                    left.push(next);
                }
            }
        }
        found
    };
    let reached: BTreeMap<&String, BTreeSet<String>> =
        edges.keys().map(|file| (file, reached(file))).collect();
    let leads = |from: &String, to: &String| reached.get(from).is_some_and(|found| found.contains(to));
    let mut circles: Vec<BTreeSet<String>> = Vec::new();
    for file in edges.keys().filter(|file| leads(file, file)) {
        if !circles.iter().any(|circle| circle.contains(file)) {
            circles.push(
                edges.keys().filter(|other| leads(file, other) && leads(other, file)).cloned().collect(),
            );
        }
    }
    circles
}

/// The shortest way from a file of the circle back to it: `a.rs → b.rs → a.rs`.
fn shortest(edges: &BTreeMap<String, BTreeSet<String>>, circle: &BTreeSet<String>) -> String {
    let around = |start: &String| {
        let mut ways = VecDeque::from([vec![start.clone()]]);
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop_front() {
            for next in edges.get(way.last()?).into_iter().flatten().filter(|next| circle.contains(*next)) {
                let longer = [way.as_slice(), std::slice::from_ref(next)].concat();
                if next == start {
                    return Some(longer);
                }
                if seen.insert(next.clone()) {
                    ways.push_back(longer);
                }
            }
        }
        None
    };
    let ways = circle.iter().filter_map(around);
    ways.min_by_key(Vec::len).map(|way| way.join(" → ")).unwrap_or_default()
}

fn crates() -> Vec<(String, PathBuf)> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(workspace.join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let apart =
        ["benches/limits", "frameworks/train_candle", "frameworks/windrow-burn", "frameworks/windrow-candle"];
    folders.extend(apart.map(|folder| workspace.join(folder)));
    folders.sort();
    let named =
        |folder: PathBuf| (folder.file_name().unwrap().to_string_lossy().into_owned(), folder.join("src"));
    folders.into_iter().map(named).collect()
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let mut found = BTreeSet::new();
    for (name, src) in crates() {
        for root in ["lib.rs", "main.rs"].map(|root| src.join(root)).into_iter().filter(|root| root.is_file())
        {
            let modules = Modules::read(&root);
            for edges in [modules.edges(true), modules.edges(false)] {
                for circle in circles(&edges) {
                    let files: Vec<&str> = circle.iter().map(String::as_str).collect();
                    found.insert(format!("{name}: {}\n  of {files:?}", shortest(&edges, &circle)));
                }
            }
        }
    }
    let found: Vec<String> = found.into_iter().collect();
    assert!(found.is_empty(), "files import each other in a circle:\n{}", found.join("\n"));
}

// A crate of these files, and its circles.
fn check(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let modules = Modules::read(&folder.path().join("lib.rs"));
    let mut found: Vec<String> = [true, false]
        .into_iter()
        .flat_map(|up| {
            let edges = modules.edges(up);
            circles(&edges).iter().map(|circle| shortest(&edges, circle)).collect::<Vec<_>>()
        })
        .collect();
    found.dedup();
    found
}

#[test]
fn circles_are_found_through_uses_paths_macros_and_what_is_reexports() {
    let circle = ["a.rs → b.rs → a.rs"];
    let root = ("lib.rs", "mod a; mod b; pub use self::b::B;");
    for a in [
        "use crate::b::B;",
        "use super::{b::{self, B}};",
        "use crate::B;",
        "fn f() { let _ = crate::b::B; }",
        "fn f() { println!(\"{}\", crate::b::B); }",
        "mod inner { use super::super::b; }",
    ] {
        assert_eq!(check(&[root, ("a.rs", a), ("b.rs", "use crate::a; pub struct B;")]), circle, "{a}");
    }
    let test = "#[cfg(test)] mod tests { use crate::b::B; }";
    assert!(check(&[root, ("a.rs", test), ("b.rs", "use crate::a; pub struct B;")]).is_empty());
}

#[test]
fn a_module_and_its_descendants_may_name_each_other_and_nobody_else() {
    let root = ("lib.rs", "mod a; mod c;");
    let parent = ("a/mod.rs", "mod b; mod d; use self::b::B; pub struct A; use crate::c;");
    let child = ("a/b.rs", "use super::A; pub struct B;");
    assert!(check(&[root, parent, child, ("a/d.rs", "use super::b::B;"), ("c.rs", "")]).is_empty());
    let siblings = ("a/b.rs", "use super::d; pub struct B;");
    assert_eq!(
        check(&[root, parent, siblings, ("a/d.rs", "use super::b::B;"), ("c.rs", "")]),
        ["a/b.rs → a/d.rs → a/b.rs"]
    );
    // Round through another module: its child names the parent, and the other names the child.
    assert_eq!(
        check(&[root, parent, child, ("a/d.rs", ""), ("c.rs", "use crate::a::b::B;")]),
        ["a/b.rs → a/mod.rs → c.rs → a/b.rs"]
    );
}
