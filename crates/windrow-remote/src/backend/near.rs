//! Whether a machine of the cloud answers that gives credentials to those that run there.

use std::net::{TcpStream, ToSocketAddrs};
use std::sync::OnceLock;
use std::time::Duration;

/// Where the clouds answer their own machines.
const METADATA: &str = "169.254.169.254:80";
/// A machine of the same host answers at once; elsewhere nobody does.
const PATIENCE: Duration = Duration::from_millis(800);

/// Whether the metadata service of a cloud answers here; asked once.
pub(super) fn has_metadata_service() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    let is_off = |name: &str| std::env::var(name).is_ok_and(|value| value.eq_ignore_ascii_case("true"));
    if is_off("AWS_EC2_METADATA_DISABLED") {
        return false;
    }
    *ANSWER.get_or_init(|| {
        let address = METADATA.to_socket_addrs().ok().and_then(|mut found| found.next());
        address.is_some_and(|address| TcpStream::connect_timeout(&address, PATIENCE).is_ok())
    })
}
