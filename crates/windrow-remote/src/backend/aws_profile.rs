//! A profile of `~/.aws/config` and `~/.aws/credentials`, read as boto3 reads it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use windrow_core::{Error, Result};

use crate::options::Options;

/// Names in small letters and their values; what is indented below a name is `name.inner`.
type Values = BTreeMap<String, String>;

/// A profile, and what it says of the endpoints of services.
#[derive(Debug, Default)]
pub(super) struct Profile {
    values: Values,
    /// The section `[services NAME]` that it names; `None` where there is no such section.
    services: Option<Values>,
    /// Somebody named it.
    pub(super) is_chosen: bool,
}

impl Profile {
    /// The one that the options or the environment name, or the default.
    ///
    /// # Errors
    /// `Config` where no profile has the name that was given.
    pub(super) fn of_environment(options: &Options) -> Result<Profile> {
        let chosen = options.get(&["profile"]).map(str::to_string);
        let chosen = chosen.or_else(|| set("AWS_DEFAULT_PROFILE")).or_else(|| set("AWS_PROFILE"));
        let home = set("HOME").map(PathBuf::from).unwrap_or_default();
        let text = |variable: &str, name: &str| {
            let path = set(variable).map_or_else(|| home.join(".aws").join(name), PathBuf::from);
            let path = path.strip_prefix("~").map_or_else(|_| path.clone(), |inside| home.join(inside));
            std::fs::read_to_string(path).unwrap_or_default()
        };
        let config = text("AWS_CONFIG_FILE", "config");
        let credentials = text("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let name = chosen.as_deref().unwrap_or("default");
        let profile = Profile { is_chosen: chosen.is_some(), ..Profile::of(&config, &credentials, name) };
        if profile.is_chosen && profile.values.is_empty() {
            return Err(Error::config(format!("no profile {name:?} in ~/.aws/config or ~/.aws/credentials"))
                .field("AWS_PROFILE")
                .hint("`aws configure list-profiles` lists those that are there"));
        }
        Ok(profile)
    }

    // What the credentials say goes before what the configuration says.
    fn of(config: &str, credentials: &str, name: &str) -> Profile {
        let is_default = |header: &str| name == "default" && header == name;
        let mut values = section(config, |header| is_default(header) || is_named(header, "profile", name));
        values.extend(section(credentials, |header| header == name));
        let services =
            values.get("services").map(|of| section(config, |header| is_named(header, "services", of)));
        Profile { services: services.filter(|found| !found.is_empty()), values, is_chosen: false }
    }

    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.values.get(name).filter(|value| !value.is_empty()).cloned()
    }

    /// Whether endpoints are taken neither from the environment nor from here.
    pub(super) fn ignores_endpoints(&self) -> bool {
        let said = set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
        let said = said.or_else(|| self.get("ignore_configured_endpoint_urls"));
        said.is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The endpoint of S3: that of its services, or the one of all services.
    ///
    /// # Errors
    /// `Config` where the section of services that it names is not there.
    pub(super) fn endpoint_url(&self) -> Result<Option<String>> {
        let of_s3 = match (self.values.get("services"), &self.services) {
            (None, _) => None,
            (Some(_), Some(services)) => {
                services.get("s3.endpoint_url").filter(|url| !url.is_empty()).cloned()
            }
            (Some(name), None) => {
                return Err(Error::config(format!(
                    "the profile names services {name:?}, which are not there"
                ))
                .field("services")
                .hint(format!(
                    "~/.aws/config needs a section [services {name}], or the profile no such line"
                )));
            }
        };
        Ok(of_s3.or_else(|| self.get("endpoint_url")))
    }

    /// By what else it gets credentials.
    pub(super) fn other_way(&self) -> Option<&str> {
        ["credential_process", "sso_session", "sso_start_url", "role_arn"]
            .into_iter()
            .find(|name| self.values.contains_key(*name))
    }
}

/// What the environment says, where it says something.
pub(super) fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

// Whether a header is `kind name`, where the name may be in quotes.
fn is_named(header: &str, kind: &str, name: &str) -> bool {
    let rest = header.strip_prefix(kind).filter(|rest| rest.starts_with([' ', '\t', '"', '\'']));
    rest.is_some_and(|rest| rest.trim().trim_matches(['"', '\'']) == name)
}

// The sections of an INI file that are meant, as one: `name = value` or `name: value`, whole lines of comments after `#` and `;`. What is
// indented further than a name without a value is within it.
fn section(text: &str, is_meant: impl Fn(&str) -> bool) -> Values {
    let mut values = Values::new();
    let mut is_in = false;
    // How far the last name was indented, and what is put before those within it; `None` where it has a value.
    let mut within: Option<(usize, Option<String>)> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        if let Some((_, outer)) = within.as_ref().filter(|(of_name, _)| indent > *of_name) {
            if let (true, Some(outer), Some((name, value))) = (is_in, outer, trimmed.split_once('=')) {
                values.insert(format!("{outer}.{}", name.trim()), value.trim().to_string());
            }
        } else if let Some(header) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            (is_in, within) = (is_meant(header.trim()), None);
        } else if let Some((name, value)) = trimmed.split_once(['=', ':']) {
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
            within = Some((indent, value.is_empty().then(|| name.clone())));
            if is_in {
                values.insert(name, value.to_string());
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
[default]
region = eu-west-1
# a comment
s3 =
  endpoint = nested
[profile work]
region: us-east-2
endpoint_url = http://of-all
services = mine

[profile \"two words\"]
  services = none
[services mine]
dynamodb =
    endpoint_url = http://of-dynamodb
s3 =
    # of S3 alone
    endpoint_url = http://of-s3
    signature_version = s3v4
[services of-others]
s3 =
  endpoint_url = http://of-others
";

    #[test]
    fn a_profile_is_read_as_boto3_reads_it() {
        let of =
            |name: &str| Profile::of(CONFIG, "[work]\nAWS_ACCESS_KEY_ID=a=b\n[other]\nregion = x\n", name);
        assert_eq!(of("default").get("region").as_deref(), Some("eu-west-1"));
        assert_eq!(of("default").get("endpoint"), None);
        assert_eq!(of("default").endpoint_url().unwrap(), None);
        assert_eq!(of("work").get("region").as_deref(), Some("us-east-2"));
        assert_eq!(of("work").get("aws_access_key_id").as_deref(), Some("a=b"));
        assert_eq!(of("work").endpoint_url().unwrap().as_deref(), Some("http://of-s3"));
        assert_eq!(of("other").get("region").as_deref(), Some("x"));
        assert!(of("nobody").values.is_empty());
        let e = of("two words").endpoint_url().unwrap_err();
        assert!(e.hint_text().unwrap().contains("[services none]"), "{e:#}");
    }
}
