//! Amazon S3 and what speaks its protocol: credentials and settings as the AWS tools find them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use windrow_core::{Error, Result};

use super::Backend;
use super::cloud::{Cloud, Noting, client_options, no_retries, refused};
use super::near::has_metadata_service;
use crate::options::Options;
use crate::url::Location;

/// The store of a bucket.
pub(super) fn open(location: &Location, options: &Options) -> Result<Arc<dyn Backend>> {
    let bucket = location.root.trim_start_matches("s3://");
    let profile = Profile::of_environment(options)?;
    let endpoint = endpoint(options, &profile);
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_retry(no_retries())
        // Not all that speak the protocol remove many objects at once.
        .with_disable_bulk_delete(true)
        .with_client_options(client_options(options, endpoint.as_deref()))
        .with_http_connector(Noting::default());
    if let Some(endpoint) = &endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let region = options.get(&["region", "region_name", "aws_region"]).map(str::to_string);
    let region = region.or_else(|| set("AWS_REGION")).or_else(|| set("AWS_DEFAULT_REGION"));
    if let Some(region) = region.or_else(|| profile.get("region")) {
        builder = builder.with_region(region);
    }
    let mut is_signed =
        ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]
            .iter()
            .chain(&["AWS_CONTAINER_CREDENTIALS_FULL_URI"])
            .any(|name| set(name).is_some());
    if let (Some(id), Some(secret), false) = (
        profile.get("aws_access_key_id"),
        profile.get("aws_secret_access_key"),
        is_signed && !profile.is_chosen,
    ) {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        builder = match profile.get("aws_session_token") {
            Some(token) => builder.with_token(token),
            None => builder,
        };
        is_signed = true;
    }
    for (name, value) in &options.store {
        let name = match name.as_str() {
            "endpoint_url" | "anon" | "unsigned" | "region_name" => continue,
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
                .hint("run `eval \"$(aws configure export-credentials --format env)\"` first"));
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
    Ok(Arc::new(Cloud::new(builder.build().map_err(|e| refused(e, &location.root))?)))
}

fn endpoint(options: &Options, profile: &Profile) -> Option<String> {
    let given =
        options.get(&["endpoint_url", "endpoint", "aws_endpoint", "aws_endpoint_url"]).map(str::to_string);
    given
        .or_else(|| set("AWS_ENDPOINT_URL_S3"))
        .or_else(|| set("AWS_ENDPOINT_URL"))
        .or_else(|| set("AWS_ENDPOINT"))
        .or_else(|| profile.get("endpoint_url"))
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

pub(super) fn unknown(name: &str, location: &Location) -> Error {
    Error::config(format!("no option {name:?} of this store"))
        .at(location.root.as_str())
        .field("store_options")
        .hint("its options are those of the store's own tools: endpoint_url, region, anon, access_key_id and so on")
}

/// A profile of `~/.aws/credentials` and `~/.aws/config`.
#[derive(Debug, Default)]
struct Profile {
    values: BTreeMap<String, String>,
    /// Somebody named it.
    is_chosen: bool,
}

impl Profile {
    fn of_environment(options: &Options) -> Result<Profile> {
        let chosen = options.get(&["profile"]).map(str::to_string).or_else(|| set("AWS_PROFILE"));
        let name = chosen.clone().unwrap_or_else(|| "default".to_string());
        let home = set("HOME").map(PathBuf::from).unwrap_or_default();
        let file = |variable: &str, name: &str| {
            set(variable).map_or_else(|| home.join(".aws").join(name), PathBuf::from)
        };
        let mut values = BTreeMap::new();
        for (path, section) in [
            (
                file("AWS_CONFIG_FILE", "config"),
                if name == "default" { name.clone() } else { format!("profile {name}") },
            ),
            (file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), name.clone()),
        ] {
            if let Ok(text) = std::fs::read_to_string(&path) {
                values.extend(section_of(&text, &section));
            }
        }
        if let (Some(name), true) = (&chosen, values.is_empty()) {
            return Err(Error::config(format!("no profile {name:?} in ~/.aws/config or ~/.aws/credentials"))
                .field("AWS_PROFILE")
                .hint("`aws configure list-profiles` lists those that are there"));
        }
        Ok(Profile { values, is_chosen: chosen.is_some() })
    }

    fn get(&self, name: &str) -> Option<String> {
        self.values.get(name).cloned()
    }

    fn other_way(&self) -> Option<&str> {
        ["credential_process", "sso_session", "sso_start_url", "role_arn"]
            .into_iter()
            .find(|name| self.values.contains_key(*name))
    }
}

// A section of an INI file as the AWS tools write it: `name = value`, comments after `#` and `;`.
fn section_of(text: &str, section: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut is_in = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_in = name.trim() == section;
        } else if is_in
            && !line.starts_with([' ', '\t', '#', ';'])
            && let Some((name, value)) = trimmed.split_once('=')
        {
            values.insert(name.trim().to_ascii_lowercase(), value.trim().to_string());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_as_the_aws_tools_read_it() {
        let text = "[default]\nregion = eu-west-1\n# no\ns3 =\n  endpoint = nested\n[profile work]\nAWS_ACCESS_KEY_ID=a=b\n";
        assert_eq!(section_of(text, "default")["region"], "eu-west-1");
        assert!(!section_of(text, "default").contains_key("endpoint"));
        assert_eq!(section_of(text, "profile work")["aws_access_key_id"], "a=b");
        assert!(section_of(text, "other").is_empty());
    }
}
