//! What a plan says of how records were chosen: `select(n=…,<hash>)`, `where(score>=0.8,n=…,<hash>)`.

use super::{Chosen, Condition};

/// The choices that led to some records, as a plan says them.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// All but the last, where that was by number.
    before: Vec<String>,
    /// The last was by number: what is said of it takes a hash of all numbers, and is made when it is asked for.
    by_number: bool,
}

impl Words {
    /// After records were chosen by number, which says more than if some of all were so before.
    #[must_use]
    pub fn selected(self) -> Words {
        Words { by_number: true, ..self }
    }

    /// After a condition left these of the records that there were.
    #[must_use]
    pub fn filtered(mut self, of: Option<&Chosen>, condition: &Condition, left: &Chosen) -> Words {
        self.before.extend(of.filter(|_| self.by_number).map(select));
        self.before.push(format!("where({condition},{})", counted(left)));
        Words { before: self.before, by_number: false }
    }

    /// Nothing was said.
    pub fn are_none(&self) -> bool {
        self.before.is_empty()
    }

    /// The text, of these records.
    pub fn of(&self, chosen: &Chosen) -> String {
        let last = self.by_number.then(|| select(chosen));
        self.before.iter().cloned().chain(last).collect::<Vec<_>>().join(":")
    }
}

fn select(chosen: &Chosen) -> String {
    format!("select({})", counted(chosen))
}

fn counted(chosen: &Chosen) -> String {
    format!("n={},{:016x}", chosen.len(), chosen.hash())
}
