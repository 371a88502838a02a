//! The documents at the places of a pass: a keyed permutation of each scope, so that both directions are arithmetic.

use std::ops::Range;

use crate::permutation::Permutation;
use crate::record::{Pass, keyed_hash};

/// Sets the keys of these orders apart from every other use of the hash.
const DOCS: u64 = 0x646f_6373_3100_0000;

/// What plans call this order: whoever changes it must name it differently.
pub(in crate::view) const WORD: &str = "docs-v1";

/// Consecutive documents that trade places among themselves: all of them, or a number of them at a time.
#[derive(Clone, Copy, Debug)]
pub(in crate::view) struct Scopes {
    n: u64,
    each: u64,
}

impl Scopes {
    /// Scopes of `each` of `n` documents.
    pub(in crate::view) fn new(n: u64, each: Option<u64>) -> Scopes {
        Scopes { n, each: each.unwrap_or(n).clamp(1, n.max(1)) }
    }

    /// Documents in all of them.
    pub(in crate::view) fn n(&self) -> u64 {
        self.n
    }

    /// How many there are.
    pub(in crate::view) fn count(&self) -> u64 {
        self.n.div_ceil(self.each)
    }

    /// The scope of a document, and of its place.
    pub(in crate::view) fn of(&self, number: u64) -> u64 {
        number / self.each
    }

    /// The documents of a scope that is there, and their places.
    pub(in crate::view) fn range(&self, scope: u64) -> Range<u64> {
        let start = scope * self.each;
        start..start.saturating_add(self.each).min(self.n)
    }
}

/// The key of all orders of a pass.
pub(in crate::view) fn key(pass: Pass) -> u64 {
    keyed_hash(pass.seed, [pass.epoch, pass.pass, DOCS])
}

/// The documents of a scope by their places in it, both counted from its first one.
pub(super) fn documents(pass: Pass, scope: u64, len: u64) -> Permutation {
    permutation(key(pass), [scope, pass.view, 0], len)
}

/// An order of `len` numbers under a key.
pub(in crate::view) fn permutation(key: u64, numbers: [u64; 3], len: u64) -> Permutation {
    Permutation::new(keyed_hash(key, numbers), len)
}

/// The order in which short records are put into rows: the same in every plan.
pub(in crate::view) fn row_order(len: u64) -> Permutation {
    permutation(0, [0, 0, DOCS], len)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::Value;

    use super::*;

    /// What a program of its own wrote, in numpy.
    pub(in crate::view::reshuffle) fn recorded() -> Value {
        let text = include_str!("../../../../../testdata/golden/orders/composition.json");
        serde_json::from_str(text).unwrap()
    }

    pub(in crate::view::reshuffle) fn numbers(list: &Value) -> Vec<u64> {
        list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
    }

    // The document at a place.
    fn document(scopes: &Scopes, pass: Pass, place: u64) -> u64 {
        let scope = scopes.range(scopes.of(place));
        scope.start + documents(pass, scopes.of(place), scope.end - scope.start).apply(place - scope.start)
    }

    fn place(scopes: &Scopes, pass: Pass, document: u64) -> u64 {
        let scope = scopes.range(scopes.of(document));
        scope.start
            + documents(pass, scopes.of(document), scope.end - scope.start).invert(document - scope.start)
    }

    #[test]
    fn documents_come_as_they_are_recorded() {
        let recorded = recorded();
        let rows = recorded["docs"].as_array().unwrap();
        assert_eq!(rows.len(), 25);
        for row in rows {
            let number = |name: &str| row[name].as_u64().unwrap();
            let seed = row["seed"].as_str().unwrap().parse().unwrap();
            let pass = Pass { seed, epoch: number("epoch"), pass: number("pass"), view: number("view") };
            let (n, scopes) = (number("n"), Scopes::new(number("n"), row["scope"].as_u64()));
            if let Some(points) = row["points"].as_array() {
                for point in points.iter().map(numbers) {
                    assert_eq!(document(&scopes, pass, point[0]), point[1], "{row}");
                    assert_eq!(place(&scopes, pass, point[1]), point[0], "{row}");
                }
                continue;
            }
            let order: Vec<u64> = (0..n).map(|at| document(&scopes, pass, at)).collect();
            assert_eq!(order[..order.len().min(48)], numbers(&row["order"]), "{row}");
            assert_eq!(order[order.len().saturating_sub(4)..], numbers(&row["last"]), "{row}");
            assert!((0..).zip(&order).all(|(at, document)| place(&scopes, pass, *document) == at), "{row}");
        }
    }
}
