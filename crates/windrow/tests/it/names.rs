//! A format's name stands in its own folder, in the facade's aliases, and nowhere else in the code.

use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprArray, ExprBinary, ExprCall, ExprLit, ItemMod, Lit, Macro, Meta, Pat};

/// Names that are words of other things, too: keys of JSON, names of arrays. Of these only what compares, lists or
/// passes them as a format counts.
const WORDS: [&str; 3] = ["tokens", "codes", "shards"];

/// Where names may stand: a format's own folder or crate, the names that users type, the signatures of Python, and the
/// manifest whose data set a store need not list.
const ALLOWED: [&str; 7] = [
    "windrow-core/src/manifest/part.rs",
    // What rows cost, not what they are stored as.
    "windrow-core/src/plan/balance.rs",
    "windrow-formats/src/",
    "windrow-zarr/src/layout.rs",
    "windrow-arrow/src/layout.rs",
    "windrow/src/prepare/write.rs",
    "windrow-py/src/",
];

struct Names {
    names: Vec<&'static str>,
    found: Vec<String>,
}

impl Names {
    fn of(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                self.names.contains(&text.value().as_str()).then(|| text.value())
            }
            Expr::Reference(reference) => self.of(&reference.expr),
            _ => None,
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    // Docs are attributes.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        let is_test =
            |a: &Attribute| matches!(&a.meta, Meta::List(list) if list.tokens.to_string() == "test");
        if !module.attrs.iter().any(is_test) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_macro(&mut self, _: &'ast Macro) {}

    fn visit_lit(&mut self, lit: &'ast Lit) {
        if let Lit::Str(text) = lit
            && self.names.contains(&text.value().as_str())
            && !WORDS.contains(&text.value().as_str())
        {
            self.found.push(text.value());
        }
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        let sides = [self.of(&binary.left), self.of(&binary.right)];
        self.found.extend(sides.into_iter().flatten());
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_array(&mut self, array: &'ast ExprArray) {
        let several: Vec<String> = array.elems.iter().filter_map(|one| self.of(one)).collect();
        self.found.extend(several);
        visit::visit_expr_array(self, array);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let function = match &*call.func {
            Expr::Path(path) => path.path.segments.iter().map(|s| s.ident.to_string()).collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        if function.ends_with(&["Manifest".to_string(), "new".to_string()]) {
            let named: Vec<String> = call.args.iter().filter_map(|one| self.of(one)).collect();
            self.found.extend(named);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_pat(&mut self, pat: &'ast Pat) {
        if let Pat::Lit(ExprLit { lit: Lit::Str(text), .. }) = pat
            && self.names.contains(&text.value().as_str())
        {
            self.found.push(text.value());
        }
        visit::visit_pat(self, pat);
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found)
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path)
        }
    }
}

fn named_in(code: &str) -> Vec<String> {
    let names = windrow::formats().iter().map(|format| format.name()).collect();
    let mut visitor = Names { names, found: Vec::new() };
    visitor.visit_file(&syn::parse_file(code).unwrap());
    visitor.found
}

#[test]
fn no_format_is_named_outside_its_folder() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all = Vec::new();
    for member in fs::read_dir(crates).unwrap() {
        files(&member.unwrap().path().join("src"), &mut all);
    }
    let mut wrong = Vec::new();
    for path in all {
        let name = path.strip_prefix(crates).unwrap().display().to_string();
        if ALLOWED.iter().any(|allowed| name.starts_with(allowed)) {
            continue;
        }
        wrong.extend(
            named_in(&fs::read_to_string(&path).unwrap()).into_iter().map(|n| format!("{name}: {n:?}")),
        );
    }
    assert!(wrong.is_empty(), "ask the table of formats instead:\n{}", wrong.join("\n"));
}

#[test]
fn a_name_that_stands_somewhere_is_found() {
    assert_eq!(named_in(r#"fn f() { g("megatron"); }"#), ["megatron"]);
    assert_eq!(named_in(r#"fn f() -> bool { a.format() == "codes" }"#), ["codes"]);
    assert_eq!(named_in(r#"fn f() { let m = Manifest::new("tokens"); }"#), ["tokens"]);
    assert_eq!(named_in(r#"fn f() -> bool { ["shards", "x"].contains(&a) }"#), ["shards"]);
    assert_eq!(named_in(r#"fn f() { match a { "tokens" => 1, _ => 2 }; }"#), ["tokens"]);
    assert_eq!(named_in(r#"fn f() { g(("tokens", 1)); }"#), [""; 0]);
}
