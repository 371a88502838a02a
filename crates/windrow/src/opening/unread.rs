//! Why a prompt cannot be read, in one line.

use windrow_core::Error;

/// What an error says of the file of a prompt.
pub(crate) fn unread(error: &Error) -> String {
    let place = error.place();
    let byte = place.byte.map_or_else(String::new, |byte| format!(" (byte {byte})"));
    let file = place.file.as_deref().unwrap_or_default();
    format!("its prompt {file}{byte} cannot be read: {}", error.message())
}
