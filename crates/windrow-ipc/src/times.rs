//! Dates, times and fixed-point numbers as text: ISO 8601, and decimal digits as Python writes them.

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
    let nanoseconds = fraction * 10i64.pow(9 - digits);
    let fraction = match nanoseconds {
        0 => String::new(),
        n if n % 1_000_000 == 0 => format!(".{:03}", n / 1_000_000),
        n if n % 1000 == 0 => format!(".{:06}", n / 1000),
        n => format!(".{n:09}"),
    };
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
    let digits = String::from_utf8(digits).unwrap_or_default();
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
