//! Text that is not UTF-8.

/// Whether bytes begin as text of UTF-16 does: with its mark, or with a character of ASCII in two bytes.
pub fn begins_as_utf16(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [_, 0, _, 0, ..] | [0, _, 0, _, ..])
}
