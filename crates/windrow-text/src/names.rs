//! The names of the tokenizers that come with windrow, and what is meant by others.

use windrow_core::near::difference;

/// The built-in tokenizers, by name.
pub const NAMES: &[&str] = &["bytes", "cl100k_base", "deepseek_v3", "gpt2", "llama3", "o200k_base"];

/// What to do about a name, or a path, that is not there.
pub(crate) fn hint_of(given: &str) -> String {
    let others =
        format!("built-in: {}; else the path of a tokenizer.json or of its folder", NAMES.join(", "));
    let of_hub = ["hf://", "https://huggingface.co/"].into_iter().find_map(|hub| given.strip_prefix(hub));
    let name = of_hub.unwrap_or(given).trim_end_matches('/');
    let near = near(name).map_or_else(String::new, |name| format!("did you mean {name}? "));
    let fetched = (of_hub.is_some() || is_of_hub(name)).then(|| how_to_fetch(name) + "; ");
    near + &fetched.unwrap_or_default() + &others
}

// The built-in name that is nearly this one, whatever is between its letters. Another number is another tokenizer.
fn near(given: &str) -> Option<&'static str> {
    let plain = |name: &str| name.to_lowercase().replace(|c: char| !c.is_alphanumeric(), "");
    let digits = |name: &str| name.replace(|c: char| !c.is_ascii_digit(), "");
    let given = plain(given.rsplit('/').next().unwrap_or(given));
    let difference = |name: &&'static str| {
        let name = plain(name);
        let begins_it = given.len() > 2 && name.starts_with(&given);
        let found = if begins_it { Some(0) } else { difference(&given, &name) };
        found.filter(|_| digits(&given) == digits(&name))
    };
    let near = NAMES.iter().filter_map(|name| Some((difference(name)?, *name)));
    near.min().map(|(_, name)| name)
}

// Whether it reads as `owner/name`, which no folder here is called.
fn is_of_hub(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
    };
    let parts: Vec<&str> = name.split('/').collect();
    matches!(parts[..], [owner, name] if is_part(owner) && is_part(name) && !name.ends_with(".json"))
        && !std::path::Path::new(parts[0]).exists()
}

fn how_to_fetch(name: &str) -> String {
    let folder = name.rsplit('/').next().unwrap_or(name);
    format!(
        "a model of the Hub is not fetched by itself: `windrow download \
         https://huggingface.co/{name}/resolve/main/tokenizer.json --out {folder}`, its tokenizer_config.json likewise, then name {folder} \
         (a gated model: `hf download {name} tokenizer.json tokenizer_config.json --local-dir {folder}`)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_near_name_and_the_way_to_one_of_the_hub_are_told() {
        for (given, want) in [
            ("gpt-2", Some("gpt2")),
            ("GPT2", Some("gpt2")),
            ("gtp2", Some("gpt2")),
            ("openai-community/gpt2", Some("gpt2")),
            ("meta-llama/Llama-3", Some("llama3")),
            ("cl100k", Some("cl100k_base")),
            ("o200k-base", Some("o200k_base")),
            ("deepseek-v3", Some("deepseek_v3")),
            ("byte", Some("bytes")),
            ("gpt4", None),
            ("llama-2", None),
            ("b", None),
            ("", None),
            ("mistral", None),
        ] {
            assert_eq!(near(given), want, "{given}");
        }
        for name in
            ["meta-llama/Llama-3", "hf://meta-llama/Llama-3", "https://huggingface.co/meta-llama/Llama-3"]
        {
            let hint = hint_of(name);
            assert!(
                hint.contains("huggingface.co/meta-llama/Llama-3/resolve/main/tokenizer.json --out Llama-3`"),
                "{hint}"
            );
        }
        for name in ["llama3/x/y", "./a/b", "/a/b", "a/b.json", "src/other", "a b/c"] {
            assert!(!hint_of(name).contains("huggingface"), "{name}");
        }
    }
}
