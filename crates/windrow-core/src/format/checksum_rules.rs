//! Where block checksums are kept and which files may lack them, as the formats of a table say.

use super::Table;
use crate::error::Result;
use crate::format::Options;
use crate::manifest::{ChecksumRules, MANIFEST_FILE, Manifest};
use crate::store::{Object, key};

/// What the formats of a table say.
pub(super) struct FormatRules {
    table: Table,
    folders: Vec<String>,
    /// What has no checksums is read without.
    all_may_lack: bool,
}

impl FormatRules {
    /// For data that is opened with these options: every file has checksums, but for those that its format leaves out.
    pub(super) fn strict(table: Table, options: &Options) -> FormatRules {
        let usual = table.iter().filter_map(|format| format.info().names.checksums_folder);
        let folders =
            usual.map(|usual| options.index_folder.as_deref().unwrap_or(usual).to_string()).collect();
        FormatRules { table, folders, all_may_lack: false }
    }

    /// What has checksums is compared with them.
    pub(super) fn where_kept(table: Table) -> FormatRules {
        FormatRules { all_may_lack: true, ..FormatRules::strict(table, &Options::default()) }
    }
}

impl ChecksumRules for FormatRules {
    fn beside(&self, name: &str) -> Vec<String> {
        self.table.iter().filter_map(|format| (format.info().names.checksums_beside)(name)).collect()
    }

    fn other_half(&self, name: &str) -> Option<String> {
        super::other_half(self.table, name)
    }

    fn bare(&self, name: &str) -> Option<String> {
        self.table.iter().find_map(|format| (format.info().names.bare_checksums)(name))
    }

    fn folders(&self) -> &[String] {
        &self.folders
    }

    fn may_lack(&self, object: &dyn Object) -> Result<bool> {
        let name = key::name_of(object.name());
        // A manifest has a hash of its own.
        if name.ends_with(MANIFEST_FILE) {
            Manifest::check_hash(object)?;
            return Ok(true);
        }
        let own = self.table.iter().find_map(|format| (format.info().names.may_lack_checksums)(name));
        Ok(self.all_may_lack || own.unwrap_or(false))
    }
}
