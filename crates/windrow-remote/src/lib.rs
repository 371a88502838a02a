//! Object stores for windrow: S3, Google Cloud Storage, Azure, HTTP and the Hugging Face Hub, read by ranges.

mod held;
