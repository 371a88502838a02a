//! One test binary for the pages: what they say of records, of audio codes and of sound files, and that they stand alone.

#[cfg(test)]
mod codes;
#[cfg(test)]
mod desk;
#[cfg(test)]
mod html;
#[cfg(test)]
mod records;
#[cfg(test)]
mod sound;
