//! A value of a pickle: what the stack of its machine holds.

/// A value: small ones as they are, others by their place in the arena. Sharing and cycles are copies of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Node(u32),
}
