//! One test binary: what is rendered, what of it is learned, where templates are found, what is refused.

#[cfg(test)]
mod found;
mod jinja;
#[cfg(test)]
mod rendered;
