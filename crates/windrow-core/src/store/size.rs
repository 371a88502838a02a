//! Sizes as users type them.

/// Bytes: `20000000000`, `20GB`, `20 GiB`, `1.5T`, units as the commands print them, in any case; `None` for anything else.
///
/// ```
/// use windrow_core::store::parse_size;
///
/// assert_eq!(parse_size("8MiB"), Some(8 << 20));
/// assert_eq!(parse_size("8 apples"), None);
/// ```
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..digits], text[digits..].trim());
    let unit: f64 = match unit.strip_suffix('b').unwrap_or(unit) {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        "ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    if unit == 1.0 {
        return number.parse().ok();
    }
    let bytes = number.parse::<f64>().ok()? * unit;
    // Below 2^63, where a float holds what it says to less than any block of a disk.
    (bytes < 9.2e18).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_printed() {
        for (text, wanted) in [
            ("0", Some(0)),
            ("20000000000", Some(20_000_000_000)),
            ("18446744073709551615", Some(u64::MAX)),
            ("20GB", Some(20_000_000_000)),
            (" 1.5 tb ", Some(1_500_000_000_000)),
            ("512MiB", Some(512 << 20)),
            ("4Ki", Some(4096)),
            ("7k", Some(7000)),
            ("12 B", Some(12)),
            ("", None),
            ("GB", None),
            ("-1", None),
            ("1.5", None),
            ("1e9", None),
            ("20 apples", None),
            ("99999999TB", None),
            ("1..5GB", None),
        ] {
            assert_eq!(parse_size(text), wanted, "{text:?}");
        }
    }
}
