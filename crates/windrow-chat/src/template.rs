//! One Jinja template as transformers compiles it: its environment, what it renders, and what of that is generated.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::NaiveDateTime;
use chrono::format::{Item, StrftimeItems};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Object, Value};
use minijinja::{Environment, ErrorKind, State};
use windrow_core::{Error, Result};

use crate::source::{FUNCTION, rewrite};
use crate::{case, dumps, engine, indent, iterated, markup, methods, written};

/// A compiled template.
pub(crate) struct Template {
    environment: Environment<'static>,
    /// Where the calls are that stand for generation blocks.
    calls: Vec<Range<usize>>,
}

const NAME: &str = "chat template";
/// Under a name that no template can spell: how much generation blocks gave.
const GIVEN: &str = "generation blocks";

impl Template {
    /// Compiles a template; `now` is what `strftime_now` says.
    ///
    /// # Errors
    /// `Config` with the line where it cannot be understood.
    pub(crate) fn new(source: &str, now: NaiveDateTime) -> Result<Template> {
        let wrong = |e: minijinja::Error| {
            let line = e.line().map_or_else(String::new, |line| format!(" in line {line}"));
            Error::config(format!("the chat template cannot be understood{line}: {}", said(&e)))
        };
        // As Jinja reads templates, on every system.
        let rewritten = rewrite(&source.replace("\r\n", "\n").replace('\r', "\n"))?;
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(wrong)?;
        environment.set_syntax(syntax);
        environment.set_debug(false);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_unknown_method_callback(methods::method);
        environment.set_formatter(|out, _, value| {
            let written = match value.as_str() {
                Some(text) => out.write_str(text),
                None => out.write_str(&written::text(value)),
            };
            written.map_err(|_| minijinja::Error::from(ErrorKind::WriteFailure))
        });
        environment.add_filter("title", case::title_words);
        environment.add_filter("tojson", dumps::tojson);
        environment.add_filter("trim", methods::trim);
        environment.add_filter("indent", indent::indent);
        engine::keep(&mut environment);
        iterated::add(&mut environment);
        markup::add(&mut environment);
        written::add(&mut environment);
        environment.add_test("number", methods::is_number);
        environment.add_function("cycler", minijinja_contrib::globals::cycler);
        environment.add_function("joiner", minijinja_contrib::globals::joiner);
        environment.add_function("raise_exception", |message: String| -> Outcome<Value> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_function("strftime_now", move |format: &str| formatted(now, format));
        environment.add_function(FUNCTION, generation);
        environment.add_template_owned(NAME, rewritten.source).map_err(wrong)?;
        Ok(Template { environment, calls: rewritten.calls })
    }

    /// Whether it says itself what is generated.
    pub(crate) fn has_generation(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Whether a role is in it as a text.
    pub(crate) fn names(&self, role: &str) -> bool {
        let template = self.environment.get_template(NAME);
        template.is_ok_and(|template| {
            ['"', '\''].iter().any(|quote| template.source().contains(&format!("{quote}{role}{quote}")))
        })
    }

    /// The text, and the byte ranges of it that generation blocks gave, in order.
    ///
    /// # Errors
    /// `Corrupt` with what the template says; `Unsupported` where what was generated is not written as it is.
    pub(crate) fn render(&self, context: &[(&str, Value)]) -> Result<(String, Vec<Range<usize>>)> {
        let refused = |e: minijinja::Error| {
            let line = e.line().map_or_else(String::new, |line| format!(" (its line {line})"));
            Error::corrupt(format!("the chat template refuses this conversation: {}{line}", said(&e)))
        };
        let given = Arc::new(Given::default());
        let context = context.iter().map(|(name, value)| (*name, value.clone()));
        let context = Value::from_pairs(context.chain([(GIVEN, Value::from_dyn_object(given.clone()))]));
        let template = self.environment.get_template(NAME).map_err(refused)?;
        if self.calls.is_empty() {
            return Ok((template.render(context).map_err(refused)?, Vec::new()));
        }
        let (text, spans) = template.render_with_spans(context).map_err(refused)?;
        let is_call = |at: usize| self.calls.iter().any(|call| call.contains(&at));
        let generated: Vec<Range<usize>> = spans
            .iter()
            .filter(|span| is_call(span.source_range().start))
            .map(|span| span.output_range())
            .collect();
        if generated.iter().map(Range::len).sum::<usize>() != given.bytes.load(Ordering::Relaxed) {
            return Err(Error::unsupported(
                "the chat template changes what {% generation %} encloses before it is written",
            )
            .hint("have the block where its text is written, not in a macro, a {% set %} or a filter"));
        }
        Ok((text, generated))
    }
}

type Outcome<T> = std::result::Result<T, minijinja::Error>;

/// What generation blocks gave so far.
#[derive(Debug, Default)]
struct Given {
    bytes: AtomicUsize,
    /// Blocks that are being rendered: what one in another gives is the outer one's.
    open: AtomicUsize,
}

impl Object for Given {}

// What a generation block calls.
fn generation(state: &mut State, options: Kwargs) -> Outcome<Value> {
    let caller: Value = options.get("caller")?;
    let given = state.lookup(GIVEN);
    let given = given.as_ref().and_then(|value| value.downcast_object_ref::<Given>());
    if let Some(given) = given {
        given.open.fetch_add(1, Ordering::Relaxed);
    }
    let text = caller.call(state, &[])?;
    if let Some(given) = given
        && given.open.fetch_sub(1, Ordering::Relaxed) == 1
    {
        given.bytes.fetch_add(text.as_str().map_or(0, str::len), Ordering::Relaxed);
    }
    Ok(text)
}

fn formatted(now: NaiveDateTime, format: &str) -> Outcome<String> {
    let items: Vec<Item<'_>> = StrftimeItems::new(format).collect();
    if items.contains(&Item::Error) {
        let what = format!("strftime_now: the format {format:?} is not known");
        return Err(minijinja::Error::new(ErrorKind::InvalidOperation, what));
    }
    Ok(now.format_with_items(items.iter()).to_string())
}

fn said(error: &minijinja::Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), str::to_string)
}
