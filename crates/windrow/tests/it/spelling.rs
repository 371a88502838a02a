//! The texts of the library name options by marks, which each frontend spells in its own way: no text is one frontend's, and
//! each mark is something that there is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use syn::buffer::Cursor;
use syn::parse::ParseStream;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprCall, ExprMethodCall, FieldValue, ItemMod, LitStr, Macro, Member, Meta};
use windrow::dev::spelling::{Frontend, NAMES, WORDS};

/// What speaks for one frontend.
const FRONTENDS: [&str; 5] = [
    "windrow-cli/",
    "windrow-py/",
    "windrow-report/",
    "windrow-core/src/spelling.rs",
    "windrow/src/run/bench/typed.rs",
];

/// Fields of tables for documentation, which show what users of each frontend type.
const OF_DOCS: [&str; 2] = ["written_by", "records"];

/// What identifies how data was prepared: no user reads it.
const IDENTITIES: [&str; 4] =
    ["tokenizer={}:{} chat=", "tokenizer={}:{} field=", "{} mask_field={}", "period=({}, {}),before="];

/// Options of loaders and mixtures in Python alone.
const OF_LOADERS: [&str; 7] = ["batches", "blocks", "collate", "max_epochs", "skip", "steps_of", "stop"];

/// Options that all of writing has, or only commands have.
const OF_WRITING: [&str; 4] = ["overwrite", "allow_empty", "out", "to"];

/// Numbers of the order by blocks.
const OF_BLOCKS: [&str; 4] = ["size", "lanes", "rows", "pool"];

/// A text, and whether an error, a hint or a warning is given it as it is.
type Text = (String, bool);

/// The texts of a file, without docs and tests.
#[derive(Default)]
struct Texts {
    found: Vec<Text>,
    is_given: bool,
}

impl Texts {
    fn of(source: &str) -> Vec<Text> {
        let mut texts = Texts::default();
        texts.visit_file(&syn::parse_file(source).unwrap());
        texts.found
    }

    fn given(&mut self, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.is_given, true);
        visit(self);
        self.is_given = before;
    }

    // What a macro is given is not parsed.
    fn within(&mut self, mut cursor: Cursor<'_>) {
        while !cursor.eof() {
            if let Some((literal, _)) = cursor.literal() {
                let text = syn::parse_str::<LitStr>(&literal.to_string()).ok();
                self.found.extend(text.map(|text| (text.value(), self.is_given)));
            }
            if let Some((inside, _, _, _)) = cursor.any_group() {
                self.within(inside);
            }
            let Some((_, next)) = cursor.token_tree() else { return };
            cursor = next;
        }
    }
}

impl<'ast> Visit<'ast> for Texts {
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !item.attrs.iter().any(is_test) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_field_value(&mut self, field: &'ast FieldValue) {
        if !matches!(&field.member, Member::Named(name) if OF_DOCS.iter().any(|of| name == of)) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.found.push((text.value(), self.is_given));
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let is_error = matches!(&*call.func, Expr::Path(path) if path.path.segments.iter().any(|part| part.ident == "Error"));
        if is_error {
            self.given(|texts| visit::visit_expr_call(texts, call))
        } else {
            visit::visit_expr_call(self, call)
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.visit_expr(&call.receiver);
        if call.method == "hint" {
            self.given(|texts| call.args.iter().for_each(|arg| texts.visit_expr(arg)))
        } else {
            call.args.iter().for_each(|arg| self.visit_expr(arg))
        }
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        let read = |input: ParseStream<'_>| {
            input.step(|cursor| {
                self.within(*cursor);
                let mut rest = *cursor;
                while let Some((_, next)) = rest.token_tree() {
                    rest = next;
                }
                Ok(((), rest))
            })
        };
        item.parse_body_with(read).unwrap();
    }
}

fn is_test(attribute: &Attribute) -> bool {
    matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("cfg") && list.tokens.to_string().starts_with("test"))
}

/// What only one frontend says so: `dtype=`, `trust=True`, ` --dtype`, `wr.`, `ds[`, `ds.`. In backticks are commands.
fn of_one_frontend((text, is_given): &Text) -> Option<&'static str> {
    // Words for people have spaces; the markup of pages and of metrics is for programs.
    if !(*is_given || text.contains(' '))
        || text.contains("<")
        || text.starts_with("# ")
        || IDENTITIES.iter().any(|of| text.starts_with(of))
    {
        return None;
    }
    let plain: String = text.split('`').step_by(2).collect::<Vec<_>>().join("…");
    let begins = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || "_.".contains(c));
    let has = |word: &str| {
        let is_lower = |rest: &str| rest.starts_with(|c: char| c.is_ascii_lowercase());
        text.match_indices(word)
            .any(|(at, _)| begins(at) && (word.ends_with('[') || is_lower(&text[at + word.len()..])))
    };
    if let Some(found) = ["wr.", "ds.", "ds["].into_iter().find(|word| has(word)) {
        return Some(found);
    }
    let typed =
        |(at, _): (usize, &str)| plain[at + 3..].starts_with(|c: char| c.is_ascii_lowercase() || c == '{');
    if plain.match_indices(" --").any(typed) {
        return Some("--");
    }
    let is_argument = |(at, _): (usize, &str)| {
        let name = plain[..at].trim_end_matches(|c: char| c.is_ascii_lowercase() || c == '_');
        let is_name =
            name.len() < at && !name.ends_with(|c: char| c.is_alphanumeric() || "@=:,/&?$".contains(c));
        let rest = &plain[at + 1..];
        let values = ["True", "False", "None", "\"", "…"];
        let is_open =
            rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || " ,;:)([{".contains(c));
        is_name && (is_open || values.iter().any(|value| rest.starts_with(value)))
    };
    plain.match_indices('=').any(is_argument).then_some("=")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found)
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path)
        }
    }
}

/// The texts of the libraries, each with its file.
fn library() -> Vec<(String, Text)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in fs::read_dir(&crates).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut files);
    }
    files.sort();
    let named =
        files.into_iter().map(|path| (path.strip_prefix(&crates).unwrap().display().to_string(), path));
    let library = named.filter(|(name, _)| !FRONTENDS.iter().any(|frontend| name.starts_with(frontend)));
    let texts = library.map(|(name, path)| (name, Texts::of(&fs::read_to_string(path).unwrap())));
    texts.flat_map(|(name, texts)| texts.into_iter().map(move |text| (name.clone(), text))).collect()
}

#[test]
fn no_text_of_a_library_is_spelt_for_one_frontend() {
    let library = library();
    assert!(library.len() > 5_000, "{}", library.len());
    let found: Vec<String> = library
        .iter()
        .filter_map(|(file, text)| Some(format!("{file}: {}: {:?}", of_one_frontend(text)?, text.0)))
        .collect();
    assert!(found.is_empty(), "name options by marks, as @dtype@:\n{}", found.join("\n"));
}

#[test]
fn what_is_spelt_for_one_frontend_is_found() {
    let source = r##"
        /// Docs say wr.open(x, dtype="uint16").
        fn f() -> Result<()> {
            const HINT: &str = "raise read_ahead= for more";
            log::warn!("{x}: {}", format!("read it with dtype=\"{name}\""));
            let scope = || Error::config(format!("scope={text:?}"));
            Err(Error::config("it was trust=True").hint("give --dtype to it"))
        }
        static TABLE: Info = Info { written_by: "`wr.write`, numpy", hint: "mix them with wr.mix" };
        #[cfg(test)]
        mod tests { fn f() { g("ds.extras(i) of it") } }
    "##;
    let texts = Texts::of(source);
    let found: Vec<&str> =
        texts.iter().filter(|text| of_one_frontend(text).is_some()).map(|(text, _)| &**text).collect();
    assert_eq!(
        found,
        [
            "raise read_ahead= for more",
            "read it with dtype=\"{name}\"",
            "scope={text:?}",
            "it was trust=True",
            "give --dtype to it",
            "mix them with wr.mix",
        ]
    );
    for of_all in [
        "choose @dtype=float32@, or @dtype@",
        "`windrow index --checksum` keeps some",
        "blocks, as blocks:size=2048,pool=16",
        "it has 3 = 1 + 2 records",
        "the records. others",
    ] {
        assert_eq!(of_one_frontend(&(of_all.to_string(), true)), None, "{of_all}");
    }
}

/// The fields of the options of opening.
fn of_opening() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../windrow-core/src/format/options.rs");
    let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
    let options = file.items.iter().find_map(|item| match item {
        syn::Item::Struct(item) if item.ident == "Options" => Some(&item.fields),
        _ => None,
    });
    options.unwrap().iter().map(|field| field.ident.as_ref().unwrap().to_string()).collect()
}

#[test]
fn each_mark_is_an_option_or_a_word() {
    let mut known: BTreeSet<String> = of_opening();
    // Flat tokens are named by a build without them, too.
    known.extend(cfg!(not(feature = "zarr")).then(|| "zarr_format".to_string()));
    let rows = windrow::open_options().chain(windrow::LOADER).chain(windrow::prep::TOKENIZING);
    known.extend(rows.map(|row| row.name.to_string()));
    let of_views = windrow::VIEWS.iter().flat_map(|view| view.options()).map(|option| option.name);
    let written = windrow::written();
    let of_formats = written.iter().flat_map(|format| format.info.own_options()).map(|option| option.name);
    let others = [&OF_LOADERS[..], &OF_WRITING, &OF_BLOCKS].concat();
    let names = NAMES.iter().map(|(name, ..)| *name);
    known.extend(of_views.chain(of_formats).chain(others).chain(names).map(str::to_string));
    let named = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = named.clone();
    let frontend = Frontend::CommandLine(Arc::new(move |mark| {
        seen.lock().unwrap().insert(mark.name.to_string());
        String::new()
    }));
    let library = library();
    for (_, (text, _)) in &library {
        frontend.spell(text);
    }
    let named = named.lock().unwrap();
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "marks that name nothing: {unknown:?}");
    assert!(named.len() > 30, "{named:?}");
    let text: String = library.into_iter().map(|(_, (text, _))| text).collect();
    let unused: Vec<_> = WORDS
        .iter()
        .map(|word| word.mark)
        .chain(NAMES.iter().map(|(name, ..)| *name))
        .filter(|mark| !text.contains(&format!("@{mark}@")) && !text.contains(&format!("@{mark}=")))
        .collect();
    assert!(unused.is_empty(), "words that no text has: {unused:?}");
}

/// Methods of a type in a file of the facade.
fn methods(file: &str, of: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    let file = syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap();
    let own = file.items.iter().filter_map(|item| match item {
        syn::Item::Impl(item) if matches!(&*item.self_ty, syn::Type::Path(path) if path.path.is_ident(of)) => {
            Some(&item.items)
        }
        _ => None,
    });
    let functions = own.flatten().filter_map(|item| match item {
        syn::ImplItem::Fn(function) => Some(function.sig.ident.to_string()),
        _ => None,
    });
    functions.collect()
}

#[test]
fn an_option_has_its_name_in_rust_too() {
    let fields = of_opening();
    let of_opening: Vec<_> =
        windrow::open_options().map(|row| row.name).filter(|name| !fields.contains(*name)).collect();
    assert!(of_opening.is_empty(), "{of_opening:?}");
    // One call says both.
    let of_ranks = ["world_size"];
    let setters = methods("run/builder.rs", "LoaderBuilder");
    let of_loaders: Vec<_> = windrow::LOADER
        .iter()
        .map(|row| row.name)
        .filter(|name| !setters.contains(*name) && !of_ranks.contains(name))
        .collect();
    assert!(of_loaders.is_empty(), "{of_loaders:?}");
    // Those that a command has twice.
    let twice = [
        ("as_dtype", "dtype", "dtype"),
        ("row_columns", "columns", "columns"),
        ("batch_multiple", "multiple", "multiple"),
    ];
    assert_eq!(NAMES, twice);
}
