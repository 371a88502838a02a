//! The ids that an encoder gives.

/// Token ids: 32 bits each as long as all of them fit, and 64 from the first one on that does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    // One of the two is empty.
    small: Vec<u32>,
    large: Vec<i64>,
}

/// Ids as they are kept.
pub(super) enum Kept<'a> {
    Small(&'a [u32]),
    Large(&'a [i64]),
}

impl Ids {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.small.len() + self.large.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.small.clear();
        self.large.clear();
    }

    /// Adds one.
    pub fn push(&mut self, id: i64) {
        match u32::try_from(id) {
            Ok(id) if self.large.is_empty() => self.small.push(id),
            _ => {
                self.large.extend(self.small.drain(..).map(i64::from));
                self.large.push(id);
            }
        }
    }

    /// Adds what `add` appends to the vector that it is given, which may hold others before.
    pub fn append<T>(&mut self, add: impl FnOnce(&mut Vec<u32>) -> T) -> T {
        let done = add(&mut self.small);
        if !self.large.is_empty() {
            self.large.extend(self.small.drain(..).map(i64::from));
        }
        done
    }

    pub(super) fn kept(&self) -> Kept<'_> {
        match self.large.is_empty() {
            true => Kept::Small(&self.small),
            false => Kept::Large(&self.large),
        }
    }
}

impl Extend<i64> for Ids {
    fn extend<I: IntoIterator<Item = i64>>(&mut self, ids: I) {
        ids.into_iter().for_each(|id| self.push(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_in_their_order() {
        let most = i64::from(u32::MAX);
        for cut in [0, 1, 2, 3, 4] {
            let mut ids = Ids::default();
            let given = [0, most, most + 1, -1, 5];
            ids.extend(given[..cut].iter().copied());
            assert!(ids.append(|small| {
                small.push(7);
                true
            }));
            ids.extend(given[cut..].iter().copied());
            let mut want = given.to_vec();
            want.insert(cut, 7);
            assert!(matches!(ids.kept(), Kept::Large(found) if found == want));
            assert_eq!(ids.len(), 6);
            ids.clear();
            assert!(ids.is_empty());
        }
        let mut ids = Ids::default();
        ids.extend([1, most]);
        assert!(matches!(ids.kept(), Kept::Small([1, u32::MAX])));
    }
}
