//! Runs the program in a folder of its own and takes down what it says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// stdout, of a run that was done.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// stderr, of a run that failed with this code.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.err
    }

    /// The one JSON object on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let json: Value = serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {self:?}"));
        assert_eq!(json["version"], 1);
        json
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A folder to work in.
pub(crate) struct Desk(TempDir);

impl Desk {
    pub(crate) fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// JSON lines with these texts.
    pub(crate) fn texts(&self, name: &str, texts: &[&str]) {
        let lines = texts.iter().map(|text| serde_json::json!({ "text": text }).to_string() + "\n");
        self.write(name, lines.collect::<String>());
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
        command.current_dir(self.0.path()).args(line.split_whitespace());
        for name in ["RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"] {
            command.env_remove(name);
        }
        // What is printed does not depend on who runs the tests.
        for name in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM"] {
            command.env_remove(name);
        }
        // No run asks a real hub, or uses what this machine has of it.
        for name in
            ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE"]
        {
            command.env_remove(name);
        }
        command.env("WINDROW_CACHE", self.path("cache"));
        command.env("HF_HOME", self.path("hf-home")).env("HF_ENDPOINT", "http://127.0.0.1:9");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs `windrow` with these words.
    pub(crate) fn windrow(&self, line: &str) -> Ran {
        self.command(line).output().unwrap().into()
    }

    /// Runs `windrow` with these words, and these variables in its environment.
    pub(crate) fn windrow_with(&self, line: &str, variables: &[(&str, &str)]) -> Ran {
        self.command(line).envs(variables.iter().copied()).output().unwrap().into()
    }

    /// Runs `windrow` with these words, and a file as its stdin.
    pub(crate) fn windrow_reading(&self, line: &str, stdin: &str) -> Ran {
        let stdin = fs::File::open(self.path(stdin)).unwrap();
        self.command(line).stdin(stdin).output().unwrap().into()
    }

    /// Starts `windrow` with these variables and leaves it running.
    pub(crate) fn start_with(&self, line: &str, variables: &[(&str, &str)]) -> Child {
        self.command(line).envs(variables.iter().copied()).spawn().unwrap()
    }

    /// Starts `windrow` and leaves it running.
    pub(crate) fn start(&self, line: &str) -> Child {
        self.command(line).spawn().unwrap()
    }

    /// Every file below a folder and its bytes; empty when there is no folder.
    pub(crate) fn tree(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.path(name);
        let mut found = BTreeMap::new();
        collect(&root, &root, &mut found);
        found
    }
}

fn collect(root: &Path, folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, found);
        } else {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            found.insert(name, fs::read(&path).unwrap());
        }
    }
}

/// The sample corpus of the demo.
pub(crate) fn corpus() -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/demo/corpus.jsonl")).unwrap()
}

/// A .npy file of these little-endian numbers, `[T]`, whose dtype NumPy calls `descr`.
pub(crate) fn npy(descr: &str, numbers: &[u8]) -> Vec<u8> {
    let size: usize = descr[2..].parse().unwrap();
    let shape = numbers.len() / size;
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape},), }}");
    let header = format!("{header:<117}\n");
    let size = u16::try_from(header.len()).unwrap().to_le_bytes();
    [&b"\x93NUMPY\x01\x00"[..], &size, header.as_bytes(), numbers].concat()
}
