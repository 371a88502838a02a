//! What the code in a tag consists of: names, numbers, strings, operators, and groups in brackets.

/// A part of code with the white space before it.
pub(crate) enum Node<'t> {
    Token(Token<'t>),
    Group { open: Token<'t>, inside: Vec<Node<'t>>, close: Token<'t> },
}

#[derive(Clone, Copy)]
pub(crate) struct Token<'t> {
    pub(crate) space: &'t str,
    pub(crate) text: &'t str,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Name,
    Number,
    String,
    Operator,
}

impl<'t> Node<'t> {
    /// Its text if it is a token of this kind.
    pub(crate) fn as_token(&self, kind: Kind) -> Option<&'t str> {
        match self {
            Node::Token(token) if token.kind == kind => Some(token.text),
            _ => None,
        }
    }

    pub(crate) fn is_name(&self, name: &str) -> bool {
        self.as_token(Kind::Name) == Some(name)
    }

    pub(crate) fn is_operator(&self, operator: &str) -> bool {
        self.as_token(Kind::Operator) == Some(operator)
    }
}

/// The nodes of code and the white space behind them; `None` where brackets are not closed, which the engine says better.
pub(crate) fn nodes(code: &str) -> Option<(Vec<Node<'_>>, &str)> {
    let mut open: Vec<(Token<'_>, Vec<Node<'_>>)> = Vec::new();
    let (mut level, mut rest) = (Vec::new(), code);
    loop {
        let from = rest.trim_start();
        if from.is_empty() {
            return open.is_empty().then_some((level, rest));
        }
        let (size, kind) = token(from);
        let token = Token { space: &rest[..rest.len() - from.len()], text: &from[..size], kind };
        rest = &from[size..];
        match token.text {
            "(" | "[" | "{" => open.push((token, std::mem::take(&mut level))),
            ")" | "]" | "}" => {
                let (opened, before) = open.pop()?;
                let inside = std::mem::replace(&mut level, before);
                level.push(Node::Group { open: opened, inside, close: token });
            }
            _ => level.push(Node::Token(token)),
        }
    }
}

// The size and kind of the token that code begins with.
fn token(code: &str) -> (usize, Kind) {
    let name_size = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    match code.chars().next() {
        Some(quote @ ('"' | '\'')) => (string_size(code, quote), Kind::String),
        Some(c) if c.is_ascii_digit() => (number_size(code, name_size), Kind::Number),
        Some(c) if c.is_alphanumeric() || c == '_' => (name_size(code), Kind::Name),
        first => {
            let long = ["**", "//", "==", "!=", "<=", ">="].into_iter().find(|long| code.starts_with(long));
            (long.map_or_else(|| first.map_or(0, char::len_utf8), str::len), Kind::Operator)
        }
    }
}

fn string_size(code: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = code[1..].find(|c| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(code.len(), |at| at + 2)
}

// Digits, a fraction, an exponent; the sign of an exponent is not an operator.
fn number_size(code: &str, name_size: impl Fn(&str) -> usize) -> usize {
    let mut size = name_size(code);
    let is_decimal = !code.starts_with("0x") && !code.starts_with("0X");
    if is_decimal
        && code[size..].starts_with('.')
        && code[size + 1..].starts_with(|c: char| c.is_ascii_digit())
    {
        size += 1 + name_size(&code[size + 1..]);
    }
    if is_decimal && code[..size].ends_with(['e', 'E']) && code[size..].starts_with(['+', '-']) {
        size += 1 + name_size(&code[size + 1..]);
    }
    size
}
