//! One test binary for the core.

#[cfg(test)]
mod alone;
#[cfg(test)]
mod cache;
#[cfg(test)]
mod codes;
#[cfg(test)]
mod collate;
#[cfg(test)]
mod converted;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod format;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod loader;
#[cfg(test)]
mod opened;
#[cfg(test)]
mod prepare;
#[cfg(test)]
mod regress;
#[cfg(test)]
mod sampler;
#[cfg(test)]
mod saved;
#[cfg(test)]
mod scale;
#[cfg(test)]
mod series;
#[cfg(test)]
mod shards;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod torn;
#[cfg(test)]
mod toy;
#[cfg(test)]
mod view;
#[cfg(test)]
mod writing;
