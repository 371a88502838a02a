//! A folder with tokens of the sample corpus, a configuration, and the program run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use windrow::TextEncoder;
use windrow::prepare::{self, Encode, TokenizeOptions};
use windrow::text::Tokenizer;

/// Steps of the run that others are compared with.
pub(crate) const STEPS: u64 = 40;

/// One logged step, as far as it must be the same on every run: the numbers' own text.
pub(crate) type Step = (u64, String, String, u64);

pub(crate) struct Desk(TempDir);

impl Desk {
    /// The shipped configuration, made small: a step takes milliseconds also where this program is not optimised.
    pub(crate) fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/demo/corpus.jsonl");
        let encoder = TextEncoder::new(Tokenizer::load("bytes").unwrap(), "text", "auto").unwrap();
        let options = TokenizeOptions {
            eos: Encode::eos(&encoder),
            fsync: false,
            ..TokenizeOptions::new(windrow::writer("tokens", &Default::default()).unwrap())
        };
        prepare::tokenize(&[corpus], &desk.path("tokens"), &encoder, &options, &()).unwrap();
        desk.configure("small.yaml", &[]);
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a configuration with these values changed.
    pub(crate) fn configure(&self, name: &str, changes: &[(&str, &str)]) {
        let mut text = include_str!("../../nano.yaml").to_string();
        let small = [
            ("hidden_size", "32"),
            ("intermediate_size", "48"),
            ("max_seq_len", "32"),
            ("log_interval", "1"),
            ("save_interval", "5"),
            ("checkpoint_dir", "checkpoints"),
        ];
        for (key, value) in small.iter().chain(changes) {
            let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{key}:"))).unwrap();
            text = text.replace(line, &format!("  {key}: {value}"));
        }
        fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_train_candle"));
        command.current_dir(self.0.path()).args(line.split_whitespace());
        command.env("WINDROW_CACHE", self.path("cache"));
        command
    }

    /// Runs to the end, on `threads` threads.
    pub(crate) fn run_on(&self, threads: u32, line: &str) -> Output {
        self.command(line).env("RAYON_NUM_THREADS", threads.to_string()).output().unwrap()
    }

    pub(crate) fn run(&self, line: &str) -> Output {
        self.run_on(1, line)
    }

    /// The steps that a run logged, which must be done.
    #[track_caller]
    pub(crate) fn steps(&self, line: &str) -> Vec<Step> {
        let output = self.run(line);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        steps(&String::from_utf8(output.stdout).unwrap())
    }

    /// What a run that fails with this code says.
    #[track_caller]
    pub(crate) fn refusal(&self, code: i32, line: &str) -> String {
        let output = self.run(line);
        let says = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{says}");
        says
    }

    /// Starts a run whose log is read as it comes.
    pub(crate) fn start(&self, line: &str) -> Child {
        self.command(line)
            .env("RAYON_NUM_THREADS", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Names in the folder of checkpoints, sorted.
    pub(crate) fn checkpoints(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path("checkpoints")) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("step-")).collect();
        names.sort();
        names
    }

    pub(crate) fn forget(&self) {
        fs::remove_dir_all(self.path("checkpoints")).unwrap_or_default();
    }
}

/// Reads a log. The texts of the numbers are compared, so that equal means equal in every bit.
pub(crate) fn steps(log: &str) -> Vec<Step> {
    log.lines().map(step).collect()
}

pub(crate) fn step(line: &str) -> Step {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    for key in ["loss", "grad_norm", "learning_rate", "it/s"] {
        assert!(value[key].is_f64(), "{key}: {line}");
    }
    let text = |key: &str| {
        let (_, rest) = line.split_once(&format!("\"{key}\":")).unwrap();
        rest.split([',', '}']).next().unwrap().to_string()
    };
    (value["step"].as_u64().unwrap(), text("loss"), text("grad_norm"), value["epoch"].as_u64().unwrap())
}
