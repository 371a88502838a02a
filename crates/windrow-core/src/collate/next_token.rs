//! stub
pub struct NextToken;
