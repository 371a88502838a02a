//! A template with what it is given: which one it is, how a conversation becomes text, and what of the text is learned.

use std::ops::Range;
use std::path::Path;

use chrono::{Local, NaiveDate, NaiveDateTime};
use minijinja::value::Value;
use windrow_core::{Error, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::builtin::{self, NAMES};
use crate::conversation::Conversation;
use crate::found::{self, Sources};
use crate::template::Template;

/// A chat template and the special tokens that it may name.
pub struct Chat {
    /// For conversations without tools, and for all where there is no other.
    usual: Option<Template>,
    with_tools: Option<Template>,
    /// What the templates of a list are called.
    names: Vec<String>,
    tokens: Vec<(&'static str, Value)>,
    hash: String,
}

/// A conversation as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// What the model sees.
    pub text: String,
    /// Byte ranges of it that are learned, in order.
    pub learned: Vec<Range<usize>>,
}

impl Chat {
    /// The template of a built-in name (see [`NAMES`]) or in a file; else the one beside the tokenizer, whose folder is
    /// given. The special tokens are those of the folder; `eos` is the tokenizer's EOS token, for a built-in template or
    /// tokenizer where no file says it. `date` is the day that `strftime_now` says, `YYYY-MM-DD`, by default today.
    ///
    /// # Errors
    /// `NotFound` where there is no template; `Config` for one that cannot be understood, or that needs an EOS token where
    /// there is none, or a date that cannot be one; `Corrupt`, `Io`.
    pub fn load(
        template: Option<&str>,
        folder: Option<&Path>,
        eos: Option<&str>,
        date: Option<&str>,
    ) -> Result<Chat> {
        let sources = match template {
            Some(template) => Sources { usual: Some(of(template)?), ..Sources::default() },
            None => folder.map_or_else(|| Ok(Sources::default()), found::sources)?,
        };
        if sources.usual.is_none() && sources.with_tools.is_none() {
            let error = match folder {
                Some(folder) => no_template(&sources.names).at(folder),
                None => no_template(&sources.names),
            };
            return Err(error);
        }
        let Sources { usual, with_tools, names } = sources;
        let mut tokens = folder.map_or_else(|| Ok(Vec::new()), found::tokens)?;
        let built_in = template.filter(|name| builtin::named(name).is_some());
        let is_named =
            [&usual, &with_tools].into_iter().flatten().any(|source| source.contains(found::EOS_TOKEN));
        let is_told = tokens.iter().any(|(name, _)| *name == found::EOS_TOKEN);
        // Beside a tokenizer.json, a template of a file sees what the files say, as in transformers.
        if is_named && !is_told && (built_in.is_some() || folder.is_none()) {
            match (eos, built_in) {
                (Some(eos), _) => tokens.push((found::EOS_TOKEN, eos.to_string())),
                (None, Some(name)) => return Err(no_eos(name)),
                (None, None) => {}
            }
        }
        let now = now(date)?;
        let mut hash = Xxh3::new();
        let mut add = |text: &str| {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        for source in [&usual, &with_tools].into_iter().flatten() {
            add(source);
            // Only then does the day decide anything.
            if source.contains("strftime_now") {
                add(&now.date().to_string());
            }
        }
        tokens.iter().for_each(|(name, token)| [name, token.as_str()].into_iter().for_each(&mut add));
        Ok(Chat {
            usual: usual.map(|source| Template::new(&source, now)).transpose()?,
            with_tools: with_tools.map(|source| Template::new(&source, now)).transpose()?,
            names,
            tokens: tokens.into_iter().map(|(name, token)| (name, Value::from(token))).collect(),
            hash: format!("{:016x}", hash.digest()),
        })
    }

    /// XXH3-64 of what decides the text beside the conversation: template, special tokens, and the day where it is used.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The text of a conversation, and what of it is learned.
    ///
    /// # Errors
    /// `Corrupt` with what the template says of it; `Unsupported` where the template does not show what is learned.
    pub fn render(&self, conversation: &Conversation) -> Result<Rendered> {
        let template = match (&self.with_tools, &self.usual) {
            (Some(template), _) if !conversation.tools.is_none() => template,
            (_, Some(template)) => template,
            // As in transformers, the one for tools is for conversations that have some.
            _ => {
                return Err(Error::config(format!(
                    "the tokenizer has no chat template for a conversation without tools: {}",
                    self.names.join(", ")
                ))
                .field("chat_template")
                .hint(
                    "write the one that is meant to a file and name that, or give the conversations `tools`",
                ));
            }
        };
        let text = |messages: &[Value], prompt: bool| {
            let mut context = vec![
                ("messages", Value::from(messages.to_vec())),
                ("tools", conversation.tools.clone()),
                ("documents", Value::from(())),
                ("add_generation_prompt", Value::from(prompt)),
            ];
            context.extend(self.tokens.iter().cloned());
            template.render(&context)
        };
        let mut messages = conversation.messages.clone();
        for (number, role, as_written) in &conversation.written {
            // A template that speaks of a model, and of no assistant, means that role.
            if template.names(role) && !template.names("assistant") {
                messages[*number] = as_written.clone();
            }
        }
        let messages = messages.as_slice();
        let (all, generated) = text(messages, false)?;
        if template.has_generation() {
            return Ok(Rendered { text: all, learned: generated });
        }
        let mut learned = Vec::new();
        for &number in &conversation.learned {
            let after = if number + 1 == messages.len() {
                all.clone()
            } else {
                text(&messages[..=number], false).map_err(|e| unshown(number, &e))?.0
            };
            let before = text(&messages[..number], true).map_err(|e| unshown(number, &e))?.0;
            if !after.starts_with(&before) || !all.starts_with(&after) {
                return Err(unshown(number, &"it renders what is before the message differently without it"));
            }
            learned.push(before.len()..after.len());
        }
        Ok(Rendered { text: all, learned })
    }
}

// That there is none for all conversations; of several, their names.
fn no_template(names: &[String]) -> Error {
    let error = match names {
        [] => Error::not_found("the tokenizer has no chat template"),
        names => Error::not_found(format!(
            "the tokenizer has chat templates, but none is called default or tool_use: {}",
            names.join(", ")
        )),
    };
    error.field("chat_template").hint(format!(
        "name one: {}, or a file with a Jinja template; beside a tokenizer.json it is in tokenizer_config.json or \
         chat_template.jinja",
        NAMES.join(", ")
    ))
}

fn unshown(number: usize, why: &dyn std::fmt::Display) -> Error {
    Error::unsupported(format!(
        "the chat template does not show which text message {number}, the assistant's, adds: {why}"
    ))
    .hint("give a template in which {% generation %} … {% endgeneration %} enclose what the assistant says")
}

fn no_eos(template: &str) -> Error {
    Error::config(format!("the chat template {template} ends messages with an EOS token, and the tokenizer has none"))
        .field("chat_template")
        .hint(
            "choose another template, or name an eos_token in the tokenizer_config.json beside the tokenizer.json",
        )
}

fn of(template: &str) -> Result<String> {
    if let Some(source) = builtin::named(template) {
        return Ok(source.to_string());
    }
    found::read(Path::new(template))?.ok_or_else(|| {
        Error::not_found("there is no chat template of this name or at this path")
            .at(template)
            .hint(format!("built-in: {}; else the path of a file with a Jinja template", NAMES.join(", ")))
    })
}

fn now(date: Option<&str>) -> Result<NaiveDateTime> {
    let day = match date {
        None => Local::now().date_naive(),
        Some(date) => date.parse::<NaiveDate>().map_err(|_| {
            Error::config(format!("chat_date is {date:?}, expected a day as 2026-01-31")).field("chat_date")
        })?,
    };
    Ok(day.and_hms_opt(0, 0, 0).unwrap_or_default())
}
