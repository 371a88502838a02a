//! Two examples of each command, as its help and its manual page show them.

/// The examples of a command, `prep plan convert` for example; none for one that only holds others.
pub(crate) fn of(command: &str) -> &'static [&'static str] {
    EXAMPLES.iter().find(|(name, _)| *name == command).map_or(&[], |(_, lines)| lines)
}

/// Every command that does something, and how it is typed.
const EXAMPLES: &[(&str, [&str; 2])] = &[
    ("demo", ["windrow demo", "windrow demo --out /tmp/demo"]),
    ("inspect", ["windrow inspect corpus/ --histogram", "windrow inspect plan.json --mixing"]),
    ("peek", ["windrow peek corpus/ -n 3", "windrow peek tokens/ --index -1 --tokenizer cl100k_base"]),
    (
        "report",
        [
            "windrow report tokens/ -o page.html",
            "windrow report series.npy -o page.html --windows 512 --prediction-length 96",
        ],
    ),
    (
        "download",
        ["windrow download owner/name --include 'data/*.parquet'", "windrow download owner/name --out here/"],
    ),
    ("index", ["windrow index corpus/", "windrow index corpus/ --checksum"]),
    (
        "tokenize",
        [
            "windrow tokenize corpus/ --tokenizer cl100k_base --out tokens/",
            "windrow tokenize 'data/*.parquet' -t tokenizer.json -o tokens/ --to shards",
        ],
    ),
    (
        "prep plan tokenize",
        [
            "windrow prep plan tokenize corpus/ --tokenizer cl100k_base --out parts/",
            "windrow prep plan tokenize s3://bucket/text -t gpt2 -o s3://bucket/parts --task-bytes 1GiB",
        ],
    ),
    (
        "prep plan index",
        [
            "windrow prep plan index corpus/ --out parts/",
            "windrow prep plan index corpus/ --out parts/ --job index.json",
        ],
    ),
    (
        "prep plan convert",
        [
            "windrow prep plan convert series.json --to shards --out parts/",
            "windrow prep plan convert rows/ --to jsonl --out parts/ --task-bytes 64MB",
        ],
    ),
    (
        "prep plan encode",
        [
            "windrow prep plan encode audio/ --weights dac.safetensors --out parts/",
            "windrow prep plan encode audio/ --weights dac.safetensors --out parts/ --job encode.json",
        ],
    ),
    (
        "prep run",
        [
            "windrow prep run parts/prep/job.json",
            "windrow prep run parts/prep/job.json --rank 0 --of 8 --steal",
        ],
    ),
    (
        "prep status",
        ["windrow prep status parts/prep/job.json", "windrow prep status parts/prep/job.json --json"],
    ),
    (
        "prep merge",
        ["windrow prep merge parts/prep/job.json", "windrow prep merge parts/prep/job.json --json"],
    ),
    (
        "prep join",
        [
            "windrow prep join parts/prep/job.json --out joined/",
            "windrow prep join parts/prep/job.json -o joined/ --overwrite",
        ],
    ),
    ("prep clean", ["windrow prep clean parts/prep/job.json", "windrow prep clean parts/prep/job.json -q"]),
    (
        "convert",
        [
            "windrow convert tokens/ pair --to megatron",
            "windrow convert rows.jsonl -o rows.parquet --to parquet",
        ],
    ),
    (
        "encode",
        [
            "windrow encode audio/ --weights dac.safetensors --out codes/",
            "windrow encode audio/ --weights dac.safetensors --out codes/ --prompts prompts/",
        ],
    ),
    (
        "dummy",
        [
            "windrow dummy --vocab-size 50257 --tokens 1000000 --out random.bin",
            "windrow dummy --vocab-size 100 --tokens 10 --out - --seed 1",
        ],
    ),
    (
        "plan",
        [
            "windrow plan tokens/ --pack 1024 --batch-size 32 --seed 1 -o plan.json",
            "windrow plan --mix web=web/:0.7 --mix code=code/:0.3 --pack 1024 --batch-size 32 -o plan.json",
        ],
    ),
    (
        "bench",
        [
            "windrow bench tokens/ --pack 1024 --batch-size 32",
            "windrow bench s3://bucket/tokens --pack 4096 --nodes 8",
        ],
    ),
    (
        "trace",
        [
            "windrow trace plan.json --step 10 --row 0",
            "windrow trace tokens/ --pack 1024 --batch-size 32 --seed 1 --step 10",
        ],
    ),
    (
        "find",
        [
            "windrow find plan.json --record 116",
            "windrow find tokens/ --pack 1024 --batch-size 32 --seed 1 --record 116",
        ],
    ),
    (
        "coverage",
        [
            "windrow coverage plan.json --steps 0..1000",
            "windrow coverage tokens/ --pack 1024 --batch-size 32 --steps 0..10 --list-records",
        ],
    ),
    (
        "extract",
        [
            "windrow extract plan.json --step 10 -o batch.npz",
            "windrow extract plan.json --step 10 --rank 1 --world-size 8",
        ],
    ),
    ("diff", ["windrow diff plan.json other.json", "windrow diff plan.json other.json --steps 10000"]),
    ("verify", ["windrow verify tokens/", "windrow verify a.parquet b.parquet --json"]),
    ("manifest", ["windrow manifest s3://bucket/corpus", "windrow manifest corpus/ -o -"]),
    ("rebuild-metadata", ["windrow rebuild-metadata codes/", "windrow rebuild-metadata codes/ --json"]),
    ("cache", ["windrow cache", "windrow cache --clear"]),
    ("completions", ["windrow completions bash", "windrow completions zsh"]),
    ("man", ["windrow man tokenize", "windrow man prep plan convert"]),
    ("help", ["windrow help trace", "windrow help pack"]),
];

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;
    use crate::command::{Cli, command};

    fn parse(words: Vec<String>) -> Result<Cli, clap::Error> {
        command().try_get_matches_from(words).and_then(|typed| Cli::from_arg_matches(&typed))
    }

    // As a shell splits them: quotes hold patterns together.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for c in line.chars() {
            match c {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        words
    }

    fn names(command: &clap::Command, path: &str, all: &mut Vec<String>) {
        for below in command.get_subcommands().filter(|below| path.is_empty() || below.get_name() != "help") {
            let path = format!("{path}{}", below.get_name());
            if below.has_subcommands() { names(below, &format!("{path} "), all) } else { all.push(path) }
        }
    }

    #[test]
    fn every_command_has_examples_and_every_example_is_parsed_by_its_command() {
        let mut all = Vec::new();
        names(&command(), "", &mut all);
        let mut of_table: Vec<&str> = EXAMPLES.iter().map(|(name, _)| *name).collect();
        all.sort_unstable();
        of_table.sort_unstable();
        assert_eq!(of_table, all);
        for (name, lines) in EXAMPLES {
            assert_ne!(lines[0], lines[1], "{name}");
            for line in lines {
                assert!(line.starts_with(&format!("windrow {name}")), "{name}: {line}");
                let parsed = parse(words(line));
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn every_value_that_is_offered_is_taken_by_the_command() {
        let mut n = 0;
        for (name, lines) in EXAMPLES {
            let program = command();
            let own = name.split(' ').fold(&program, |command, word| command.find_subcommand(word).unwrap());
            let offered =
                own.get_arguments().filter(|arg| arg.is_hide_possible_values_set() && !arg.is_positional());
            for arg in offered {
                let option = format!("--{}", arg.get_long().unwrap());
                let typed = words(lines[0]);
                if typed.contains(&option) {
                    continue;
                }
                for value in arg.get_value_parser().possible_values().unwrap() {
                    let added = [option.clone(), value.get_name().to_string()];
                    let parsed = parse(typed.iter().cloned().chain(added.clone()).collect());
                    assert!(parsed.is_ok(), "{name} {added:?}: {}", parsed.unwrap_err());
                    n += 1;
                }
            }
        }
        assert!(n > 100, "{n}");
    }
}
