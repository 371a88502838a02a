//! Azure Blob Storage: an account by its connection string, key, token or managed identity.

use std::sync::Arc;

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use windrow_core::Result;

use super::Backend;
use super::answered::Noting;
use super::aws::unknown;
use super::cloud::{Client, Cloud, client_options, missing, no_retries, refused};
use crate::options::Options;
use crate::url::Location;

/// The store of a container.
pub(super) fn open(location: &Location, options: &Options) -> Result<Arc<dyn Backend>> {
    let container = location.root.split_once("://").map_or("", |(_, container)| container);
    let given = options.get(&["connection_string"]).map(str::to_string);
    let text = given.or_else(|| std::env::var("AZURE_STORAGE_CONNECTION_STRING").ok()).unwrap_or_default();
    let said = connection(&text);
    let endpoint = options.get(&["endpoint_url", "endpoint"]).map(str::to_string);
    let endpoint = endpoint.or_else(|| value_of(&said, "BlobEndpoint"));
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_container_name(container)
        .with_retry(no_retries())
        .with_client_options(client_options(options, endpoint.as_deref()))
        .with_http_connector(Noting::default());
    if let Some(endpoint) = &endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    for (name, known) in [
        ("AccountName", AzureConfigKey::AccountName),
        ("AccountKey", AzureConfigKey::AccessKey),
        ("SharedAccessSignature", AzureConfigKey::SasKey),
    ] {
        if let Some(value) = value_of(&said, name) {
            builder = builder.with_config(known, value);
        }
    }
    for (name, value) in &options.store {
        if matches!(name.as_str(), "endpoint_url" | "endpoint" | "connection_string" | "anon" | "unsigned") {
            continue;
        }
        let known: AzureConfigKey = name.parse().map_err(|_| unknown(name, location))?;
        builder = builder.with_config(known, value);
    }
    if builder.get_config_value(&AzureConfigKey::AccountName).is_none() {
        return Err(missing(
            "no storage account is named",
            &location.root,
            "set AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_ACCOUNT_NAME, or give @store_options={\"account_name\": …}@",
        ));
    }
    if options.is_anonymous() {
        builder = builder.with_skip_signature(true);
    }
    Ok(Arc::new(Cloud::new(Client::new(builder.build().map_err(|e| refused(e, &location.root))?))))
}

// `Name=value;Name=value`, where a value may hold `=`.
fn connection(text: &str) -> Vec<(&str, &str)> {
    text.split(';').filter_map(|part| part.trim().split_once('=')).collect()
}

fn value_of(said: &[(&str, &str)], name: &str) -> Option<String> {
    said.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_is_taken_apart() {
        let said = connection("AccountName=a;AccountKey=x==;BlobEndpoint=http://h/a;");
        assert_eq!(value_of(&said, "accountkey").as_deref(), Some("x=="));
        assert_eq!(value_of(&said, "BlobEndpoint").as_deref(), Some("http://h/a"));
        assert_eq!(value_of(&said, "SharedAccessSignature"), None);
    }
}
