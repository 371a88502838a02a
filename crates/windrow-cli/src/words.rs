//! Hints of the library name what Python takes: here it is what a command line takes.

/// Said otherwise as a whole.
const PHRASES: [(&str, &str); 7] = [
    ("drop_last=False", "--keep-last"),
    ("read records with ds[i]", "read records with `windrow peek`"),
    ("ds[i] gives rows", "`windrow peek` shows rows"),
    ("view.coverage() counts", "`windrow report` with this view counts"),
    ("trust=True", "--trust"),
    ("allow_empty=True", "--allow-empty"),
    ("allow_outside=True", "--allow-outside"),
];

/// Arguments that are options of the same name. Not dtype: in some hints it is that of a batch, which has no option.
const ARGUMENTS: [&str; 7] = ["column", "columns", "format", "mask_column", "payload", "split", "vocab_size"];

/// The hint in words of the command line.
pub(crate) fn of_command_line(hint: &str) -> String {
    let hint = PHRASES.iter().fold(hint.to_string(), |hint, (python, typed)| hint.replace(python, typed));
    ARGUMENTS.iter().fold(hint, |hint, argument| with_option(&hint, argument))
}

fn with_option(hint: &str, argument: &str) -> String {
    let named = format!("{argument}=");
    let mut parts = hint.split(&named);
    let mut said = parts.next().unwrap_or_default().to_string();
    for rest in parts {
        // `to_column=` is another one.
        let is_whole = !said.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let has_value = rest.starts_with(|c: char| c.is_alphanumeric() || "\"'…".contains(c));
        let gap = if has_value { " " } else { "" };
        match is_whole {
            true => said.push_str(&format!("--{}{gap}", argument.replace('_', "-"))),
            false => said.push_str(&named),
        }
        said.push_str(rest);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_options() {
        for (python, typed) in [
            (
                "choose a smaller batch size, or drop_last=False",
                "choose a smaller batch size, or --keep-last",
            ),
            ("open it with column=, which chooses", "open it with --column, which chooses"),
            ("open one of them, as with split=\"val\"", "open one of them, as with --split \"val\""),
            ("columns= leaves it out, in_columns= does not", "--columns leaves it out, in_columns= does not"),
            ("check vocab_size= instead", "check --vocab-size instead"),
            ("allow_empty=True writes an empty index", "--allow-empty writes an empty index"),
            ("move it; trust=True reads it too", "move it; --trust reads it too"),
            ("leave dtype= out", "leave dtype= out"),
        ] {
            assert_eq!(of_command_line(python), typed);
        }
    }
}
