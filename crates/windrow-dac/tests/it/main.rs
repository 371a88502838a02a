//! The codec as its callers see it.

#[cfg(test)]
mod golden;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod seams;
#[cfg(test)]
mod support;
