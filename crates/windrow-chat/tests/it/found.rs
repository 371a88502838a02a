//! Templates where a tokenizer lies, in files and by name; what decides that two are the same.

use std::fs;
use std::path::Path;

use windrow_chat::{Chat, Conversation, NAMES};
use windrow_core::{Error, Kind};

const RECORD: &str = r#"{"messages": [{"role": "user", "content": "Hi"}]}"#;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn text(folder: &Path, record: &str) -> String {
    let chat = Chat::load(None, Some(folder), None, None).unwrap();
    chat.render(&Conversation::of(record, None).unwrap()).unwrap().text
}

#[test]
fn a_template_is_in_the_configuration_or_in_a_file_that_counts_more() {
    let config = r#"{"bos_token": "<s>", "eos_token": {"content": "</s>", "special": true}, "x_token": "x",
        "chat_template": "{{ bos_token }}config{{ eos_token }}{{ x_token }}{{ pad_token }}"}"#;
    let both = folder(&[("tokenizer_config.json", config)]);
    assert_eq!(text(both.path(), RECORD), "<s>config</s>");
    fs::write(both.path().join("special_tokens_map.json"), r#"{"pad_token": "[P]", "bos_token": "-"}"#)
        .unwrap();
    assert_eq!(text(both.path(), RECORD), "<s>config</s>[P]");
    fs::write(both.path().join("chat_template.jinja"), "file{{ bos_token }}").unwrap();
    assert_eq!(text(both.path(), RECORD), "file<s>");
}

#[test]
fn conversations_with_tools_have_a_template_of_their_own_where_there_is_one() {
    let with_tools = r#"{"messages": [{"role": "user", "content": "Hi"}], "tools": "[{\"name\": \"f\"}]"}"#;
    let named = folder(&[(
        "tokenizer_config.json",
        r#"{"chat_template": [{"name": "default", "template": "usual"}, {"name": "tool_use", "template": "{{ tools[0].name }}"}]}"#,
    )]);
    assert_eq!((text(named.path(), RECORD), text(named.path(), with_tools)), ("usual".into(), "f".into()));
    let files =
        folder(&[("chat_template.jinja", "usual"), ("additional_chat_templates/tool_use.jinja", "tools")]);
    assert_eq!(
        (text(files.path(), RECORD), text(files.path(), with_tools)),
        ("usual".into(), "tools".into())
    );
}

#[test]
fn of_a_list_without_a_default_the_one_for_tools_is_for_conversations_with_tools() {
    let with_tools = r#"{"messages": [{"role": "user", "content": "Hi"}], "tools": [{"name": "f"}]}"#;
    let list = |names: &[&str]| {
        let named = names.iter().map(|name| format!(r#"{{"name": "{name}", "template": "{name}"}}"#));
        let named = named.collect::<Vec<_>>().join(", ");
        folder(&[("tokenizer_config.json", &format!(r#"{{"chat_template": [{named}]}}"#))])
    };
    for names in [&["tool_use"][..], &["rag", "tool_use"]] {
        let found = list(names);
        assert_eq!(text(found.path(), with_tools), "tool_use");
        let chat = Chat::load(None, Some(found.path()), None, None).unwrap();
        let error = chat.render(&Conversation::of(RECORD, None).unwrap()).unwrap_err();
        assert!(error.message().contains(&names.join(", ")), "{error}");
    }
    let error = Chat::load(None, Some(list(&["rag", "x"]).path()), None, None).err().unwrap();
    assert!(error.message().contains("rag, x"), "{error}");
}

#[test]
fn another_template_another_token_and_where_it_is_asked_another_day_have_another_hash() {
    let hash = |template: &str, config: &str, date: &str| {
        let folder = folder(&[("chat_template.jinja", template), ("tokenizer_config.json", config)]);
        Chat::load(None, Some(folder.path()), None, Some(date)).unwrap().hash().to_string()
    };
    let (day, next) = ("2026-01-31", "2026-02-01");
    let one = hash("{{ bos_token }}", "{}", day);
    assert_eq!(hash("{{ bos_token }}", "{}", next), one);
    assert_ne!(hash("{{ bos_token }} ", "{}", day), one);
    assert_ne!(hash("{{ bos_token }}", r#"{"bos_token": "<s>"}"#, day), one);
    let dated = "{{ strftime_now('%d %b %Y') }}";
    assert_ne!(hash(dated, "{}", day), hash(dated, "{}", next));
    let chat =
        Chat::load(None, Some(folder(&[("chat_template.jinja", dated)]).path()), None, Some(day)).unwrap();
    assert_eq!(chat.render(&Conversation::of(RECORD, None).unwrap()).unwrap().text, "31 Jan 2026");
}

#[test]
fn what_is_missing_or_wrong_is_said_before_anything_is_read() {
    let empty = folder(&[("bad.jinja", "a\n{% if x %}"), ("bytes.jinja", "")]);
    fs::write(empty.path().join("bytes.jinja"), b"\xff").unwrap();
    let at = |name: &str| empty.path().join(name).display().to_string();
    for (template, date, kind, says) in [
        (None, None, Kind::NotFound, "the tokenizer has no chat template"),
        (Some("chatml5".to_string()), None, Kind::NotFound, "no chat template of this name or at this path"),
        (Some(at("bad.jinja")), None, Kind::Config, "cannot be understood in line 2"),
        (Some(at("bytes.jinja")), None, Kind::Corrupt, "not UTF-8"),
        (Some("chatml".to_string()), Some("31.1.2026"), Kind::Config, "expected a day as 2026-01-31"),
    ] {
        let error = Chat::load(template.as_deref(), Some(empty.path()), None, date).err().unwrap();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(says), "{error}");
    }
    for name in NAMES {
        assert!(Chat::load(Some(name), None, Some("</s>"), None).is_ok(), "{name}");
    }
}

#[test]
fn an_eos_token_that_no_file_says_is_the_tokenizer_s() {
    let said = |template: &str, folder: Option<&Path>, eos: Option<&str>| {
        let chat = Chat::load(Some(template), folder, eos, None)?;
        Ok::<_, Error>(chat.render(&Conversation::of(RECORD, None)?)?.text)
    };
    let files = folder(&[
        ("a.jinja", "a{{ eos_token }}"),
        ("told/tokenizer_config.json", r#"{"eos_token": "<eos>"}"#),
        ("silent/tokenizer_config.json", "{}"),
    ]);
    let at = |name: &str| files.path().join(name);
    let template = at("a.jinja").display().to_string();
    for (name, tokenizer, eos, text) in [
        ("zephyr", None, Some("</s>"), "<|user|>\nHi</s>\n"),
        ("zephyr", Some("silent"), Some("</s>"), "<|user|>\nHi</s>\n"),
        ("zephyr", Some("told"), Some("</s>"), "<|user|>\nHi<eos>\n"),
        ("zephyr", Some("told"), None, "<|user|>\nHi<eos>\n"),
        (template.as_str(), None, Some("</s>"), "a</s>"),
        // As in transformers, which sees the files alone.
        (template.as_str(), Some("silent"), Some("</s>"), "a"),
        (template.as_str(), None, None, "a"),
    ] {
        let folder = tokenizer.map(&at);
        assert_eq!(said(name, folder.as_deref(), eos).unwrap(), text, "{name} {tokenizer:?} {eos:?}");
    }
    for tokenizer in [None, Some("silent")] {
        let error = said("zephyr", tokenizer.map(&at).as_deref(), None).unwrap_err();
        assert_eq!(error.kind(), Kind::Config, "{error}");
        assert!(error.message().contains("zephyr") && error.hint_text().is_some(), "{error}");
    }
    // Where no template names it, it decides nothing.
    let hash = |eos| Chat::load(Some("chatml"), None, eos, None).unwrap().hash().to_string();
    assert_eq!(hash(None), hash(Some("</s>")));
}
