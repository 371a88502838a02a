//! A server of S3 on loopback, `reliability/s3_store.py`: the folders below a root are its buckets.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};
use windrow::format::Options;

const KEY: &str = "AKEY";
const SECRET: &str = "ASECRET";

/// The program. It serves until its input ends: when this is dropped, or when the test program ends, however it does.
struct Server {
    program: Child,
    said: BufReader<ChildStdout>,
}

impl Server {
    fn start(root: &Path) -> Server {
        let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reliability/s3_store.py");
        let mut command = Command::new(&python);
        // It needs no packages, and starts faster without looking for them.
        command.arg("-S").arg(script).arg(root).args([KEY, SECRET]);
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut program = started.unwrap_or_else(|e| panic!("{}: {e}", python.display()));
        let said = BufReader::new(program.stdout.take().unwrap());
        Server { program, said }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.said.read_line(&mut line).unwrap() > 0, "the server of S3 has ended");
        line.trim_end().to_string()
    }

    fn ask(&mut self, what: &Value) -> String {
        writeln!(self.program.stdin.as_mut().unwrap(), "{what}").unwrap();
        self.line()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Closes its input first, which ends it.
        let _ = self.program.wait();
    }
}

pub(crate) struct S3 {
    endpoint: String,
    server: Mutex<Server>,
}

impl S3 {
    pub(crate) fn serve(root: &Path) -> S3 {
        let mut server = Server::start(root);
        S3 { endpoint: server.line(), server: Mutex::new(server) }
    }

    /// From now on, requests are denied whose `METHOD /path` matches a regular expression of Python's, except the first `after`.
    pub(crate) fn deny(&self, pattern: &str, after: u64) {
        self.server.lock().unwrap().ask(&json!({"pattern": pattern, "after": after}));
    }

    /// From now on, objects may be read but not listed, as with the rights to `GetObject` alone: what is not there is denied.
    pub(crate) fn list_nothing(&self) {
        self.server.lock().unwrap().ask(&json!({"lists": false}));
    }

    /// From now on, none are denied. Returns how many were.
    pub(crate) fn allow(&self) -> u64 {
        self.server.lock().unwrap().ask(&json!({})).parse().unwrap()
    }

    /// What a client needs to be let in.
    pub(crate) fn store_options(&self) -> BTreeMap<String, String> {
        [
            ("endpoint_url", self.endpoint.as_str()),
            ("access_key_id", KEY),
            ("secret_access_key", SECRET),
            ("region", "us-east-1"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .into()
    }

    pub(crate) fn options(&self) -> Options {
        Options { store_options: self.store_options(), cache_limit: Some(0), ..Options::default() }
    }
}
