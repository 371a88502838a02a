//! One test binary for the core.

#[cfg(test)]
#[allow(dead_code)] // Shared with the tests of the formats and of prepare.
mod alone;
#[cfg(test)]
mod balance;
#[cfg(test)]
mod blocks;
#[cfg(test)]
mod budget;
#[cfg(test)]
mod cache;
#[cfg(test)]
mod collate;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod english;
#[cfg(test)]
#[allow(dead_code)] // Shared with the tests of the formats and of prepare.
mod folder;
#[cfg(test)]
mod loader;
mod mixtures;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod ranks;
#[cfg(test)]
mod reshuffle;
#[cfg(test)]
mod sampler;
#[cfg(test)]
mod skips;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod torn;
#[cfg(test)]
#[allow(dead_code)] // Shared with the tests of the formats and of prepare.
mod toy;
#[cfg(test)]
mod view;
