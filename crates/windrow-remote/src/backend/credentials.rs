//! Credentials that neither the environment nor a file says: those of a function of the program that uses this, or of a process.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde::Deserialize;
use windrow_core::{Error, Result};

/// Gives the options of a store, such as keys, by the text that a program gave as the option `credentials`.
pub type Source = fn(&str) -> Result<BTreeMap<String, String>>;

static SOURCE: OnceLock<Source> = OnceLock::new();

/// Says who gives the options of a store that has the option `credentials`. They are asked for when the store is opened, and again
/// when it says that they have expired. The first one who says so counts.
pub fn credentials_by(source: Source) {
    SOURCE.get_or_init(|| source);
}

/// What a function of the program gives.
///
/// # Errors
/// `Config` where no program gives such; what the function says.
pub(super) fn given(by: &str) -> Result<BTreeMap<String, String>> {
    let nobody = || {
        Error::config(format!("nothing here gives the credentials {by:?}")).field("store_options").hint(
            "a function is given to them in Python; elsewhere a profile of AWS may name a credential_process",
        )
    };
    SOURCE.get().ok_or_else(nobody)?(by)
}

/// Keys, as a process says them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Keys {
    version: u64,
    pub(super) access_key_id: String,
    pub(super) secret_access_key: String,
    pub(super) session_token: Option<String>,
}

/// What the `credential_process` of a profile prints.
///
/// # Errors
/// `Config` where it fails, or prints something else.
pub(super) fn of_process(command: &str) -> Result<Keys> {
    let failed = |what: String| {
        Error::config(format!("the credential_process of the profile {what}"))
            .field("credential_process")
            .hint(
                "it prints {\"Version\": 1, \"AccessKeyId\": …, \"SecretAccessKey\": …, \"SessionToken\": …}",
            )
    };
    let ran = Command::new("/bin/sh").args(["-c", command]).stdin(Stdio::null()).output();
    let ran = ran.map_err(|e| failed("cannot be run".to_string()).caused_by(e))?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        return Err(failed(format!("ended with {}: {}", ran.status, said.trim())));
    }
    // What it printed is secret, and so is what is wrong with it.
    match serde_json::from_slice::<Keys>(&ran.stdout) {
        Ok(keys) if keys.version == 1 => Ok(keys),
        _ => Err(failed("printed something else than keys".to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::of_process;

    #[test]
    fn a_process_prints_keys() {
        let keys =
            of_process(r#"echo '{"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "S"}'"#).unwrap();
        assert_eq!((keys.access_key_id.as_str(), keys.session_token), ("A", None));
        for (command, said) in [
            ("echo no >&2; exit 3", "no"),
            ("echo '{\"Version\": 1}'", "printed"),
            ("nothing-of-this-name", "ended"),
        ] {
            let e = of_process(command).err().unwrap();
            assert!(e.message().contains(said), "{e}");
        }
    }
}
