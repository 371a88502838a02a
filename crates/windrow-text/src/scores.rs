//! The scores of a unigram vocabulary, read as the Python package reads them.
//!
//! The package is built with a `serde_json` that is fast rather than exact: of numbers with 17 digits, it reads some one bit
//! off the nearest. Two ways to cut a text may differ by that bit alone. Here the exact way (its feature `float_roundtrip`)
//! is on for the tokenizers library, too, because windrow-core and zarrs need it; so scores are read here, from their digits.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokenizers::models::ModelWrapper;
use tokenizers::models::unigram::Unigram;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    model: Model<'a>,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(borrow)]
    vocab: Vec<(String, &'a RawValue)>,
    #[serde(default)]
    unk_id: Option<usize>,
}

/// The unigram model of a definition with the package's scores; `None` where the definition is of another model.
pub(crate) fn as_in_python(content: &[u8], loaded: &ModelWrapper) -> Option<Unigram> {
    let ModelWrapper::Unigram(loaded) = loaded else { return None };
    let File { model } = serde_json::from_slice(content).ok()?;
    let vocab = model.vocab.into_iter().map(|(token, score)| Some((token, read(score.get())?)));
    Unigram::from(vocab.collect::<Option<_>>()?, model.unk_id, loaded.byte_fallback()).ok()
}

/// The number that a JSON text gives without `float_roundtrip`: digits while they fit 64 bits, then one rounded
/// multiplication or division. `None` where it is not finite.
fn read(text: &str) -> Option<f64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (digits, exponent) = match digits.split_once(['e', 'E']) {
        Some((digits, exponent)) => {
            let endless = if exponent.starts_with('-') { i32::MIN } else { i32::MAX };
            (digits, exponent.parse().unwrap_or(endless))
        }
        None => (digits, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let (significand, taken) = take(0, whole);
    let left_out = (whole.len() - taken) as i32;
    let (significand, taken) = take(significand, fraction);
    let value = scaled(significand as f64, (left_out - taken as i32).saturating_add(exponent))?;
    Some(if negative { -value } else { value })
}

// The digits that still fit behind those that are there, and how many they are.
fn take(mut significand: u64, digits: &str) -> (u64, usize) {
    for (taken, digit) in digits.bytes().enumerate() {
        match significand.checked_mul(10).and_then(|s| s.checked_add(u64::from(digit - b'0'))) {
            Some(longer) => significand = longer,
            None => return (significand, taken),
        }
    }
    (significand, digits.len())
}

fn scaled(mut value: f64, mut exponent: i32) -> Option<f64> {
    let power = |exponent: i32| format!("1e{exponent}").parse::<f64>().ok();
    while exponent < -308 && value != 0.0 {
        value /= 1e308;
        exponent += 308;
    }
    match exponent {
        _ if value == 0.0 => Some(value),
        0.. => Some(value * power(exponent)?).filter(|value| value.is_finite()),
        _ => Some(value / power(-exponent)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_python_package() {
        // Read by tokenizers 0.23.3 from a vocabulary, and written out again by it. The first ones are not the nearest.
        for (text, bits) in [
            ("-9.989500000000001", 0xc023_fa9f_be76_c8b4_u64),
            ("-11.901317250991713", 0xc027_cd79_7468_a8f9),
            ("-10.468060916952883", 0xc024_efa5_ae35_b263),
            ("-1.8050748806351962", 0xbffc_e196_32b2_8c5f),
            ("-1.9566809912083443", 0xbfff_4e90_ba1f_1d81),
            ("-3.8994434597395546", 0xc00f_320f_69a1_75b7),
            ("-14.790153792160812", 0xc02d_948f_09b0_483a),
            ("0", 0),
            ("-0", 1 << 63),
            ("-1", 0xbff0_0000_0000_0000),
            ("0.1", 0x3fb9_9999_9999_999a),
            ("1E+5", 0x40f8_6a00_0000_0000),
            ("1e-5", 0x3ee4_f8b5_88e3_68f1),
            ("12345678901234567890", 0x43e5_6a95_319d_63e1),
            ("18446744073709551610.75", 0x43f0_0000_0000_0000),
            ("123456789012345678901234567890.5", 0x45f8_ee90_ff6c_373e),
            ("99999999999999999999.9e-5", 0x430c_6bf5_2634_0000),
            ("0.000000000000000000000000000000012345678901234567", 0x3950_068e_359d_d3b0),
            ("-17976931348623157e292", 0xffef_ffff_ffff_ffff),
            ("-1.5e-310", 0x8000_1b9c_d129_5941),
            ("4.9e-324", 1),
            ("1e-99999999999", 0),
        ] {
            assert_eq!(read(text).map(f64::to_bits), Some(bits), "{text}");
        }
        assert_eq!((read("1e309"), read("1e99999999999")), (None, None));
    }

    #[test]
    fn this_program_reads_json_otherwise_than_the_package() {
        // Else this module is not needed.
        let ours: f64 = serde_json::from_str("-9.989500000000001").unwrap();
        assert_eq!(Some(ours.to_bits()), read("-9.989500000000001").map(|package| package.to_bits() + 1));
    }
}
