//! What a row costs the rank that gets it: a whole number, of the lengths of its documents.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

/// What a row costs the rank that gets it.
#[derive(Clone)]
pub enum Balance {
    /// Its tokens.
    Tokens,
    /// A number a: Σ a·L + L² over the lengths L of its documents, as attention within documents costs.
    Attention(u64),
    /// What this says.
    By(Arc<dyn Cost>),
}

/// Says what a row costs.
pub trait Cost: Send + Sync {
    /// The cost of a row whose documents have these lengths. Every rank has to find the same.
    ///
    /// # Errors
    /// What a function of the caller's says: the error of each batch of the step.
    fn cost(&self, lengths: &[u64]) -> Result<u128>;

    /// The costs of rows.
    ///
    /// # Errors
    /// As [`Cost::cost`].
    fn costs(&self, rows: &[Vec<u64>]) -> Result<Vec<u128>> {
        rows.iter().map(|lengths| self.cost(lengths)).collect()
    }

    /// What it is called.
    fn name(&self) -> String {
        "a function".to_string()
    }
}

impl<F: Fn(&[u64]) -> Result<u128> + Send + Sync> Cost for F {
    fn cost(&self, lengths: &[u64]) -> Result<u128> {
        self(lengths)
    }
}

impl Balance {
    /// a of a hidden size of 4,096: 24·h² a token in the matrices, 4·h·L in attention.
    pub const ATTENTION: u64 = 24_576;

    /// The cost of a row whose documents have these lengths.
    ///
    /// ```
    /// use windrow_core::plan::Balance;
    ///
    /// assert_eq!(Balance::Tokens.cost(&[3, 4])?, 7);
    /// assert_eq!(Balance::Attention(10).cost(&[3, 4])?, 30 + 9 + 40 + 16);
    /// # Ok::<(), windrow_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// What [`Cost::cost`] says; `Config` for a cost of more than 128 bits.
    pub fn cost(&self, lengths: &[u64]) -> Result<u128> {
        let mut lens = lengths.iter().map(|len| u128::from(*len));
        match self {
            Balance::Tokens => Ok(lens.sum()),
            Balance::Attention(a) => lens
                .try_fold(0u128, |sum, len| sum.checked_add(len.checked_mul(u128::from(*a) + len)?))
                .ok_or_else(|| Error::config("a row costs more than 128 bits can count").field("balance")),
            Balance::By(cost) => cost.cost(lengths),
        }
    }

    /// The costs of rows.
    ///
    /// # Errors
    /// As [`Balance::cost`].
    pub fn costs(&self, rows: &[Vec<u64>]) -> Result<Vec<u128>> {
        match self {
            Balance::By(cost) => cost.costs(rows),
            _ => rows.iter().map(|lengths| self.cost(lengths)).collect(),
        }
    }
}

/// As options have it.
impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Balance::Tokens => f.write_str("tokens"),
            Balance::Attention(Balance::ATTENTION) => f.write_str("attention"),
            Balance::Attention(a) => write!(f, "{a}"),
            Balance::By(cost) => f.write_str(&cost.name()),
        }
    }
}

impl fmt::Debug for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Balance({self})")
    }
}

impl std::str::FromStr for Balance {
    type Err = Error;

    fn from_str(text: &str) -> Result<Balance> {
        match text {
            "tokens" => Ok(Balance::Tokens),
            "attention" => Ok(Balance::Attention(Balance::ATTENTION)),
            _ => text.parse().map(Balance::Attention).map_err(|_| {
                Error::config(format!("@balance={text:?}@"))
                    .field("balance")
                    .hint("tokens, attention, or a whole number a: a row then costs a·L + L² for each document of L tokens in it")
            }),
        }
    }
}
