//! Google Cloud Storage: credentials as its own tools find them.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use windrow_core::Result;

use super::Backend;
use super::answered::Noting;
use super::aws::unknown;
use super::cloud::{Client, Cloud, client_options, no_retries, refused};
use super::near::has_metadata_service;
use crate::options::Options;
use crate::url::Location;

fn takes_gzip() -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))])
}

/// The store of a bucket.
pub(super) fn open(location: &Location, options: &Options) -> Result<Arc<dyn Backend>> {
    let bucket = location.root.trim_start_matches("gs://");
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    // The name that Google's emulators and clients use.
    let endpoint = options.get(&["endpoint_url", "endpoint"]).map(str::to_string);
    let endpoint = endpoint
        .or_else(|| set("STORAGE_EMULATOR_HOST"))
        .map(|host| if host.contains("://") { host } else { format!("http://{host}") });
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(bucket)
        .with_retry(no_retries())
        // Whoever does not take gzip gets what is kept so unpacked, without its length and not by ranges.
        .with_client_options(client_options(options, endpoint.as_deref()).with_default_headers(takes_gzip()))
        .with_http_connector(Noting::default());
    if let Some(endpoint) = &endpoint {
        builder = builder.with_base_url(endpoint);
    }
    let mut is_signed =
        ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY"]
            .iter()
            .any(|name| set(name).is_some());
    let home = set("HOME").map(PathBuf::from).unwrap_or_default();
    is_signed |= home.join(".config/gcloud/application_default_credentials.json").is_file();
    for (name, value) in &options.store {
        if matches!(name.as_str(), "endpoint_url" | "endpoint" | "anon" | "unsigned") {
            continue;
        }
        let known: GoogleConfigKey = name.parse().map_err(|_| unknown(name, location))?;
        is_signed = true;
        builder = builder.with_config(known, value);
    }
    // An emulator asks for no signature.
    let is_signed = is_signed || (endpoint.is_none() && !options.is_anonymous() && has_metadata_service());
    if options.is_anonymous() || !is_signed {
        builder = builder.with_skip_signature(true);
    }
    Ok(Arc::new(Cloud::new(Client::new(builder.build().map_err(|e| refused(e, &location.root))?))))
}
