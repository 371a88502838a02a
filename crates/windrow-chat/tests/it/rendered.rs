//! What a conversation becomes, and what of it is learned. That texts are those of transformers is compared with it in Python.

use std::fmt::Write;

use windrow_chat::{Chat, Conversation, NAMES};
use windrow_core::{Error, Kind};

// The text with what is learned in brackets; or what is wrong.
pub(crate) fn learned(template: &str, record: &str) -> Result<String, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("template.jinja");
    std::fs::write(&path, template).unwrap();
    let tokens = r#"{"bos_token": "<s>", "eos_token": "</s>"}"#;
    std::fs::write(folder.path().join("tokenizer_config.json"), tokens).unwrap();
    let name = if NAMES.contains(&template) { template } else { path.to_str().unwrap() };
    let rendered =
        Chat::load(Some(name), Some(folder.path()), None, None)?.render(&Conversation::of(record, None)?)?;
    let (mut out, mut at) = (String::new(), 0);
    for range in rendered.learned {
        let (before, inside) = (&rendered.text[at..range.start], &rendered.text[range.clone()]);
        write!(out, "{before}⟦{inside}⟧").unwrap();
        at = range.end;
    }
    Ok(out + &rendered.text[at..])
}

pub(crate) const TURNS: &str = r#"{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},
    {"role": "user", "content": "r"}, {"role": "assistant", "content": "b"}]}"#;

#[test]
fn what_generation_encloses_is_learned() {
    for (template, want) in [
        (
            "chatml",
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n⟦a<|im_end|>⟧\n<|im_start|>user\nr<|im_end|>\n<|im_start|>assistant\n⟦b<|im_end|>⟧\n",
        ),
        ("zephyr", "<|user|>\nq</s>\n<|assistant|>\n⟦a</s>⟧\n<|user|>\nr</s>\n<|assistant|>\n⟦b</s>⟧\n"),
        (
            "gemma",
            "<s><start_of_turn>user\nq<end_of_turn>\n<start_of_turn>model\n⟦a<end_of_turn>⟧\n<start_of_turn>user\nr<end_of_turn>\n<start_of_turn>model\n⟦b<end_of_turn>⟧\n",
        ),
        (
            "llama3",
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nq<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n⟦a<|eot_id|>⟧<|start_header_id|>user<|end_header_id|>\n\nr<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n⟦b<|eot_id|>⟧",
        ),
        // In a block of its own, as in transformers: what is set in it is gone behind it.
        ("{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}", "⟦2⟧1"),
        (
            "{% for m in messages %}{% generation %}{% generation %}{{ m.content }}{% endgeneration %}.{% endgeneration %} {% endfor %}",
            "⟦q.⟧ ⟦a.⟧ ⟦r.⟧ ⟦b.⟧ ",
        ),
        ("{% generation %}{% endgeneration %}-", "-"),
    ] {
        assert_eq!(learned(template, TURNS).unwrap(), want, "{template}");
    }
}

#[test]
fn what_blocks_calls_and_macros_assign_to_a_namespace_holds_behind_them() {
    let record =
        r#"{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}"#;
    let turns = |before: &str, body: &str| {
        format!(
            "{{% set ns = namespace(n=0) %}}{before}{{% for m in messages %}}{body}{{{{ ns.n }}}}{{% endfor %}}"
        )
    };
    let generated = |inside: &str| {
        turns("", &format!("{{% generation %}}{{{{ m.content }}}}{inside}{{% endgeneration %}}"))
    };
    for (template, want) in [
        (generated("{% set ns.n = ns.n + 1 %}"), "⟦hi⟧1⟦yo⟧2"),
        (generated("{% set ns.n = 7 %}"), "⟦hi⟧7⟦yo⟧7"),
        (generated("{% if m.content == 'yo' %}{%- set ns.n = 5 -%}{% endif %}"), "⟦hi⟧0⟦yo⟧5"),
        (generated("{% set ns.n %}8{% endset %}"), "⟦hi⟧8⟦yo⟧8"),
        (turns("{% macro f() -%} {% set ns.n = 5 %}{% endmacro %}", "{{ f() }}"), "5⟦5⟧"),
        (
            turns(
                "{% macro f() %}{{ caller() }}{% endmacro %}",
                "{% call f() %}{% set ns.n = 6 %}{% endcall %}",
            ),
            "6⟦6⟧",
        ),
    ] {
        assert_eq!(learned(&template, record).unwrap(), want, "{template}");
    }
}

#[test]
fn of_other_templates_it_is_what_a_message_adds() {
    for (template, want) in [
        (
            "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }};{% endfor %}{% if add_generation_prompt %}<a>{% endif %}",
            "<u>q;<a>⟦a;⟧<u>r;<a>⟦b;⟧",
        ),
        ("{% for m in messages %}<{{ m.role[0] }}>{{ m.content }};{% endfor %}", "<u>q;⟦<a>a;⟧<u>r;⟦<a>b;⟧"),
        (
            "{% for m in messages %}{% if m.role == 'user' %}[{{ m.content }}]{% else %}{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}",
            "[q]⟦a</s>⟧[r]⟦b</s>⟧",
        ),
    ] {
        assert_eq!(learned(template, TURNS).unwrap(), want);
    }
    // Reasoning of turns before the last is left out, a prompt begins it, the end is counted: nothing says what was added.
    for template in [
        "{% for m in messages %}{{ m.content if loop.last else '' }};{% endfor %}",
        "{% for m in messages %}{{ m.content }};{% endfor %}{% if add_generation_prompt %}<think>{% endif %}",
        "{% for m in messages %}{{ m.content }};{% endfor %}{{ messages | length }}",
        "{% if messages | length % 2 %}{{ raise_exception('odd') }}{% endif %}{{ messages | length }}",
    ] {
        let error = learned(template, TURNS).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
        assert!(error.message().contains("message 1"), "{error}");
        assert!(error.hint_text().unwrap().contains("{% generation %}"), "{error}");
    }
}

#[test]
fn what_a_template_does_with_generated_text_before_it_is_written_is_refused() {
    for template in [
        "{% set x %}{% generation %}{{ messages[1].content }}{% endgeneration %}{% endset %}{{ x | upper }}",
        "{% macro m() %}{% generation %}a{% endgeneration %}{% endmacro %}{{ m() }}",
        "{% filter upper %}{% generation %}a{% endgeneration %}{% endfilter %}",
    ] {
        let error = learned(template, TURNS).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
        assert!(error.hint_text().unwrap().contains("macro"), "{error}");
    }
}

#[test]
fn turns_of_sharegpt_are_messages() {
    let record = r#"{"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "q"}, {"from": "gpt", "value": "a"},
        {"from": "tool", "value": "t", "name": "f"}], "tools": null}"#;
    let template =
        "{% for m in messages %}{{ m.role }}={{ m.content }}{{ m.name }}|{% endfor %}{{ tools is none }}";
    assert_eq!(
        learned(&template.replace("{{ tools is none }}", ""), record).unwrap(),
        "system=s|user=q|⟦assistant=a|⟧tool=tf|"
    );
}

#[test]
fn keys_that_hold_null_are_left_out_and_reasoning_has_the_names_of_templates() {
    let record = r#"{"messages": [{"role": "assistant", "content": null, "thinking": "t"}]}"#;
    let template =
        "{% generation %}{{ messages[0].content is defined }} {{ messages[0] }}{% endgeneration %}";
    assert_eq!(
        learned(template, record).unwrap(),
        "⟦False {'role': 'assistant', 'thinking': 't', 'reasoning_content': 't'}⟧"
    );
}

#[test]
fn what_is_no_conversation_is_refused() {
    for (record, says) in [
        ("{", "not JSON"),
        ("[1]", "expected a JSON object"),
        (r#"{"text": "x"}"#, "no field \"messages\""),
        (r#"{"messages": "x"}"#, "not a list"),
        (r#"{"messages": []}"#, "holds no message"),
        (
            r#"{"messages": [{"role": "user", "content": "x"}, "y"]}"#,
            "message 1 of \"messages\" is not an object",
        ),
        (r#"{"messages": [{"content": "x"}]}"#, "message 0 of \"messages\" has no role"),
        (r#"{"messages": [{"role": 1}]}"#, "has the role 1"),
        (r#"{"conversations": [{"from": "bing", "value": "x"}]}"#, "is from \"bing\"; expected human, gpt"),
        (r#"{"messages": [{"role": "user"}], "tools": {"a": 1}}"#, "not a list of objects"),
        (r#"{"messages": [{"role": "user"}], "tools": "["}"#, "a text of which the value is not JSON"),
    ] {
        let error = learned("x", record).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        assert!(error.message().contains(says), "{error}");
    }
    let error = learned("\n{{ raise_exception('roles must alternate') }}", TURNS).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.message().contains("roles must alternate (its line 2)"), "{error}");
}

#[test]
fn values_are_written_as_python_writes_them() {
    for (expression, want) in [
        (
            "[1.0, 1e22, -1.5e-7, 100000.0, none, true, 'it\\'s', {'a': [1]}]",
            "[1.0, 1e+22, -1.5e-07, 100000.0, None, True, \"it's\", {'a': [1]}]",
        ),
        ("1e16", "1e+16"),
        ("{'b': 1, 'a': ['é\\n', 0.5]} | tojson", "{\"b\": 1, \"a\": [\"é\\n\", 0.5]}"),
        (
            "{'b': 1, 'a': ['é']} | tojson(ensure_ascii=true, sort_keys=true)",
            "{\"a\": [\"\\u00e9\"], \"b\": 1}",
        ),
        ("{'b': 1, 'a': [], 'c': {}} | tojson(indent=2)", "{\n  \"b\": 1,\n  \"a\": [],\n  \"c\": {}\n}"),
        ("[1, 2] | tojson(separators=[',', ':'])", "[1,2]"),
        ("'\\x1c a\\x1f\\u3000'.strip() ~ '|' ~ ('\\x1cb' | trim)", "a|b"),
        ("' a  b c '.split(none, 1) | tojson", "[\"a\", \"b c \"]"),
        ("'a\\r\\nb\\x85c'.splitlines() | tojson", "[\"a\", \"b\", \"c\"]"),
        ("'a.b.c'.rpartition('.') | list | tojson", "[\"a.b\", \".\", \"c\"]"),
        ("'x' is sequence and {} is sequence and true is number", "True"),
    ] {
        let template = format!("{{% generation %}}{{% endgeneration %}}{{{{ {expression} }}}}");
        assert_eq!(learned(&template, TURNS).unwrap(), want, "{expression}");
    }
}
