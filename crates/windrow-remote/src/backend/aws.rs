//! Amazon S3 and what speaks its protocol: credentials and settings as the AWS tools find them.

use std::sync::Arc;

use object_store::ClientOptions;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use windrow_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::Backend;
use super::answered::{Again, Noting};
use super::aws_profile::{Profile, set};
use super::cloud::{Client, Cloud, client_options, no_retries, refused};
use super::credentials::{self, Keys, of_process};
use super::near::has_metadata_service;
use crate::options::Options;
use crate::url::Location;

/// The store of a bucket.
pub(super) fn open(location: &Location, options: &Options) -> Result<Arc<dyn Backend>> {
    let (location, options) = (location.clone(), options.clone());
    Ok(Arc::new(Cloud::renewed_by(Arc::new(move |region| client(&location, &options, region)))?))
}

// With the credentials that the settings have now, and the region where one is given.
fn client(location: &Location, options: &Options, in_region: Option<&str>) -> Result<Client> {
    let Some(by) = options.get(&["credentials"]) else { return client_of(location, options, in_region) };
    let mut with_keys = options.clone();
    with_keys.store.extend(credentials::given(by).map_err(|e| e.or_at(&location.root))?);
    with_keys.store.remove("credentials");
    client_of(location, &with_keys, in_region)
}

fn client_of(location: &Location, options: &Options, in_region: Option<&str>) -> Result<Client> {
    let bucket = location.root.trim_start_matches("s3://");
    let profile = Profile::of_environment(options)?;
    let endpoint = endpoint(options, &profile)?;
    let asks_for_checksums = asks_for_checksums(location, options, &profile)?;
    let (connector, client_options) = (Noting::default(), client_options(options, endpoint.as_deref()));
    let mut builder = of_environment()
        .with_bucket_name(bucket)
        .with_retry(no_retries())
        // Not all that speak the protocol remove many objects at once.
        .with_disable_bulk_delete(true)
        .with_client_options(client_options.clone())
        .with_http_connector(connector.clone());
    if let Some(endpoint) = &endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let region = options.get(&["region", "region_name", "aws_region"]).map(str::to_string);
    let region = region.or_else(|| set("AWS_REGION")).or_else(|| set("AWS_DEFAULT_REGION"));
    let region = region.or_else(|| profile.get("region"));
    let mut is_signed =
        ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]
            .iter()
            .chain(&["AWS_CONTAINER_CREDENTIALS_FULL_URI"])
            .any(|name| set(name).is_some());
    if (!is_signed || profile.is_chosen)
        && let Some((id, secret, token)) = keys_of(&profile, options).map_err(|e| e.or_at(&location.root))?
    {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        builder = match token {
            Some(token) => builder.with_token(token),
            None => builder,
        };
        is_signed = true;
    }
    for (name, value) in &options.store {
        let name = match name.as_str() {
            "endpoint_url" | "anon" | "unsigned" | "region_name" | "region" | "aws_region"
            | CREDENTIAL_PROCESS | CHECKSUMS => {
                continue;
            }
            "key" => "access_key_id",
            "secret" => "secret_access_key",
            other => other,
        };
        let known: AmazonS3ConfigKey = name.parse().map_err(|_| unknown(name, location))?;
        is_signed |= known == AmazonS3ConfigKey::AccessKeyId;
        builder = builder.with_config(known, value);
    }
    if !is_signed && !options.is_anonymous() {
        if let Some(how) = profile.other_way() {
            return Err(Error::unsupported(format!("the profile gets its credentials by {how}"))
                .at(location.root.as_str())
                .hint(match how {
                    CREDENTIAL_PROCESS => {
                        "it is run where @store_options={\"credential_process\": true}@ allows it, and again when the keys expire"
                    }
                    _ => "run `eval \"$(aws configure export-credentials --format env)\"` first",
                }));
        }
        // What speaks the protocol elsewhere has no such service.
        is_signed = endpoint.is_none() && has_metadata_service();
        if !is_signed {
            log::debug!("no credentials for {}: requests are unsigned", location.root);
        }
    }
    if options.is_anonymous() || !is_signed {
        builder = builder.with_skip_signature(true);
    }
    let region = in_region.map(str::to_string).or(region);
    if let Some(region) = &region {
        builder = builder.with_region(region);
    }
    let credentials = credentials_of(&builder);
    let store = builder.clone().build().map_err(|e| refused(e, &location.root))?;
    let checked = asks_for_checksums.then(|| {
        let builder = builder.with_http_connector(Again(connector));
        checked(builder, client_options, &store).map_err(|e| refused(e, &location.root))
    });
    let checked = checked.transpose()?;
    Ok(Client::new(store).checked_by(checked).with(credentials, region))
}

// Asks for the checksum of an object with it. The header must be signed, and other questions do not know it.
fn checked(
    builder: AmazonS3Builder,
    options: ClientOptions,
    with: &AmazonS3,
) -> object_store::Result<AmazonS3> {
    let mode = HeaderName::from_static("x-amz-checksum-mode");
    let header = HeaderMap::from_iter([(mode, HeaderValue::from_static("ENABLED"))]);
    builder
        .with_client_options(options.with_default_headers(header))
        .with_credentials(with.credentials().clone())
        .build()
}

/// What the tools of AWS call the setting that says whether checksums are asked for.
const CHECKSUMS: &str = "response_checksum_validation";

fn asks_for_checksums(location: &Location, options: &Options, profile: &Profile) -> Result<bool> {
    let given = options.get(&[CHECKSUMS]).map(str::to_string);
    let given = given.or_else(|| set("AWS_RESPONSE_CHECKSUM_VALIDATION")).or_else(|| profile.get(CHECKSUMS));
    match given.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("when_supported") => Ok(true),
        Some("when_required") => Ok(false),
        Some(other) => {
            Err(Error::config(format!("expected \"when_supported\" or \"when_required\", found {other:?}"))
                .at(location.root.as_str())
                .field(CHECKSUMS))
        }
    }
}

/// A profile's, and the option that allows to run it: a file that says which program to run is believed by those who say so.
const CREDENTIAL_PROCESS: &str = "credential_process";

// The ID, the secret and the token of a profile, as a file has them now; or as its process prints them, where that may be run.
fn keys_of(profile: &Profile, options: &Options) -> Result<Option<(String, String, Option<String>)>> {
    if let (Some(id), Some(secret)) = (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key"))
    {
        return Ok(Some((id, secret, profile.get("aws_session_token"))));
    }
    let is_allowed = options.get(&[CREDENTIAL_PROCESS]) == Some("true");
    match profile.get(CREDENTIAL_PROCESS).filter(|_| is_allowed && !options.is_anonymous()) {
        Some(command) => {
            let Keys { access_key_id, secret_access_key, session_token, .. } = of_process(&command)?;
            Ok(Some((access_key_id, secret_access_key, session_token)))
        }
        None => Ok(None),
    }
}

// What tells keys from others. Those that a service gives are others each time they are asked for.
fn credentials_of(builder: &AmazonS3Builder) -> u64 {
    use AmazonS3ConfigKey::{AccessKeyId, SecretAccessKey, Token};
    let said = [AccessKeyId, SecretAccessKey, Token].map(|key| builder.get_config_value(&key));
    match &said[0] {
        Some(_) => xxh3_64(format!("{said:?}").as_bytes()),
        None => fastrand::u64(..),
    }
}

// What the environment says but for the endpoint, which has an order of its own.
fn of_environment() -> AmazonS3Builder {
    let said = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.to_str().filter(|name| name.starts_with("AWS_"))?.to_ascii_lowercase();
        let known = name.parse().ok()?;
        let is_endpoint = matches!(known, AmazonS3ConfigKey::Endpoint | AmazonS3ConfigKey::S3Endpoint);
        (!is_endpoint).then_some((known, value.into_string().ok()?))
    });
    said.fold(AmazonS3Builder::new(), |builder, (known, value)| builder.with_config(known, value))
}

// What boto3 asks, in its order; the last variable is another tool's.
fn endpoint(options: &Options, profile: &Profile) -> Result<Option<String>> {
    let given = options.get(&["endpoint_url", "endpoint", "aws_endpoint", "aws_endpoint_url"]);
    if given.is_some() || profile.ignores_endpoints() {
        return Ok(given.map(str::to_string));
    }
    match set("AWS_ENDPOINT_URL_S3").or_else(|| set("AWS_ENDPOINT_URL")) {
        Some(url) => Ok(Some(url)),
        None => Ok(profile.endpoint_url()?.or_else(|| set("AWS_ENDPOINT"))),
    }
}

pub(super) fn unknown(name: &str, location: &Location) -> Error {
    Error::config(format!("no option {name:?} of this store"))
        .at(location.root.as_str())
        .field("store_options")
        .hint("its options are those of the store's own tools: endpoint_url, region, anon, access_key_id and so on")
}
