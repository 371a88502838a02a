//! White space as Python has it.

/// The separators of files, groups, records and units are white space, and not in Unicode's property.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}
