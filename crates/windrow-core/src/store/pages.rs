//! How much memory there is for pages of files, and whether a file is read at random places.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of memory that may hold pages of files: what is free or can be freed, and no more than the control group of this
/// process may use. `None` where the system does not say.
pub fn memory_for_pages() -> Option<u64> {
    let free = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups);
    let limits =
        limits.iter().filter_map(|file| fs::read_to_string(Path::new(file)).ok()?.trim().parse().ok());
    free.into_iter().chain(limits).min()
}

// MemAvailable of /proc/meminfo, in kB there.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

// Where the limits of the control groups of /proc/self/cgroup are: of version 2 `0::/path`, of version 1
// `4:memory:/path`. In a container the path may be that of the host, and the limit is at the root.
fn limit_files(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (roots, name): (&[&str], _) = match controllers {
            "" => (&["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], "memory.max"),
            all if all.split(',').any(|one| one == "memory") => {
                (&["/sys/fs/cgroup/memory"], "memory.limit_in_bytes")
            }
            _ => continue,
        };
        for root in roots {
            // A group is bound by those around it, too.
            let mut path = path.trim_end_matches('/');
            loop {
                files.push(format!("{root}{path}/{name}"));
                let Some((outer, _)) = path.rsplit_once('/') else { break };
                path = outer;
            }
        }
    }
    files
}

/// Tells reads at random places from one after the other, by what is asked for ahead of time.
#[derive(Debug, Default)]
pub(super) struct Places {
    end: AtomicU64,
    is_random: AtomicBool,
}

impl Places {
    /// Whether these bytes are the first that do not follow the ones before: from here on the system shall not read more
    /// than it is asked for. A heuristic, so threads need not agree.
    pub(super) fn become_random(&self, start: u64, size: u64) -> bool {
        let before = self.end.swap(start.saturating_add(size), Ordering::Relaxed);
        // The first bytes of all follow nothing.
        let follows = before == 0 || start.abs_diff(before) <= NEAR;
        !follows && !self.is_random.swap(true, Ordering::Relaxed)
    }
}

/// Bytes between two reads that still count as one after the other: those of several threads, and of padding.
const NEAR: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_understood() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
        assert_eq!(
            limit_files("4:memory:/a/b\n1:name=systemd:/x\n0::/c\n"),
            [
                "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/c/memory.max",
                "/sys/fs/cgroup/memory.max",
                "/sys/fs/cgroup/unified/c/memory.max",
                "/sys/fs/cgroup/unified/memory.max",
            ]
        );
    }

    #[test]
    fn reads_are_random_from_the_first_that_does_not_follow() {
        let places = Places::default();
        let far = [(0, 10), (10, 10), (20, 5), (NEAR * 8, 10), (0, 10), (NEAR * 4, 1)];
        let found: Vec<bool> = far.iter().map(|(start, size)| places.become_random(*start, *size)).collect();
        assert_eq!(found, [false, false, false, true, false, false]);
    }
}
