//! Data sets that have a short name here, and the sets of partitions in which they are used.

/// A data set with a short name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// What is typed.
    pub name: &'static str,
    /// `owner/name` at the hub.
    pub repo: &'static str,
    /// The folder it goes to where none is given.
    pub output: &'static str,
    /// Sets of partitions; the first is used where nothing is chosen.
    pub sets: &'static [(&'static str, &'static [&'static str])],
    /// Files that are never wanted.
    pub exclude: &'static [&'static str],
}

/// All of them.
pub const NAMED: &[Named] = &[Named {
    name: "time-300b",
    repo: "Maple728/Time-300B",
    output: "time300b_selected",
    sets: &[
        ("train", &["energy*", "nature*", "synthetic*", "web*", "sales*", "finance*"]),
        ("debug", &["other/m4_daily", "healthcare/hospital", "sales/dominick"]),
    ],
    exclude: &["**/*.lock"],
}];

impl Named {
    /// The one of this name.
    pub fn find(name: &str) -> Option<&'static Named> {
        NAMED.iter().find(|n| n.name.eq_ignore_ascii_case(name))
    }

    /// The partitions of a set.
    pub fn set(&self, name: &str) -> Option<&'static [&'static str]> {
        self.sets.iter().find(|set| set.0 == name).map(|set| set.1)
    }

    /// The pattern that chooses all files of a partition.
    pub fn pattern(partition: &str) -> String {
        format!("{}/**", partition.trim_end_matches('/'))
    }
}
