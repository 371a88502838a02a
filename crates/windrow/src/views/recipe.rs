//! A view as text: how records become samples, option by option.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windrow_core::collate::Labels;
use windrow_core::source::{Custom, Nan};
use windrow_core::{Error, Result};

use crate::views::bins::Bins;
use crate::views::codes::Codes;
use crate::views::crop::Crop;
use crate::views::cursor::Cursor;
use crate::views::kind::ViewKind;
use crate::views::option::{self, ViewInfo};
use crate::views::pack::Pack;
use crate::views::records::Records;
use crate::views::rows::Rows;
use crate::views::scaler::Scaler;
use crate::views::segments::Segments;
use crate::views::windows::Windows;

/// One way of slicing records into samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViewRecipe {
    /// Blocks over the joined records.
    Pack(Pack),
    /// One row per record.
    Records(Records),
    /// Sliding windows.
    Windows(Windows),
    /// Up to `length` values of each record.
    Crop(Crop),
    /// Up to `length` frames of each track of codes, with its text, as a codec language model is trained.
    Codes(Codes),
    /// Whole records side by side.
    Bins(Bins),
    /// Rows behind a cursor, as oxidizr's loader reads a stream.
    Cursor(Cursor),
    /// Records whole, as they are: rows of columns, or JSON.
    Rows(Rows),
    /// Records one after the other, split where a row is full.
    Segments(Segments),
}

/// The views that front ends have, in the order of their help.
pub static VIEWS: &[ViewInfo] = &[
    Pack::INFO,
    Records::INFO,
    Windows::INFO,
    Crop::INFO,
    Codes::INFO,
    Bins::INFO,
    Segments::INFO,
    Rows::INFO,
];

impl ViewRecipe {
    /// The view of this name with these options, as [`VIEWS`] has them; what is null is at its default, or the word `none`
    /// where there is one.
    ///
    /// # Errors
    /// `Config` for a view or an option that is not there, a word that it does not know, a value of another type.
    pub fn of(view: &str, given: Map<String, Value>) -> Result<ViewRecipe> {
        let info = VIEWS.iter().find(|info| info.name == view);
        let info = info.ok_or_else(|| {
            let names: Vec<&str> = VIEWS.iter().map(|info| info.name).collect();
            Error::config(format!("no view is called {view:?}")).hint(format!("one of {}", names.join(", ")))
        })?;
        let given = option::read(info, given)?;
        let given = (info.arrange)(given)?;
        let recipe = Value::Object(Map::from_iter([(view.to_string(), Value::Object(given))]));
        serde_json::from_value(recipe).map_err(|e| Error::config(format!("{view}: {e}")))
    }

    /// What each record is scaled by.
    pub fn scaler(&self) -> &Scaler {
        self.kind().statistics().scaler
    }

    /// Scales its records by this function, where it names one.
    #[must_use]
    pub fn scaled_by(mut self, custom: Custom) -> ViewRecipe {
        if let Some(scaler @ Scaler::Custom(_)) = self.kind_mut().scaler_mut() {
            *scaler = Scaler::Custom(custom);
        }
        self
    }

    /// What NaN and infinity do.
    pub fn nan(&self) -> Nan {
        self.kind().statistics().nan
    }

    /// Whether a sample is another one each time it is drawn: where it starts, or what is made of its text.
    pub fn is_random(&self) -> bool {
        self.kind().is_random()
    }

    /// What `labels` are; `None` for views that have their own kind of tensors.
    pub fn labels(&self) -> Option<Labels> {
        self.kind().labels()
    }

    /// Sets its labels.
    ///
    /// # Errors
    /// `Config` for a view that has no such choice.
    pub fn with_labels(mut self, given: Labels) -> Result<ViewRecipe> {
        let labels = self.kind_mut().labels_mut().ok_or_else(|| {
            Error::config("labels are chosen for a view that does not let them be chosen")
                .hint("pack, records, windows, bins and segments do")
        })?;
        *labels = given;
        Ok(self)
    }
}

macro_rules! recipes {
    ($($View:ident)*) => {
        impl ViewRecipe {
            pub(crate) fn kind(&self) -> &dyn ViewKind {
                match self {
                    $(ViewRecipe::$View(view) => view,)*
                }
            }

            fn kind_mut(&mut self) -> &mut dyn ViewKind {
                match self {
                    $(ViewRecipe::$View(view) => view,)*
                }
            }
        }

        $(impl From<$View> for ViewRecipe {
            fn from(view: $View) -> ViewRecipe {
                ViewRecipe::$View(view)
            }
        })*
    };
}

recipes! { Pack Records Windows Crop Codes Bins Cursor Rows Segments }

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windrow_core::Kind;
    use windrow_core::view::Mode;

    use windrow_core::format::Takes;
    use windrow_core::view::Strategy;

    use super::*;

    #[test]
    fn recipes_from_before_scalers_are_read_and_written_as_they_were() {
        let text = r#"{"windows":{"context_length":8,"prediction_length":0,"tail":"drop"}}"#;
        let recipe: ViewRecipe = serde_json::from_str(text).unwrap();
        assert_eq!((recipe.scaler(), recipe.nan()), (&Scaler::None, Nan::Propagate));
        assert_eq!(serde_json::to_string(&recipe).unwrap(), text);
        let text = r#"{"segments":{"length":8,"buckets":[2,8],"scaler":"zero","nan":"mask"}}"#;
        let recipe: ViewRecipe = serde_json::from_str(text).unwrap();
        assert_eq!((recipe.scaler(), recipe.nan()), (&Scaler::Zero, Nan::Mask));
        assert_eq!(serde_json::to_string(&recipe).unwrap(), text);
    }

    #[test]
    fn recipes_say_how_rows_are_padded_and_split_only_where_it_is_chosen() {
        for text in [
            r#"{"records":{"length":8,"pad_value":0,"pad":"longest"}}"#,
            r#"{"records":{"length":8,"pad_value":0,"pad":"longest","group":32}}"#,
            r#"{"records":{"length":8,"pad_value":0,"pad":[2,4,8]}}"#,
            r#"{"bins":{"length":8,"strategy":"best_fit","overlong":"split","pad_value":0,"fields":["labels"]}}"#,
            r#"{"bins":{"length":8,"strategy":"best_fit","scope":"block","pad_value":0}}"#,
            r#"{"bins":{"length":8,"strategy":"best_fit","scope":4096,"pad_value":0}}"#,
            r#"{"segments":{"length":8,"fields":["cu_seqlens"]}}"#,
        ] {
            let recipe: ViewRecipe = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&recipe).unwrap(), text);
        }
    }

    #[test]
    fn recipes_say_labels_only_where_they_are_not_the_values_after() {
        for text in [
            r#"{"pack":{"length":8}}"#,
            r#"{"records":{"length":8,"pad_value":0}}"#,
            r#"{"windows":{"context_length":8,"prediction_length":0,"tail":"drop"}}"#,
            r#"{"bins":{"length":8,"strategy":"best_fit","pad_value":0}}"#,
            r#"{"segments":{"length":8}}"#,
        ] {
            let recipe: ViewRecipe = serde_json::from_str(text).unwrap();
            assert_eq!(recipe.labels(), Some(Labels::Next));
            assert_eq!(serde_json::to_string(&recipe).unwrap(), text);
            for (labels, word) in [(Labels::Same, "same"), (Labels::None, "none")] {
                let other = recipe.clone().with_labels(labels).unwrap();
                let written = serde_json::to_string(&other).unwrap();
                assert_eq!(written, text.replace("}}", &format!(",\"labels\":\"{word}\"}}}}")));
                assert_eq!(serde_json::from_str::<ViewRecipe>(&written).unwrap(), other);
            }
        }
        let crop = ViewRecipe::from(Crop::new(8).mode(Mode::Start));
        assert_eq!(crop.labels(), None);
        assert_eq!(crop.with_labels(Labels::Same).unwrap_err().kind(), Kind::Config);
    }

    #[test]
    fn words_of_the_tables_are_those_that_recipes_read() {
        for view in VIEWS {
            for option in view.options() {
                let words = match option.takes {
                    Takes::Words(words) => words,
                    _ => continue,
                };
                let default = (option.default)();
                assert!(words.iter().any(|word| default == *word), "{}: {default}", option.name);
                for word in words {
                    let mut given = json!({ (option.name): word });
                    if let Some(number) = view.number {
                        given[number] = 8.into();
                    }
                    if option.name == "positions" {
                        given["documents"] = true.into();
                    }
                    let Value::Object(given) = given else { unreachable!() };
                    let read = ViewRecipe::of(view.name, given);
                    assert!(read.is_ok(), "{} {}={word}: {}", view.name, option.name, read.unwrap_err());
                }
            }
        }
    }

    #[test]
    fn options_are_read_by_name_and_refused_by_name() {
        let of = |view: &str, given: Value| match given {
            Value::Object(given) => ViewRecipe::of(view, given),
            _ => unreachable!(),
        };
        let bins = of("bins", json!({"length": 8, "strategy": "First_Fit", "labels": null})).unwrap();
        assert_eq!(bins, Bins::new(8).strategy(Strategy::FirstFit).labels(Labels::None).into());
        let pack = of("pack", json!({"length": 8, "documents": true, "positions": "document"})).unwrap();
        assert_eq!(
            serde_json::to_value(&pack).unwrap()["pack"]["documents"],
            json!({"positions": "document", "ignore_index": -100})
        );
        let codes = of("codes", json!({"length": 8, "codebook_size": null, "tag_limit": 2})).unwrap();
        let layout = &serde_json::to_value(&codes).unwrap()["codes"]["layout"];
        assert_eq!((&layout["codebook_size"], &layout["tags"]["limit"]), (&Value::Null, &2.into()));
        for (view, given, said) in [
            ("bins", json!({"length": 8, "strategy": "worst"}), ".strategy(\"worst\")"),
            ("bins", json!({"length": 8, "eos": 1}), "eos is not an option of bins"),
            ("pack", json!({"length": 8, "ignore_index": 0}), "of a pack without documents"),
            ("codes", json!({}), "no length"),
            ("crop", json!({"length": "8"}), "crop"),
            ("heap", json!({"length": 8}), "no view is called \"heap\""),
        ] {
            let error = of(view, given).unwrap_err();
            assert_eq!(error.kind(), Kind::Config);
            assert!(format!("{error:#}").contains(said), "{error}");
        }
    }
}
