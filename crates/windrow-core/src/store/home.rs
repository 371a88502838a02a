//! `~` and `~user` at the beginning of a path: home folders, as shells know them.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The path that one beginning with `~/` or `~user/` stands for; any other one as it is, and so one whose first name is in the current
/// folder as it is written.
///
/// ```
/// # use windrow_core::store::at_home;
/// # use std::path::Path;
/// assert!(at_home(Path::new("~/corpus")).is_absolute());
/// assert_eq!(at_home(Path::new("corpus/~/a")), Path::new("corpus/~/a"));
/// ```
pub fn at_home(path: &Path) -> Cow<'_, Path> {
    below_home(path, home_of).map_or(Cow::Borrowed(path), Cow::Owned)
}

/// The user whose home folder a path begins with, `""` for whoever runs this.
pub(super) fn user(path: &Path) -> Option<&str> {
    first_name(path).to_str()?.strip_prefix('~')
}

fn first_name(path: &Path) -> &OsStr {
    let bytes = path.as_os_str().as_bytes();
    let end = bytes.iter().position(|byte| *byte == b'/').unwrap_or(bytes.len());
    OsStr::from_bytes(&bytes[..end])
}

fn below_home(path: &Path, home_of: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let (user, first) = (user(path)?, first_name(path));
    if fs::symlink_metadata(first).is_ok() {
        return None;
    }
    let mut whole = home_of(user)?.into_os_string().into_vec();
    // With a slash at its end, where it has one: that asks for a folder.
    whole.extend_from_slice(&path.as_os_str().as_bytes()[first.len()..]);
    Some(OsString::from_vec(whole).into())
}

fn home_of(user: &str) -> Option<PathBuf> {
    let home = match user {
        "" => std::env::home_dir()?,
        user => home_in(&fs::read_to_string("/etc/passwd").ok()?, user)?,
    };
    home.is_absolute().then_some(home)
}

// name:password:uid:gid:about:home:shell
fn home_in(passwd: &str, user: &str) -> Option<PathBuf> {
    let mut lines = passwd.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| {
        (fields.next() == Some(user)).then(|| fields.nth(4).map(PathBuf::from)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_at_the_beginning_is_a_home_folder() {
        let home_of = |user: &str| match user {
            "" => Some(PathBuf::from("/home/me")),
            "ann" => Some(PathBuf::from("/home/ann")),
            _ => None,
        };
        for (path, expected) in [
            ("~", Some("/home/me")),
            ("~/", Some("/home/me/")),
            ("~/a b/*.bin", Some("/home/me/a b/*.bin")),
            ("~ann/a/", Some("/home/ann/a/")),
            ("~nobody/a", None),
            ("./~/a", None),
            ("a/~/b", None),
            ("/~/a", None),
            ("", None),
        ] {
            let found = below_home(Path::new(path), home_of);
            assert_eq!(found.as_ref().map(|found| found.as_os_str()), expected.map(OsStr::new), "{path}");
        }
        let passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000:Ann,,,:/home/ann:/bin/bash\nodd\n";
        assert_eq!(home_in(passwd, "ann"), Some("/home/ann".into()));
        assert_eq!(home_in(passwd, "an"), None);
    }
}
