//! What frontends show of data: the numbers of a span, the text of tokens, and counts, sizes and texts as people read them.

pub mod batch;
pub mod numbers;
pub mod series;
pub mod text;
pub mod tokens;
