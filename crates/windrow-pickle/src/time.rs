//! Times as Python and numpy pickle them, as text: they are beside a series, and nothing is reckoned with them.

use windrow_core::Result;

use super::arena::{Arena, Node, TimeText};
use super::names::{Name, TimeName};
use super::value::Value;

/// What one of these makes of what it is given.
///
/// # Errors
/// `Corrupt` when that is not what Python writes; `Unsupported` for a call of anything else.
pub(super) fn reduce<'a>(arena: &mut Arena<'a, '_>, kind: TimeName, given: &[Value]) -> Result<Value> {
    let bytes = |value: &Value| match arena.node(*value) {
        Some(Node::Bytes(bytes)) => Some(bytes.to_vec()),
        _ => None,
    };
    let time = match (kind, given) {
        (TimeName::DateTime, [state, zone @ ..]) => {
            bytes(state).and_then(|state| Some(text(date_time(&state)? + &in_zone(arena, zone)?)))
        }
        (TimeName::Date, [state]) => bytes(state).and_then(|state| date(&state)).map(text),
        (TimeName::Time, [state, zone @ ..]) => {
            bytes(state).and_then(|state| Some(text(clock(&state)? + &in_zone(arena, zone)?)))
        }
        (TimeName::Span, [Value::Int(days), Value::Int(seconds), Value::Int(micros)]) => {
            span(*days, *seconds, *micros)
        }
        (TimeName::Offset, [offset, ..]) => match arena.node(*offset) {
            Some(Node::Time(span)) => span.seconds.map(|seconds| TimeText {
                text: format!("UTC{}", offset_of(seconds)),
                seconds: Some(seconds),
            }),
            _ => None,
        },
        (TimeName::Zone, [name, ..]) => arena.text(*name).map(|name| text(name.to_string())),
        (TimeName::GetAttr, given) => {
            let reads_zone = matches!(given, &[class, name]
                if matches!(arena.node(class), Some(Node::Name(Name::Time(TimeName::ZoneClass))))
                    && arena.text(name) == Some("_unpickle"));
            return if reads_zone {
                arena.make(Node::Name(Name::Time(TimeName::Zone)))
            } else {
                Err(arena.refused("builtins.getattr of anything but a time zone"))
            };
        }
        _ => None,
    };
    let time = time.ok_or_else(|| arena.wrong(format!("{kind:?} is given what Python does not write")))?;
    arena.budget.take(time.text.len() as u64)?;
    arena.make(Node::Time(Box::new(time)))
}

fn text(text: String) -> TimeText {
    TimeText { text, seconds: None }
}

// What comes after a time: its offset, or its zone in brackets.
fn in_zone(arena: &Arena<'_, '_>, zone: &[Value]) -> Option<String> {
    match zone {
        [] | [Value::None] => Some(String::new()),
        [zone] => match arena.node(*zone)? {
            Node::Time(time) => Some(match time.seconds {
                Some(seconds) => offset_of(seconds),
                None => format!("[{}]", time.text),
            }),
            _ => None,
        },
        _ => None,
    }
}

fn offset_of(seconds: i64) -> String {
    let (sign, all) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
    let rest = if all % 60 == 0 { String::new() } else { format!(":{:02}", all % 60) };
    format!("{sign}{:02}:{:02}{rest}", all / 3600, all / 60 % 60)
}

// Year in two bytes, month with a flag for the hour that comes twice, day.
fn date(state: &[u8]) -> Option<String> {
    let &[high, low, month, day] = state else { return None };
    let month = month & 0x7f;
    ((1..=12).contains(&month) && (1..=31).contains(&day))
        .then(|| format!("{:04}-{month:02}-{day:02}", u16::from_be_bytes([high, low])))
}

fn date_time(state: &[u8]) -> Option<String> {
    Some(format!("{}T{}", date(state.get(..4)?)?, clock(state.get(4..)?)?))
}

fn clock(state: &[u8]) -> Option<String> {
    let &[hour, minute, second, a, b, c] = state else { return None };
    let (hour, micros) = (hour & 0x7f, u32::from_be_bytes([0, a, b, c]));
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    (hour < 24 && minute < 60 && second < 60 && micros < 1_000_000)
        .then(|| format!("{hour:02}:{minute:02}:{second:02}{fraction}"))
}

// As Python prints it.
fn span(days: i64, seconds: i64, micros: i64) -> Option<TimeText> {
    let is_one = days.unsigned_abs() < 1_000_000_000;
    if !is_one || !(0..86_400).contains(&seconds) || !(0..1_000_000).contains(&micros) {
        return None;
    }
    let whole = match days {
        0 => String::new(),
        1 | -1 => format!("{days} day, "),
        _ => format!("{days} days, "),
    };
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    let text = format!("{whole}{}:{:02}:{:02}{fraction}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(TimeText { text, seconds: Some(days * 86_400 + seconds) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_would_not_write_is_none() {
        assert_eq!(date_time(&[7, 228, 0x81, 2, 3, 4, 5, 0, 2, 166]).unwrap(), "2020-01-02T03:04:05.000678");
        assert_eq!(date(&[7, 228, 13, 1]), None);
        assert_eq!(date_time(&[7, 228, 1, 2, 25, 0, 0, 0, 0, 0]), None);
        assert_eq!(clock(&[1, 2]), None);
        assert_eq!(span(-1, 5, 7).unwrap().text, "-1 day, 0:00:05.000007");
        assert!(span(0, 86_400, 0).is_none() && span(i64::MAX, 0, 0).is_none());
        assert_eq!(offset_of(-12_600), "-03:30");
    }
}
