//! A record's conversation: messages with roles, or turns as ShareGPT has them, and tools.

use minijinja::value::{Value as Jinja, ValueKind};
use windrow_core::{Error, Result};

use crate::exact;
use crate::record::Record;

/// Where messages are unless a field is named: these two, in this order.
pub const FIELDS: [&str; 2] = ["messages", "conversations"];

/// Where tools are.
pub const TOOLS: &str = "tools";

/// Messages in order, each an object with a `role`; and the tools they may call.
pub struct Conversation {
    pub(crate) messages: Vec<Jinja>,
    /// Which of them an assistant said.
    pub(crate) learned: Vec<usize>,
    /// Messages whose role was written otherwise than templates know it: their numbers, that role, and they as they were.
    pub(crate) written: Vec<(usize, String, Jinja)>,
    pub(crate) tools: Jinja,
}

impl Conversation {
    /// The conversation of a JSON record: the messages in `field`, by default in `messages`, else in `conversations`; and
    /// what is in `tools`.
    ///
    /// A message has `role` and `content`, and what else the template uses; or `from` and `value`, as ShareGPT has it. In any
    /// case, `human` and `user` are the user, `assistant`, `model`, `bot` and `gpt` the assistant, `system` and `tool`
    /// themselves. As in transformers, keys that hold null are left out.
    ///
    /// # Errors
    /// `Corrupt` for what is not JSON or no conversation; says which message.
    pub fn of(record: &str, field: Option<&str>) -> Result<Conversation> {
        let record = Record::of(record)?;
        let name = match field {
            Some(field) => field,
            None => FIELDS.into_iter().find(|name| record.get(name).is_some()).unwrap_or(FIELDS[0]),
        };
        let text = record.get(name).ok_or_else(|| no_field(name, &record))?;
        let messages = exact::value(text).map_err(|e| e.field(name))?;
        if messages.kind() != ValueKind::Seq {
            return Err(Error::corrupt(format!("{name:?} is not a list of messages")).field(name));
        }
        // Beside the messages.
        let of_tools = match name.rsplit_once('.').filter(|_| record.own(name).is_none()) {
            Some((before, _)) => record.get(&format!("{before}.{TOOLS}")),
            None => record.own(TOOLS),
        };
        let tools = of_tools.map_or_else(|| Ok(Jinja::from(())), tools)?;
        let mut conversation =
            Conversation { messages: Vec::new(), learned: Vec::new(), written: Vec::new(), tools };
        for (number, message) in items(&messages).enumerate() {
            let mut message = message_of(&message)
                .map_err(|what| Error::corrupt(format!("message {number} of {name:?} {what}")).field(name))?;
            let as_written = message.clone();
            if let Some(role) = known_role(&mut message) {
                conversation.written.push((number, role, Jinja::from_pairs(as_written)));
            }
            if get(&message, "role").and_then(Jinja::as_str) == Some(ASSISTANT) {
                conversation.learned.push(number);
            }
            conversation.messages.push(Jinja::from_pairs(message));
        }
        if conversation.messages.is_empty() {
            return Err(Error::corrupt(format!("{name:?} holds no message")).field(name));
        }
        Ok(conversation)
    }
}

const ASSISTANT: &str = "assistant";

/// Keys and values of a message, in order.
type Message = Vec<(String, Jinja)>;

fn no_field(name: &str, record: &Record<'_>) -> Error {
    let error = Error::corrupt(format!("no field {name:?} with a conversation")).field(name);
    let keys = record.keys();
    if keys.is_empty() {
        error
    } else {
        error.hint(format!(
            "it has {}; choose one with the messages field option",
            keys[..keys.len().min(10)].join(", ")
        ))
    }
}

fn message_of(message: &Jinja) -> std::result::Result<Message, String> {
    if message.kind() != ValueKind::Map {
        return Err("is not an object".to_string());
    }
    let mut message: Message =
        items(message).map(|key| (key.to_string(), message.get_item(&key).unwrap_or_default())).collect();
    if get(&message, "role").is_none()
        && let Some(from) = remove(&mut message, "from")
    {
        let role = match from.as_str().and_then(role_of) {
            Some(role) => role,
            None => return Err(format!("is from {}; expected human, gpt, system or tool", shown(&from))),
        };
        let value = remove(&mut message, "value");
        let content = remove(&mut message, "content").or(value).unwrap_or(Jinja::from(()));
        message.splice(..0, [("role".to_string(), Jinja::from(role)), ("content".to_string(), content)]);
    }
    match get(&message, "role") {
        Some(role) if role.kind() == ValueKind::String => {}
        Some(other) => return Err(format!("has the role {}, which is not a string", shown(other))),
        None => return Err("has no role".to_string()),
    }
    message.retain(|(_, value)| !value.is_none());
    // Names that templates know reasoning by; those of transformers.
    let reasoning = ["reasoning_content", "thinking", "reasoning"].iter().find_map(|key| get(&message, key));
    if let Some(reasoning) = reasoning.cloned() {
        if get(&message, "thinking").is_none() {
            message.push(("thinking".to_string(), reasoning.clone()));
        }
        match message.iter_mut().find(|(key, _)| key == "reasoning_content") {
            Some((_, value)) => *value = reasoning,
            None => message.push(("reasoning_content".to_string(), reasoning)),
        }
    }
    Ok(message)
}

/// What templates call a role, as people write it.
fn role_of(written: &str) -> Option<&'static str> {
    match written.to_lowercase().as_str() {
        "human" | "user" => Some("user"),
        ASSISTANT | "model" | "bot" | "gpt" => Some(ASSISTANT),
        "system" => Some("system"),
        "tool" => Some("tool"),
        _ => None,
    }
}

// Gives a message the role that templates know; the one that it had, where that is another.
fn known_role(message: &mut Message) -> Option<String> {
    let (_, value) = message.iter_mut().find(|(key, _)| key == "role")?;
    let written = value.as_str()?.to_string();
    let role = role_of(&written).filter(|role| *role != written)?;
    *value = Jinja::from(role);
    Some(written)
}

fn get<'m>(message: &'m Message, key: &str) -> Option<&'m Jinja> {
    message.iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

fn remove(message: &mut Message, key: &str) -> Option<Jinja> {
    let at = message.iter().position(|(name, _)| name == key)?;
    Some(message.remove(at).1)
}

fn shown(value: &Jinja) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"))
}

// The values of a list, the keys of an object.
fn items(value: &Jinja) -> impl Iterator<Item = Jinja> {
    value.try_iter().into_iter().flatten()
}

// Tables have no column of objects that differ: tools are often kept as the text of their JSON.
fn tools(text: &str) -> Result<Jinja> {
    let mut given = exact::value(text).map_err(|e| e.field(TOOLS))?;
    if let Some(text) = given.as_str() {
        given = exact::value(text).map_err(|e| {
            Error::corrupt(format!("\"tools\" holds a text of which {}", e.message()))
                .field(TOOLS)
                .caused_by(e)
        })?;
    }
    let is_list = given.kind() == ValueKind::Seq && items(&given).all(|tool| tool.kind() == ValueKind::Map);
    if is_list || given.is_none() {
        Ok(given)
    } else {
        Err(Error::corrupt("\"tools\" is not a list of objects").field(TOOLS))
    }
}
