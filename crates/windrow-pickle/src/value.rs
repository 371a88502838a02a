//! A value of a pickle: what the stack of its machine holds.

/// A value: small ones as they are, others by their place in the arena. Sharing and cycles are copies of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// A whole number of 64 bits.
    Int(i64),
    /// A float of 64 bits.
    Float(f64),
    /// Anything else: its place in the arena.
    Node(u32),
}
