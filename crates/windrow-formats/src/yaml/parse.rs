//! The text of a YAML file as values, handed over one by one.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use windrow_core::{Error, Result, threads};

use super::overflow;
use crate::converted::{Event, MOST_DEPTH, Shapes, Sink};

/// Hands the values of a text to the shapes.
///
/// # Errors
/// `Corrupt` for what is not YAML, and for what the shapes refuse.
pub(super) fn parse(bytes: &[u8], shapes: &mut Shapes<'_>) -> Result<()> {
    // A level takes kilobytes of the stack where the library is not optimised, and the caller's thread may have little.
    threads::with_deep_stack(|| parse_here(bytes, shapes))?
}

fn parse_here(bytes: &[u8], shapes: &mut Shapes<'_>) -> Result<()> {
    let text = simdutf8::compat::from_utf8(bytes).map_err(|e| {
        let at = e.valid_up_to();
        let found = bytes.get(at).copied().unwrap_or_default();
        shapes.error(format!("expected UTF-8, found byte 0x{found:02x}"), Some(at as u64))
    })?;
    // A node takes a byte at least; what takes more nodes than the file has bytes names some of them again.
    let most = text.len().saturating_add(16);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: most.saturating_mul(4),
            max_nodes: most,
            max_total_scalar_bytes: most,
            max_depth: MOST_DEPTH,
            flow_nesting_limit: MOST_DEPTH,
            max_documents: 1,
            max_aliases: 0,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        // As in YAML 1.1, which PyYAML reads: 010 is 8.
        legacy_octal_numbers: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    let overflows = overflow::overflows(text, options.clone());
    let teller = RefCell::new(Teller { shapes, overflows, failed: None });
    let told = serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
        Told(&teller).deserialize(yaml)
    });
    let Err(cause) = told else { return Ok(()) };
    let byte = cause.location().and_then(|location| location.span().byte_offset());
    let Teller { shapes, failed, .. } = teller.into_inner();
    Err(match failed {
        // What came was YAML, but no series.
        Some(error) => match (error.place().byte, byte) {
            (None, Some(byte)) => error.byte(byte),
            _ => error,
        },
        None => shapes
            .error("expected YAML without aliases, tags and second documents", byte)
            .caused_by(cause.to_string())
            .hint("series need plain lists, mappings and numbers; PyYAML writes no aliases for copies of a list"),
    })
}

/// Hands values to the shapes, and keeps their error: the deserializer's own kind holds a text only.
struct Teller<'s, 'd> {
    shapes: &'s mut Shapes<'d>,
    /// Of the infinities to come, which are numbers beyond float64.
    overflows: VecDeque<bool>,
    failed: Option<Error>,
}

impl Teller<'_, '_> {
    fn tell<E: serde::de::Error>(&mut self, event: Event<'_>) -> Result<(), E> {
        self.shapes.event(event, None).map_err(|error| {
            let text = error.message().to_string();
            self.failed = Some(error);
            E::custom(text)
        })
    }
}

/// A value that is passed on as it is read.
struct Told<'t, 's, 'd>(&'t RefCell<Teller<'s, 'd>>);

impl Told<'_, '_, '_> {
    fn tell<E: serde::de::Error>(&self, event: Event<'_>) -> Result<(), E> {
        self.0.borrow_mut().tell(event)
    }
}

impl<'de> DeserializeSeed<'de> for Told<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, yaml: D) -> Result<(), D::Error> {
        yaml.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Told<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lists, mappings and numbers")
    }

    fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<(), E> {
        self.tell(Event::Bool(flag))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        self.tell(Event::Int(number))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        match i64::try_from(number) {
            Ok(number) => self.tell(Event::Int(number)),
            Err(_) => self.tell(Event::Big(&number.to_string())),
        }
    }

    fn visit_i128<E: serde::de::Error>(self, number: i128) -> Result<(), E> {
        self.tell(Event::Big(&number.to_string()))
    }

    fn visit_u128<E: serde::de::Error>(self, number: u128) -> Result<(), E> {
        self.tell(Event::Big(&number.to_string()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        let is_overflow = number.is_infinite() && self.0.borrow_mut().overflows.pop_front() == Some(true);
        self.tell(if is_overflow { Event::Overflow(number) } else { Event::Float(number) })
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.tell(Event::Text(text))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.tell(Event::Null)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        self.tell(Event::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, yaml: D) -> Result<(), D::Error> {
        yaml.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        self.tell(Event::List)?;
        while values.next_element_seed(Told(self.0))?.is_some() {}
        self.tell(Event::ListEnd)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        self.tell(Event::Dict)?;
        while let Some(key) = values.next_key::<String>()? {
            self.tell::<A::Error>(Event::Key(&key))?;
            values.next_value_seed(Told(self.0))?;
        }
        self.tell(Event::DictEnd)
    }
}
