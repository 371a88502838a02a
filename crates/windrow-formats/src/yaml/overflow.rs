//! Which infinities of a YAML text are numbers beyond float64: the deserializer gives one value for `1e400` and for `.inf`.

use std::collections::VecDeque;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Options, Spanned};

/// Of every infinity in the order of the text whether it is written in digits. A second look at the text, and only where it
/// holds such a number; empty for a text that is not a YAML.
pub(super) fn overflows(text: &str, options: Options) -> VecDeque<bool> {
    if !may_overflow(text) {
        return VecDeque::new();
    }
    let found = serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
        Spanned::<Found>::deserialize(yaml)
    });
    let mut places = Vec::new();
    if let Ok(found) = found {
        take(found, &mut places);
    }
    let is_in_digits = |place: u64| {
        let rest = usize::try_from(place).ok().and_then(|place| text.get(place..)).unwrap_or_default();
        rest.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit())
    };
    places.into_iter().map(is_in_digits).collect()
}

// Whether there may be one: with an exponent of three digits or more, or with hundreds of digits.
fn may_overflow(text: &str) -> bool {
    const MOST_DIGITS: usize = 200;
    let mut bytes = text.bytes().peekable();
    let (mut digits, mut before) = (0, b' ');
    while let Some(byte) = bytes.next() {
        let is_exponent = matches!(byte, b'e' | b'E') && matches!(before, b'0'..=b'9' | b'.');
        digits = match byte {
            b'0'..=b'9' => digits + 1,
            _ => 0,
        };
        if is_exponent {
            bytes.next_if(|sign| matches!(sign, b'+' | b'-'));
            while bytes.next_if(u8::is_ascii_digit).is_some() {
                digits += 1;
            }
            if digits >= 3 {
                return true;
            }
        }
        if digits >= MOST_DIGITS {
            return true;
        }
        before = byte;
    }
    false
}

/// What a value is, as far as infinities go.
enum Found {
    Infinity,
    Other,
    /// The bytes of those in it.
    Below(Vec<u64>),
}

fn take(found: Spanned<Found>, places: &mut Vec<u64>) {
    match found.value {
        Found::Infinity => places.push(found.defined.span().byte_offset().unwrap_or(u64::MAX)),
        Found::Below(below) => places.extend(below),
        Found::Other => {}
    }
}

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(yaml: D) -> Result<Self, D::Error> {
        yaml.deserialize_any(Probe)
    }
}

struct Probe;

impl<'de> Visitor<'de> for Probe {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lists, mappings and numbers")
    }

    fn visit_f64<E>(self, number: f64) -> Result<Found, E> {
        Ok(if number.is_infinite() { Found::Infinity } else { Found::Other })
    }

    fn visit_bool<E>(self, _: bool) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_i128<E>(self, _: i128) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_u128<E>(self, _: u128) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_none<E>(self) -> Result<Found, E> {
        Ok(Found::Other)
    }

    fn visit_some<D: Deserializer<'de>>(self, yaml: D) -> Result<Found, D::Error> {
        yaml.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Found, A::Error> {
        let mut places = Vec::new();
        while let Some(found) = values.next_element()? {
            take(found, &mut places);
        }
        Ok(Found::Below(places))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<Found, A::Error> {
        let mut places = Vec::new();
        while values.next_key::<String>()?.is_some() {
            take(values.next_value()?, &mut places);
        }
        Ok(Found::Below(places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_saphyr::options::NonFiniteFloatPolicy;

    fn of(text: &str) -> VecDeque<bool> {
        let look = || {
            let options = serde_saphyr::options! {
                budget: serde_saphyr::budget! { max_depth: 120, flow_nesting_limit: 120 },
                non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
            };
            overflows(text, options)
        };
        windrow_core::threads::with_deep_stack(look).unwrap()
    }

    #[test]
    fn numbers_beyond_float64_are_told_from_infinities() {
        let digits = "9".repeat(400);
        for (text, wanted) in [
            ("- [1e400, .inf, -.inf, -1e400, 1E+999]", vec![true, false, false, true, true]),
            ("- sequence:\n  - 2.5e400\n  - .Inf\n  - '1e400'\n  x: {y: .inf}\n", vec![true, false, false]),
            ("- 'é'\n- [.inf, 1e400]", vec![false, true]),
            (&format!("- [{digits}.5, .inf]"), vec![true, false]),
            (&format!("{}1e400{}", "[".repeat(119), "]".repeat(119)), vec![true]),
            // Nothing in it is looked at twice.
            ("- [.inf, 1e39, 1e99]", vec![]),
            ("- [1e400", vec![]),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
    }
}
