//! Where the engine is not Jinja: rendered as transformers does, or refused. Each text here is that of transformers 5.24.

use windrow_core::Kind;

use crate::rendered::{TURNS, learned};

// The text of a template that generates nothing.
fn text(template: &str, record: &str) -> Result<String, windrow_core::Error> {
    learned(&format!("{{% generation %}}{{% endgeneration %}}{template}"), record)
}

#[test]
fn expressions_give_what_they_give_in_python() {
    for (expression, want) in [
        ("none is iterable or 5 is iterable", "False"),
        ("x is iterable and x is sequence and range(3) is sequence and range(3) is iterable", "True"),
        ("{'a': 1}.items() is sequence", "False"),
        ("'a\\nb\\n' | indent(2)", "a\n  b\n"),
        ("'a\\n\\nb' | indent(2, true, true)", "  a\n  \n  b"),
        ("'a\\r\\nb\\x0bc' | indent(width='> ', first=false)", "a\n> b\n> c"),
        ("'' | indent(2, true)", "  "),
        ("'<b>/\\'\"&' | e | e", "&lt;b&gt;/&#39;&#34;&amp;"),
        ("none | escape", "None"),
        ("\"get_weather o'neil 3rd\".title()", "Get_Weather O'Neil 3Rd"),
        ("\"get_weather o'neil 3rd\" | title", "Get_weather O'neil 3rd"),
        ("'a-ΑΣ \\x1cﬁX(b_c)' | title", "A-Ασ \u{1c}FIx(B_c)"),
        ("'ß ﬁx ǆ ΑΣ ΑΣΑ 1ΑΣ. ŉx ა ᾳ İI'.title()", "Ss Fix ǅ Ας Ασα 1Ας. ʼNx ა ᾼ İi"),
        ("1e100 ~ '' ~ [1e16, \"it's\"] ~ none ~ x", "1e+100[1e+16, \"it's\"]None"),
        ("2 * 3 ~ 1 if 'a' ~ 1 == 'a1' else 0", "61"),
        ("1e100 | upper ~ (1e16 | replace('1', '2'))", "1E+1002e+26"),
        ("[1e16, none, 'a'] | join(', ')", "1e+16, None, a"),
        ("messages | join('|', attribute='content')", "q|a|r|b"),
        ("[1] + [x]", "[1, Undefined]"),
        ("'<a>' ~ ({'a': 1} | tojson | safe)", "<a>{\"a\": 1}"),
        ("('<' | e) == '&lt;' and ('<' | e).startswith('&')", "True"),
        ("'\\U0001f600\\/\\a' ~ 'a\\\nb'", "😀\\/\u{7}ab"),
        ("none | map('upper') | list", "[]"),
    ] {
        let template = format!("{{{{ {expression} }}}}");
        assert_eq!(text(&template, TURNS).unwrap(), want, "{expression}");
    }
}

#[test]
fn blocks_give_what_they_give_in_python() {
    for (template, want) in [
        ("{% filter indent(1 + 1) %}a\nb\n{% endfilter %}|", "a\n  b\n|"),
        ("x\n  {% raw %}\n a\n  {% endraw %}\n b", "x\n\n a\n b"),
        ("{% raw %}  {% endraw %}\n b", "   b"),
        ("{% for x in 1, 2 ~ '' if x %}{{ x }}{% endfor %}", "12"),
        ("{% for x in nothing %}a{% else %}b{% endfor %}", "b"),
        ("{% for x in [{'c': [{'c': []}]}] recursive %}<{{ loop(x.c) }}>{% endfor %}", "<<>>"),
    ] {
        assert_eq!(text(template, TURNS).unwrap(), want, "{template}");
    }
}

#[test]
fn what_would_be_something_else_is_refused_with_its_line() {
    for (template, says) in [
        ("{% for x in none %}{% endfor %}", "none is not iterable (its line 2)"),
        (
            "{% for x in [{'c': none}] recursive %}{{ loop(x.c) }}{% endfor %}",
            "none is not iterable (its line 2)",
        ),
        ("{{ none | join }}", "none is not iterable (its line 2)"),
        ("{{ none | list }}", "none is not iterable (its line 2)"),
        ("{{ ','.join(['a', 1]) }}", "expected strings, found number (its line 2)"),
        ("{{ ('<' | e) + '<' }}", "Jinja escapes what is added; join with ~ instead (its line 2)"),
        ("{{ '<a>' + ('a' | safe | trim | upper) }}", "Jinja escapes what is added"),
        ("{{ ('a' | safe).join(['<']) }}", "the method join of a string that"),
        ("{{ 5 | indent }}", "expected a string, found number"),
        ("{{ [1] | pprint }}", "pprint is unknown"),
    ] {
        let error = text(&format!("\n{template}"), TURNS).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{template}: {error}");
        assert!(error.message().contains(says), "{error}");
    }
    for (template, says) in [
        (
            "{%- autoescape true %}{% endautoescape %}",
            "{% autoescape %}, which is not supported, in the tag of line 2",
        ),
        ("{{ 'a' ~ '\\N{DASH}' }}", "a character in a string with \\N"),
        ("{% set x = '\\ud83d\\ude00' %}", "half of a surrogate pair"),
        ("{% raw +%}{% endraw %}", "a raw block that begins with +%}"),
    ] {
        let error = text(&format!("\n{template}"), TURNS).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported, "{template}: {error}");
        assert!(error.message().contains(says), "{error}");
    }
}

fn with(values: &str) -> String {
    format!(
        r#"{{"score": [NaN, -Infinity], "messages": [{{"role": "user", "v": {values}}}], "tools": null}}"#
    )
}

#[test]
fn whole_numbers_have_all_their_digits() {
    let most = u128::MAX;
    let numbers = format!(
        r#"[1000000000000000000000, 18446744073709551616, -9223372036854775809, {most}, {}, -0, -0.0, {{"a": 12345678901234567890123, "b": 1e21}}]"#,
        i128::MIN
    );
    let template = "{{ messages[0].v | tojson }} {{ messages[0].v[0] + 1 }}";
    assert_eq!(
        text(template, &with(&numbers)).unwrap(),
        format!("{} 1000000000000000000001", numbers.replace("-0,", "0,").replace("1e21", "1e+21"))
    );
    let tools = r#"{"messages": [{"role": "user"}], "tools": "[{\"n\": 18446744073709551616}]"}"#;
    assert_eq!(text("{{ tools | tojson }}", tools).unwrap(), r#"[{"n": 18446744073709551616}]"#);
}

#[test]
fn of_equal_keys_the_last_counts_where_the_first_is_and_others_stay_in_order() {
    let record = with(r#"{"b": 18446744073709551616, "a": -0, "b": 36893488147419103232}"#);
    assert_eq!(text("{{ messages[0].v }}", &record).unwrap(), "{'b': 36893488147419103232, 'a': 0}");
    let shared = r#"{"conversations": [{"from": "gpt", "value": "x", "a": 1, "b": 2, "c": 3}]}"#;
    assert_eq!(
        text("{{ messages[0] | tojson }}", shared).unwrap(),
        r#"{"role": "assistant", "content": "x", "a": 1, "b": 2, "c": 3}"#
    );
}

#[test]
fn numbers_that_templates_cannot_hold_are_refused_where_they_are_read() {
    for (values, says) in [
        ("340282366920938463463374607431768211456", "340282366920… of 39 digits is beyond 128 bits"),
        ("[{\"a\": -170141183460469231731687303715884105729}]", "is beyond 128 bits"),
        ("NaN", "the value is not JSON"),
        ("[-Infinity]", "the value is not JSON"),
    ] {
        let error = text("x", &with(values)).unwrap_err();
        assert_eq!((error.kind(), error.place().field.as_deref()), (Kind::Corrupt, Some("messages")));
        assert!(error.message().contains(says), "{error}");
    }
    assert_eq!(text("x", &with("1")).unwrap(), "x");
}
