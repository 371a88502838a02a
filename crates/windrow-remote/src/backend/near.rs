//! Whether a machine of the cloud answers that gives credentials to those that run there.

use std::io::{Read, Write};
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
    *ANSWER.get_or_init(|| answers().is_ok_and(|is_one| is_one))
}

// Whether it answers as such a service does, to a question that needs no right. A network may answer for any address.
fn answers() -> std::io::Result<bool> {
    let address = METADATA.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::NotFound)?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET / HTTP/1.0\r\nHost: 169.254.169.254\r\nMetadata-Flavor: Google\r\n\r\n")?;
    let mut head = Vec::new();
    stream.take(64).read_to_end(&mut head)?;
    // The newer service of AWS asks for a token first.
    Ok([&b" 200 "[..], b" 401 "].iter().any(|status| head.get(8..13) == Some(status)))
}
