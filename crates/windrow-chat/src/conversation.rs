//! A record's conversation: messages with roles, or turns as ShareGPT has them, and tools.

use minijinja::value::Value as Jinja;
use serde_json::{Map, Value};
use windrow_core::{Error, Result};

/// Where messages are unless a field is named: these two, in this order.
pub const FIELDS: [&str; 2] = ["messages", "conversations"];

/// Where tools are.
pub const TOOLS: &str = "tools";

/// Messages in order, each an object with a `role`; and the tools they may call.
pub struct Conversation {
    pub(crate) messages: Vec<Jinja>,
    /// Which of them an assistant said.
    pub(crate) learned: Vec<usize>,
    pub(crate) tools: Jinja,
}

impl Conversation {
    /// The conversation of a JSON record: the messages in `field`, by default in `messages`, else in `conversations`; and
    /// what is in `tools`.
    ///
    /// A message has `role` and `content`, and what else the template uses; or `from` and `value`, as ShareGPT has it: `human`
    /// and `user` are the user, `gpt` and `assistant` the assistant, `system` and `tool` themselves. As in transformers, keys
    /// that hold null are left out.
    ///
    /// # Errors
    /// `Corrupt` for what is not JSON or no conversation; says which message.
    pub fn of(record: &str, field: Option<&str>) -> Result<Conversation> {
        let mut record: Map<String, Value> = match serde_json::from_str(record) {
            Ok(Value::Object(record)) => record,
            Ok(_) => return Err(Error::corrupt("expected a JSON object with a conversation")),
            Err(e) => {
                return Err(Error::corrupt("the line is not JSON")
                    .caused_by(e)
                    .hint("a record is one line of JSON, which holds one object"));
            }
        };
        let name = match field {
            Some(field) => field,
            None => FIELDS.into_iter().find(|name| record.contains_key(*name)).unwrap_or(FIELDS[0]),
        };
        let messages = match record.remove(name) {
            Some(Value::Array(messages)) if !messages.is_empty() => messages,
            Some(Value::Array(_)) => {
                return Err(Error::corrupt(format!("{name:?} holds no message")).field(name));
            }
            Some(_) => return Err(Error::corrupt(format!("{name:?} is not a list of messages")).field(name)),
            None => {
                let keys: Vec<&str> = record.keys().map(String::as_str).take(10).collect();
                let error = Error::corrupt(format!("no field {name:?} with a conversation")).field(name);
                return Err(match keys.is_empty() {
                    true => error,
                    false => error.hint(format!(
                        "it has {}; choose one with the messages field option",
                        keys.join(", ")
                    )),
                });
            }
        };
        let mut conversation =
            Conversation { messages: Vec::new(), learned: Vec::new(), tools: tools(record.remove(TOOLS))? };
        for (number, message) in messages.into_iter().enumerate() {
            let message = message_of(message)
                .map_err(|what| Error::corrupt(format!("message {number} of {name:?} {what}")).field(name))?;
            if message.get("role").and_then(Value::as_str) == Some(ASSISTANT) {
                conversation.learned.push(number);
            }
            conversation.messages.push(jinja(Value::Object(message)));
        }
        Ok(conversation)
    }
}

const ASSISTANT: &str = "assistant";

fn message_of(message: Value) -> std::result::Result<Map<String, Value>, String> {
    let Value::Object(mut message) = message else { return Err("is not an object".to_string()) };
    let from = if message.contains_key("role") { None } else { message.remove("from") };
    if let Some(from) = from {
        let role = match from.as_str() {
            Some("human" | "user") => "user",
            Some("gpt" | ASSISTANT) => ASSISTANT,
            Some(same @ ("system" | "tool")) => same,
            _ => return Err(format!("is from {from}; expected human, gpt, system or tool")),
        };
        let content = message.remove("value").unwrap_or_default();
        let said = [("role", Value::from(role)), ("content", content)];
        message = said.map(|(key, value)| (key.to_string(), value)).into_iter().chain(message).collect();
    }
    match message.get("role") {
        Some(Value::String(_)) => {}
        Some(other) => return Err(format!("has the role {other}, which is not a string")),
        None => return Err("has no role".to_string()),
    }
    message.retain(|_, value| !value.is_null());
    // Names that templates know reasoning by; those of transformers.
    let reasoning = ["reasoning_content", "thinking", "reasoning"].iter().find_map(|key| message.get(*key));
    if let Some(reasoning) = reasoning.cloned() {
        message.entry("thinking").or_insert_with(|| reasoning.clone());
        message.insert("reasoning_content".to_string(), reasoning);
    }
    Ok(message)
}

// Tables have no column of objects that differ: tools are often kept as the text of their JSON.
fn tools(given: Option<Value>) -> Result<Jinja> {
    let given = match given {
        Some(Value::String(text)) => serde_json::from_str(&text).map_err(|e| {
            Error::corrupt("\"tools\" holds a text that is not JSON").field("tools").caused_by(e)
        })?,
        other => other.unwrap_or_default(),
    };
    match given {
        Value::Null => Ok(Jinja::from(())),
        Value::Array(tools) if tools.iter().all(Value::is_object) => Ok(jinja(Value::Array(tools))),
        _ => Err(Error::corrupt("\"tools\" is not a list of objects").field("tools")),
    }
}

fn jinja(value: Value) -> Jinja {
    match value {
        Value::Null => Jinja::from(()),
        Value::Bool(is) => Jinja::from(is),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Jinja::from(number),
            (None, Some(number)) => Jinja::from(number),
            (None, None) => Jinja::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Jinja::from(text),
        Value::Array(values) => values.into_iter().map(jinja).collect(),
        Value::Object(fields) => {
            Jinja::from_pairs(fields.into_iter().map(|(key, value)| (key, jinja(value))))
        }
    }
}
