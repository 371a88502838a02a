//! An option of a view as a row of a table: what it is called, what it takes, what it does. Front ends make arguments of
//! the rows, so an option that a view declares is in all of them.

use serde_json::{Map, Value};
use windrow_core::collate::{DocumentsLayout, Labels};
use windrow_core::format::{OptionRow, Takes};
use windrow_core::source::{Fit, Nan, Per};
use windrow_core::view::{Mode, Overlong, Starts, Strategy, Tail};
use windrow_core::{Error, Result};

/// Words that only another program's own numbers need: no help lists them.
const OWN_WORDS: [&str; 2] = ["max-float32", "zero-float32"];

/// Options by name.
pub(crate) type Given = Map<String, Value>;

/// A view as front ends have it: its name, and its options by theirs.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ViewInfo {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub help: &'static str,
    /// The option that it is called with.
    pub number: Option<&'static str>,
    pub(crate) options: &'static [&'static [OptionRow]],
    /// Puts options that the recipe has within others there.
    pub(crate) arrange: fn(Given) -> Result<Given>,
}

impl ViewInfo {
    /// What it takes.
    pub fn options(&self) -> impl Iterator<Item = &'static OptionRow> {
        self.options.iter().copied().flatten()
    }
}

// A scaler may be a function of the caller's, by its name.
fn value_of(option: &OptionRow, value: Value) -> Result<Value> {
    match &value {
        Value::String(word)
            if option.name == "scaler" && OWN_WORDS.contains(&word.to_lowercase().as_str()) =>
        {
            Ok(word.to_lowercase().into())
        }
        Value::Object(_) if option.name == "scaler" => Ok(value),
        _ => option.read(value),
    }
}

/// The options of a view as its recipe has them. What is null, and no word says so, is left at its default.
///
/// # Errors
/// `Config` for an option that the view does not have, and for a word that it does not know.
pub(crate) fn read(info: &ViewInfo, given: Given) -> Result<Given> {
    let mut read = Map::new();
    for (name, value) in given {
        let option = info.options().find(|option| option.name == name);
        let option = option
            .ok_or_else(|| Error::config(format!("{name} is not an option of {}", info.name)).field(&name))?;
        let value = value_of(option, value)?;
        if !value.is_null() {
            read.insert(name, value);
        }
    }
    Ok(read)
}

/// Plans that were written before there was an option stay as they were.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A type that an option of a view can have.
pub(crate) trait Taken {
    /// What front ends take for it.
    const TAKES: Takes;
}

macro_rules! taken {
    ($($Type:ty: $takes:expr;)*) => {
        $(impl Taken for $Type {
            const TAKES: Takes = $takes;
        })*
    };
}

impl<T: Taken> Taken for Option<T> {
    const TAKES: Takes = T::TAKES;
}

taken! {
    String: Takes::Text("TEXT");
    Vec<String>: Takes::Names("NAME");
    bool: Takes::On;
    u64: Takes::Number("N");
    i64: Takes::Id("ID");
    Fit: Takes::Part;
    Labels: Takes::Words(&["next", "same", "none"]);
    Mode: Takes::Words(&["random", "start"]);
    Nan: Takes::Words(&["propagate", "mask"]);
    Overlong: Takes::Words(&["cut", "split", "drop"]);
    Per: Takes::Words(&["series", "channel", "window"]);
    Starts: Takes::Words(&["strided", "random", "last"]);
    Strategy: Takes::Words(&["best_fit", "first_fit"]);
    Tail: Takes::Words(&["drop", "pad"]);
    DocumentsLayout: Takes::On;
    Vec<u64>: Takes::Numbers("N");
}

/// A field of a recipe, of what its setter is given.
pub(crate) trait Set<T> {
    fn of(given: T) -> Self;
}

impl<T> Set<T> for T {
    fn of(given: T) -> T {
        given
    }
}

impl<T> Set<T> for Option<T> {
    fn of(given: T) -> Option<T> {
        Some(given)
    }
}

impl<T> Set<T> for Box<T> {
    fn of(given: T) -> Box<T> {
        Box::new(given)
    }
}

impl Set<&str> for Option<String> {
    fn of(given: &str) -> Option<String> {
        Some(given.to_string())
    }
}

impl Set<&[&str]> for Vec<String> {
    fn of(given: &[&str]) -> Vec<String> {
        given.iter().map(|name| (*name).to_string()).collect()
    }
}

impl Set<&[&str]> for Option<Vec<String>> {
    fn of(given: &[&str]) -> Option<Vec<String>> {
        Some(Set::of(given))
    }
}

/// The type that a setter takes.
macro_rules! given {
    ($Type:ty) => {
        $Type
    };
    ($Type:ty, $Given:ty) => {
        $Given
    };
}
pub(crate) use given;

/// The first of some.
macro_rules! first {
    ($first:expr $(, $rest:expr)*) => {
        $first
    };
}
pub(crate) use first;

/// Declares a view: its options are the fields of its recipe, a setter each, and the rows of its table; `beside` are rows
/// whose values are in a field of another name, which `@holds` names. `as` is what the setter takes instead of the field, `=` the
/// flag of the command line where the name is taken there. A recipe says what is not at its default, and what is `kept`.
macro_rules! view {
    (
        $(#[$about:meta])*
        pub struct $View:ident {
            $(@needs { $(#[doc = $needs:literal])* $needed:ident: $Needed:ty, })?
            $($(#[doc = $help:literal])* $(#[kept = $kept:tt])? $name:ident: $Type:ty $(as $Given:ty)? $(= $flag:literal)?,)*
            $(@holds { $(#[doc = $holds:literal])* $held:ident: $Held:ty as $Holds:ty, })?
        }
        called $called:literal, $summary:literal;
        $(beside { $($beside:tt)* })?
        $(arranged by $arrange:expr;)?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[non_exhaustive]
        pub struct $View {
            $($(#[doc = $needs])* pub $needed: $Needed,)?
            $($(#[doc = $help])*
            #[serde(default)]
            #[cfg_attr(not(any($($kept)?)), serde(skip_serializing_if = "crate::views::option::is_default"))]
            pub $name: $Type,)*
            $($(#[doc = $holds])*
            #[serde(default, skip_serializing_if = "crate::views::option::is_default")]
            pub $held: $Held,)?
        }

        impl $View {
            $(/// With every option at its default.
            pub fn new($needed: $Needed) -> $View {
                $View { $needed, ..$View::default() }
            })?

            $($(#[doc = $help])*
            #[must_use]
            pub fn $name(mut self, $name: crate::views::option::given!($Type $(, $Given)?)) -> $View {
                self.$name = crate::views::option::Set::of($name);
                self
            })*

            $($(#[doc = $holds])*
            #[must_use]
            pub fn $held(mut self, $held: $Holds) -> $View {
                self.$held = crate::views::option::Set::of($held);
                self
            })?

            /// What front ends have of it.
            pub(crate) const INFO: crate::views::option::ViewInfo = crate::views::option::ViewInfo {
                name: $called,
                help: $summary,
                number: crate::views::option::first!($(Some(stringify!($needed)),)? None),
                options: &[
                    windrow_core::option_rows! {
                        $($(#[doc = $needs])* $needed: <$Needed as crate::views::option::Taken>::TAKES;)?
                        $($(#[doc = $help])* $name: <$Type as crate::views::option::Taken>::TAKES, of $Type $(, flag $flag)?;)*
                    },
                    windrow_core::option_rows! { $($($beside)*)? },
                ],
                arrange: crate::views::option::first!($($arrange,)? Ok),
            };
        }

        $(impl From<$Needed> for $View {
            fn from($needed: $Needed) -> $View {
                $View::new($needed)
            }
        })?
    };
}
pub(crate) use view;

/// Where a view has `labels`, or a `scaler`, which can be chosen again.
macro_rules! chosen {
    (labels) => {
        fn labels(&self) -> Option<Labels> {
            Some(self.labels)
        }

        crate::views::option::chosen!(labels_mut, labels, Labels);
    };
    (scaler) => {
        crate::views::option::chosen!(scaler_mut, scaler, Scaler);
    };
    ($at:ident, $field:ident, $Type:ty) => {
        fn $at(&mut self) -> Option<&mut $Type> {
            Some(&mut self.$field)
        }
    };
}
pub(crate) use chosen;
