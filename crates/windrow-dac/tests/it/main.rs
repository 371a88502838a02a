//! The codec as its callers see it.

mod golden;
mod hostile;
mod seams;
mod support;
