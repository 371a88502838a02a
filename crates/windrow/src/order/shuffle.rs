//! In which order a loader's samples come, as it is chosen and as a recipe holds it.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use windrow_core::{Error, Result};

use crate::order::blocks::Blocks;

/// In which order a loader gives its samples. Made of a `bool`, of [`Blocks`], or of a list of them for the parts of a mixture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
#[non_exhaustive]
pub enum Shuffle {
    /// By their numbers.
    Off,
    /// Any sample at any position, another order each epoch.
    #[default]
    On,
    /// Neighbours at about the same time, another order each epoch; the same for every part of a mixture.
    Blocks(Blocks),
    /// Neighbours at about the same time, given for each part of a mixture in its order.
    Parts(Vec<Blocks>),
}

/// `true`, `false`, `{"blocks": {…}}`, `{"blocks": [{…}, {…}]}`.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Plain(bool),
    #[serde(rename_all = "lowercase")]
    Blocks {
        blocks: OneOrParts,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrParts {
    One(Blocks),
    Parts(Vec<Blocks>),
}

impl From<Written> for Shuffle {
    fn from(written: Written) -> Shuffle {
        match written {
            Written::Plain(shuffle) => shuffle.into(),
            Written::Blocks { blocks: OneOrParts::One(blocks) } => Shuffle::Blocks(blocks),
            Written::Blocks { blocks: OneOrParts::Parts(parts) } => Shuffle::Parts(parts),
        }
    }
}

impl From<Shuffle> for Written {
    fn from(shuffle: Shuffle) -> Written {
        match shuffle {
            Shuffle::Off => Written::Plain(false),
            Shuffle::On => Written::Plain(true),
            Shuffle::Blocks(blocks) => Written::Blocks { blocks: OneOrParts::One(blocks) },
            Shuffle::Parts(parts) => Written::Blocks { blocks: OneOrParts::Parts(parts) },
        }
    }
}

impl From<bool> for Shuffle {
    fn from(shuffle: bool) -> Shuffle {
        if shuffle { Shuffle::On } else { Shuffle::Off }
    }
}

impl From<Blocks> for Shuffle {
    fn from(blocks: Blocks) -> Shuffle {
        Shuffle::Blocks(blocks)
    }
}

impl From<Vec<Blocks>> for Shuffle {
    fn from(parts: Vec<Blocks>) -> Shuffle {
        Shuffle::Parts(parts)
    }
}

/// `on`, `off`, `blocks`, `blocks:size=2048,lanes=64`.
impl FromStr for Shuffle {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shuffle> {
        match (text, text.strip_prefix("blocks:")) {
            ("on", _) => Ok(Shuffle::On),
            ("off", _) => Ok(Shuffle::Off),
            ("blocks", _) => Ok(Shuffle::Blocks(Blocks::new())),
            (_, Some(numbers)) => Ok(Shuffle::Blocks(numbers.parse()?)),
            (_, None) => Err(Error::config(format!("no order is called {text:?}"))
                .hint("on, off, blocks, or blocks with numbers as blocks:size=2048,pool=16")),
        }
    }
}

impl Shuffle {
    /// Whether the batch of all ranks decides the order.
    pub(crate) fn asks_for_batch(&self) -> bool {
        match self {
            Shuffle::Off | Shuffle::On => false,
            Shuffle::Blocks(blocks) => blocks.asks_for_batch(),
            Shuffle::Parts(parts) => parts.iter().any(Blocks::asks_for_batch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_before_and_with_blocks() {
        let shapes = Blocks::new().size(2048).lanes(64).rows(4).pool(16);
        for (shuffle, text) in [
            (Shuffle::On, "true"),
            (Shuffle::Off, "false"),
            (Shuffle::Blocks(Blocks::new()), r#"{"blocks":{}}"#),
            (shapes.into(), r#"{"blocks":{"size":2048,"lanes":64,"rows":4,"pool":16}}"#),
            (
                vec![Blocks::new().pool(2), Blocks::new().bytes(9)].into(),
                r#"{"blocks":[{"pool":2},{"bytes":9}]}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&shuffle).unwrap(), text);
            assert_eq!(serde_json::from_str::<Shuffle>(text).unwrap(), shuffle);
        }
        for (text, shuffle) in [
            ("on", Shuffle::On),
            ("off", Shuffle::Off),
            ("blocks", Blocks::new().into()),
            ("blocks:pool=2", Blocks::new().pool(2).into()),
        ] {
            assert_eq!(text.parse::<Shuffle>().unwrap(), shuffle);
        }
        assert!("block".parse::<Shuffle>().unwrap_err().hint_text().unwrap().contains("blocks:size="));
        for text in ["1", "{}", r#"{"blocks":{"length":1}}"#, r#"{"blocks":true}"#] {
            assert!(serde_json::from_str::<Shuffle>(text).is_err(), "{text}");
        }
    }
}
