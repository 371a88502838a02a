//! One test binary for the formats.

#[cfg(test)]
#[allow(dead_code)] // Shared: each test binary uses a part of it.
#[path = "../../../windrow-core/tests/it/alone.rs"]
mod alone;
#[cfg(test)]
mod array_record;
#[cfg(test)]
mod codes;
#[cfg(test)]
mod converted;
#[cfg(test)]
#[allow(dead_code)] // Shared with the tests of prepare.
mod disk;
#[cfg(test)]
mod documents;
#[cfg(test)]
#[allow(dead_code)] // Shared: each test binary uses a part of it.
#[path = "../../../windrow-core/tests/it/folder.rs"]
mod folder;
#[cfg(test)]
mod format;
#[cfg(test)]
mod hostile;
#[cfg(test)]
#[allow(dead_code)] // Shared with the tests of the facade.
mod in_parts;
#[cfg(test)]
mod listed;
#[cfg(test)]
mod opened;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod period;
#[cfg(test)]
mod regress;
#[cfg(test)]
mod saved;
#[cfg(test)]
mod scale;
#[cfg(test)]
mod series;
#[cfg(test)]
mod series_text;
#[cfg(test)]
mod shards;
#[cfg(test)]
#[allow(dead_code)] // Shared: each test binary uses a part of it.
#[path = "../../../windrow-core/tests/it/toy.rs"]
mod toy;
#[cfg(test)]
#[allow(dead_code)] // Shared with the tests of prepare.
mod writing;
