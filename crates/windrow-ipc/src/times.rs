//! Dates, times, durations and fixed-point numbers as text: ISO 8601, and decimal digits as Python writes them.

/// Days since 1970-01-01 as `YYYY-MM-DD`.
pub(crate) fn date(days: i64) -> String {
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Time of a day in units of this many digits of a second: no fraction where it is zero, else 3, 6 or 9 digits.
pub(crate) fn time(units: i64, digits: u32) -> String {
    let per_second = 10i64.pow(digits);
    let (seconds, fraction) = (units.div_euclid(per_second), units.rem_euclid(per_second));
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = of_second(fraction.unsigned_abs() * 10u64.pow(9 - digits));
    format!("{hours:02}:{minutes:02}:{seconds:02}{fraction}")
}

/// A moment in such units since 1970: `YYYY-MM-DDTHH:MM:SS`, with `Z` where it has a time zone.
pub(crate) fn timestamp(units: i64, digits: u32, zoned: bool) -> String {
    let per_day = 86_400 * 10i64.pow(digits);
    let zone = if zoned { "Z" } else { "" };
    format!("{}T{}{zone}", date(units.div_euclid(per_day)), time(units.rem_euclid(per_day), digits))
}

// Year, month and day of a number of days since 1970-01-01: eras of 400 years begin in March, so that the leap day is last.
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    // Of 0000-03-01; an i64 of days beyond that is far from any date, and only needs to be written somehow.
    let days = days.saturating_add(719_468);
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * era + year + next, month, of_month)
}

/// A length of time in such units: `PT1.500S`, `-P1DT2H3M4S`, `PT0S`; a fraction of 3, 6 or 9 digits.
pub(crate) fn duration(units: i64, digits: u32) -> String {
    let per_second = 10u64.pow(digits);
    let sign = if units < 0 { "-" } else { "" };
    let (seconds, fraction) = (units.unsigned_abs() / per_second, units.unsigned_abs() % per_second);
    let (days, hours, minutes, seconds) =
        (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let fraction = of_second(fraction * 10u64.pow(9 - digits));
    let part = |count: u64, unit: &str| if count > 0 { format!("{count}{unit}") } else { String::new() };
    let days = part(days, "D");
    let is_whole = seconds == 0 && fraction.is_empty();
    // Nothing at all is no second.
    let is_empty = days.is_empty() && hours == 0 && minutes == 0;
    let seconds = if is_whole && !is_empty { String::new() } else { format!("{seconds}{fraction}S") };
    let of_day = [part(hours, "H"), part(minutes, "M"), seconds].concat();
    let mark = if of_day.is_empty() { "" } else { "T" };
    format!("{sign}P{days}{mark}{of_day}")
}

// The fraction of a second: nothing where it is zero.
fn of_second(nanoseconds: u64) -> String {
    match nanoseconds {
        0 => String::new(),
        n if n % 1_000_000 == 0 => format!(".{:03}", n / 1_000_000),
        n if n % 1000 == 0 => format!(".{:06}", n / 1000),
        n => format!(".{n:09}"),
    }
}

/// A little-endian number with a sign, with `scale` digits behind its point: `979.79`, `0.00`, `1E-9` as Python's Decimal.
pub(crate) fn decimal(bytes: &[u8], scale: i32) -> String {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut limbs: Vec<u8> = bytes.to_vec();
    if negative {
        let mut carry = true;
        for byte in &mut limbs {
            let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (sum, over);
        }
    }
    let mut digits = Vec::new();
    while limbs.iter().any(|byte| *byte != 0) {
        let mut rest = 0u16;
        for byte in limbs.iter_mut().rev() {
            let value = rest << 8 | u16::from(*byte);
            *byte = (value / 10) as u8;
            rest = value % 10;
        }
        digits.push(b'0' + rest as u8);
    }
    if digits.is_empty() {
        digits.push(b'0');
    }
    digits.reverse();
    fixed_point(negative, String::from_utf8(digits).unwrap_or_default(), scale)
}

/// The text of a fixed-point number with more digits behind its point: `1.5` of 3 is `1.500`.
pub(crate) fn rescaled(text: &str, scale: i32) -> String {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (digits, exponent) = text.split_once('E').unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let behind = fraction.len() as i64 - exponent.parse::<i64>().unwrap_or(0);
    // A scale is of 16 bits or so; more digits than a decimal has would be zeros.
    let missing = (i64::from(scale) - behind).clamp(0, 1 << 16) as usize;
    let digits = format!("{whole}{fraction}{}", "0".repeat(missing));
    let digits = digits.trim_start_matches('0');
    fixed_point(negative, if digits.is_empty() { "0" } else { digits }.to_string(), scale)
}

// A number of these digits, the last `scale` of them behind the point.
fn fixed_point(negative: bool, digits: String, scale: i32) -> String {
    let sign = if negative { "-" } else { "" };
    // Digits before the point.
    let before = digits.len() as i64 - i64::from(scale);
    let plain = scale >= 0 && before > -6;
    let text = match (plain, before) {
        (true, _) if scale == 0 => digits,
        (true, ..=0) => format!("0.{}{digits}", "0".repeat(before.unsigned_abs() as usize)),
        (true, _) => format!("{}.{}", &digits[..before as usize], &digits[before as usize..]),
        (false, _) if digits.len() == 1 => format!("{digits}E{:+}", before - 1),
        (false, _) => format!("{}.{}E{:+}", &digits[..1], &digits[1..], before - 1),
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(-1), "1969-12-31");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(-719_162), "0001-01-01");
        assert_eq!(timestamp(-1, 3, true), "1969-12-31T23:59:59.999Z");
        assert_eq!(timestamp(86_400_000_000, 6, false), "1970-01-02T00:00:00");
        assert_eq!(timestamp(5_000, 6, false), "1970-01-01T00:00:00.005");
        assert_eq!(time(1, 9), "00:00:00.000000001");
        assert!(!date(i64::MAX).is_empty() && !date(i64::MIN).is_empty());
        assert!(!timestamp(i64::MIN, 0, false).is_empty());
    }

    #[test]
    fn durations() {
        for (units, digits, text) in [
            (5, 0, "PT5S"),
            (5_000, 3, "PT5S"),
            (5_001, 3, "PT5.001S"),
            (-1, 9, "-PT0.000000001S"),
            (0, 0, "PT0S"),
            (86_400, 0, "P1D"),
            (93_784, 0, "P1DT2H3M4S"),
            (3_600_000_000, 6, "PT1H"),
        ] {
            assert_eq!(duration(units, digits), text, "{units} {digits}");
        }
        assert!(!duration(i64::MIN, 0).is_empty() && !duration(i64::MIN, 9).is_empty());
    }

    #[test]
    fn more_digits_behind_the_point() {
        for (text, scale, more) in [
            ("979.79", 3, "979.790"),
            ("-0.05", 2, "-0.05"),
            ("0", 2, "0.00"),
            ("7", 0, "7"),
            ("0E-9", 10, "0E-10"),
            ("1.2E-7", 9, "1.20E-7"),
            ("1.2E+3", 1, "1200.0"),
        ] {
            assert_eq!(rescaled(text, scale), more, "{text} {scale}");
        }
    }

    // Each as Python's `str(Decimal(number).scaleb(-scale))`.
    #[test]
    fn fixed_point_numbers() {
        for (number, scale, text) in [
            (97_979i128, 2, "979.79"),
            (-5, 2, "-0.05"),
            (0, 2, "0.00"),
            (0, 9, "0E-9"),
            (1, 7, "1E-7"),
            (12, 8, "1.2E-7"),
            (1, 6, "0.000001"),
            (123, 0, "123"),
            (12, -2, "1.2E+3"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
        ] {
            assert_eq!(decimal(&number.to_le_bytes(), scale), text, "{number} {scale}");
        }
    }
}
