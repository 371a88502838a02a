//! Code in tags as the engine reads it as Jinja does: operators and loops that differ are calls of windrow's own functions.

use crate::literal;
use crate::tokens::{Kind, Node, Token, nodes};

/// The text of a value, as `~` joins it.
pub(crate) const TEXT: &str = "__text";
/// A value that `+` adds.
pub(crate) const ADDED: &str = "__added";
/// A value that a loop goes over.
pub(crate) const ITERATED: &str = "__iterated";

/// Or what cannot be read as Jinja reads it.
type Written = Result<(), String>;

/// The code of a tag; of a block it begins with a name.
///
/// # Errors
/// What in it cannot be read as Jinja reads it.
pub(crate) fn rewritten(code: &str, is_block: bool) -> Result<String, String> {
    let Some((nodes, space)) = nodes(code) else { return Ok(code.to_string()) };
    let mut out = String::with_capacity(code.len());
    match nodes.split_first() {
        Some((name, rest)) if is_block => {
            write(name, &mut out)?;
            if name.is_name("for") { each(rest, &mut out)? } else { level(rest, &mut out)? }
        }
        _ => level(&nodes, &mut out)?,
    }
    out.push_str(space);
    Ok(out)
}

// What is behind `for`: what is between `in` and `if` is iterated.
fn each(nodes: &[Node<'_>], out: &mut String) -> Written {
    let Some(start) = nodes.iter().position(|node| node.is_name("in")).map(|at| at + 1) else {
        return level(nodes, out);
    };
    let is_end = |at: &usize| keyword(nodes, *at).is_some_and(|name| matches!(name, "if" | "recursive"));
    let end = (start..nodes.len()).find(is_end).unwrap_or(nodes.len());
    level(&nodes[..start], out)?;
    called(ITERATED, &nodes[start..end], out)?;
    level(&nodes[end..], out)
}

// What is between two brackets: expressions, with what separates them and what binds less than `+`.
fn level(nodes: &[Node<'_>], out: &mut String) -> Written {
    let mut start = 0;
    for at in 0..nodes.len() {
        if is_separator(nodes, at) {
            sum(&nodes[start..at], out)?;
            write(&nodes[at], out)?;
            start = at + 1;
        }
    }
    sum(&nodes[start..], out)
}

fn is_separator(nodes: &[Node<'_>], at: usize) -> bool {
    const OPERATORS: [&str; 9] = [",", ":", "=", "==", "!=", "<", ">", "<=", ">="];
    match nodes[at].as_token(Kind::Operator) {
        Some("*" | "**") => at == 0 || nodes[at - 1].is_operator(","),
        Some(operator) => OPERATORS.contains(&operator),
        None => keyword(nodes, at).is_some_and(|name| name != "is"),
    }
}

// The name at a place that is not one of an attribute, a filter or a test.
fn keyword<'t>(nodes: &[Node<'t>], at: usize) -> Option<&'t str> {
    const WORDS: [&str; 8] = ["and", "or", "not", "in", "is", "if", "else", "recursive"];
    let name = nodes[at].as_token(Kind::Name).filter(|name| WORDS.contains(name))?;
    let is_behind = |node: &Node<'_>| node.is_operator(".") || node.is_operator("|") || node.is_name("is");
    let is_test = |at: usize| at > 1 && nodes[at - 1].is_name("not") && nodes[at - 2].is_name("is");
    let is_other = at > 0 && (is_behind(&nodes[at - 1]) || is_test(at));
    (!is_other).then_some(name)
}

// Terms with `+` and `-` between them.
fn sum(nodes: &[Node<'_>], out: &mut String) -> Written {
    let is_operand_end =
        |at: usize| nodes[at].as_token(Kind::Operator).is_none() && keyword(nodes, at).is_none();
    let is_sign = |at: usize| {
        (nodes[at].is_operator("+") || nodes[at].is_operator("-")) && at > 0 && is_operand_end(at - 1)
    };
    let signs: Vec<usize> = (0..nodes.len()).filter(|at| is_sign(*at)).collect();
    let mut start = 0;
    for end in signs.iter().copied().chain([nodes.len()]) {
        operand(ADDED, &nodes[start..end], !signs.is_empty(), texts, out)?;
        if let Some(sign) = nodes.get(end) {
            write(sign, out)?;
        }
        start = end + 1;
    }
    Ok(())
}

// Values with `~` between them.
fn texts(nodes: &[Node<'_>], out: &mut String) -> Written {
    let is_tilde = |node: &Node<'_>| node.is_operator("~");
    let is_joined = nodes.iter().any(is_tilde);
    let mut tildes = nodes.iter().filter(|node| is_tilde(node));
    for part in nodes.split(is_tilde) {
        operand(TEXT, part, is_joined, all, out)?;
        if let Some(tilde) = tildes.next() {
            write(tilde, out)?;
        }
    }
    Ok(())
}

type Write = fn(&[Node<'_>], &mut String) -> Written;

// An operand, which its function is called with where there is an operator; a string is what it is.
fn operand(
    function: &str,
    nodes: &[Node<'_>],
    has_operator: bool,
    inside: Write,
    out: &mut String,
) -> Written {
    match nodes {
        [] => Ok(()),
        [Node::Token(Token { kind: Kind::String, .. })] => inside(nodes, out),
        _ if !has_operator => inside(nodes, out),
        _ => {
            *out += &format!(" {function}(");
            inside(nodes, out)?;
            *out += ")";
            Ok(())
        }
    }
}

fn all(nodes: &[Node<'_>], out: &mut String) -> Written {
    for (at, node) in nodes.iter().enumerate() {
        let is_named = at > 0 && nodes[at - 1].is_name("loop") && !(at > 1 && nodes[at - 2].is_operator("."));
        match node {
            // A recursive loop goes over what it is called with.
            Node::Group { open, inside, close } if is_named && open.text == "(" => {
                token(open, out)?;
                called(ITERATED, inside, out)?;
                token(close, out)?;
            }
            _ => write(node, out)?,
        }
    }
    Ok(())
}

fn write(node: &Node<'_>, out: &mut String) -> Written {
    match node {
        Node::Token(one) => token(one, out),
        Node::Group { open, inside, close } => {
            token(open, out)?;
            level(inside, out)?;
            token(close, out)
        }
    }
}

fn token(token: &Token<'_>, out: &mut String) -> Written {
    *out += token.space;
    match token.kind {
        Kind::String => *out += &literal::rewritten(token.text)?,
        _ => *out += token.text,
    }
    Ok(())
}

// A function of an expression, or of several, which are a tuple.
fn called(function: &str, nodes: &[Node<'_>], out: &mut String) -> Written {
    if nodes.is_empty() {
        return Ok(());
    }
    *out += &format!(" {function}((");
    level(nodes, out)?;
    *out += "))";
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_operands_that_may_differ_and_what_loops_go_over_are_calls() {
        for (code, want) in [
            ("a ~ 'b' ~ 2 * c", " __text( a) ~ 'b' ~ __text( 2 * c)"),
            ("a + 'b' - 1e-5", " __added( a) + 'b' - __added( 1e-5)"),
            (
                "-a * -1 if x is not none else [b ~ c, d]",
                "-a * -1 if x is not none else [ __text(b) ~ __text( c), d]",
            ),
            (
                "a ~ b + c | f(d ~ e)",
                " __added( __text(a) ~ __text( b)) + __added( c | f( __text(d) ~ __text( e)))",
            ),
            (
                "not a ~ b in c ~ d and e.if ~ f",
                "not __text( a) ~ __text( b) in __text( c) ~ __text( d) and __text( e.if) ~ __text( f)",
            ),
            ("f(*a ~ b, **c, k=d ~ e)", "f(* __text(a) ~ __text( b), **c, k= __text(d) ~ __text( e))"),
            ("x is not in [1] ~ y", " __text(x is not in [1]) ~ __text( y)"),
            ("loop(a) ~ m.loop(b)", " __text(loop( __iterated((a)))) ~ __text( m.loop(b))"),
            ("a ~ (b", "a ~ (b"),
        ] {
            let got = rewritten(code, false).unwrap();
            // Where the white space of an operand goes is of no interest.
            let plain = |text: &str| text.replace(' ', "");
            assert_eq!(plain(&got), plain(want), "{code}");
        }
        for (code, want) in [
            (" for a, b in c.items() if b recursive ", "for a, b in __iterated((c.items())) if b recursive "),
            ("for x in 1, 2 ~ y", "for x in __iterated((1, __text(2) ~ __text(y)))"),
            ("set x = a ~ b", "set x = __text(a) ~ __text(b)"),
        ] {
            let plain = |text: &str| text.replace(' ', "");
            assert_eq!(plain(&rewritten(code, true).unwrap()), plain(want), "{code}");
        }
    }
}
