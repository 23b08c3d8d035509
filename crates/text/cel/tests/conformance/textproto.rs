//! Just enough of the text format of protocol buffers to read the specification's tests.

/// A message: its fields in order.
#[derive(Debug, Default)]
pub(crate) struct Message {
    fields: Vec<(String, Field)>,
}

/// The value of a field.
#[derive(Debug)]
pub(crate) enum Field {
    Message(Message),
    Scalar(Vec<u8>),
}

impl Field {
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Field::Scalar(bytes) => String::from_utf8(bytes.clone()).ok(),
            Field::Message(_) => None,
        }
    }

    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Field::Scalar(bytes) => Some(bytes.clone()),
            Field::Message(_) => None,
        }
    }

    pub(crate) fn message(&self) -> Option<&Message> {
        match self {
            Field::Message(message) => Some(message),
            Field::Scalar(_) => None,
        }
    }
}

impl Message {
    fn get(&self, name: &str) -> Option<&Field> {
        self.fields
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn first(&self) -> Option<(&str, &Field)> {
        self.fields.first().map(|(name, value)| (name.as_str(), value))
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.text()
    }

    pub(crate) fn message(&self, name: &str) -> Option<&Message> {
        self.get(name)?.message()
    }

    pub(crate) fn all<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m Message> + 'm {
        self.fields
            .iter()
            .filter(move |(field, _)| field == name)
            .filter_map(|(_, value)| value.message())
    }
}

pub(crate) fn parse(text: &str) -> Message {
    let bytes = text.as_bytes();
    let mut at = 0;
    message(bytes, &mut at)
}

fn skip(bytes: &[u8], at: &mut usize) {
    while let Some(byte) = bytes.get(*at) {
        match byte {
            b'#' => {
                while bytes.get(*at).is_some_and(|b| *b != b'\n') {
                    *at += 1;
                }
            }
            b' ' | b'\n' | b'\t' | b'\r' | b',' | b';' => *at += 1,
            _ => return,
        }
    }
}

fn word(bytes: &[u8], at: &mut usize) -> String {
    let start = *at;
    while bytes
        .get(*at)
        .is_some_and(|b| b.is_ascii_alphanumeric() || b"_.-+".contains(b))
    {
        *at += 1;
    }
    String::from_utf8_lossy(&bytes[start..*at]).into_owned()
}

fn message(bytes: &[u8], at: &mut usize) -> Message {
    let mut out = Message::default();
    loop {
        skip(bytes, at);
        match bytes.get(*at) {
            None => return out,
            Some(b'}' | b'>') => {
                *at += 1;
                return out;
            }
            // The name of an expanded Any.
            Some(b'[') => {
                let start = *at;
                while bytes.get(*at).is_some_and(|b| *b != b']') {
                    *at += 1;
                }
                *at += 1;
                let name = String::from_utf8_lossy(&bytes[start..*at]).into_owned();
                value(bytes, at, name, &mut out);
            }
            Some(_) => {
                let name = word(bytes, at);
                assert!(!name.is_empty(), "no field at {}: {:?}", *at, bytes[*at] as char);
                value(bytes, at, name, &mut out);
            }
        }
    }
}

fn value(bytes: &[u8], at: &mut usize, name: String, out: &mut Message) {
    skip(bytes, at);
    if bytes.get(*at) == Some(&b':') {
        *at += 1;
    }
    skip(bytes, at);
    match bytes.get(*at) {
        Some(b'{' | b'<') => {
            *at += 1;
            out.fields.push((name, Field::Message(message(bytes, at))));
        }
        Some(b'[') => {
            *at += 1;
            loop {
                skip(bytes, at);
                if bytes.get(*at) == Some(&b']') {
                    *at += 1;
                    return;
                }
                value(bytes, at, name.clone(), out);
            }
        }
        Some(b'"' | b'\'') => {
            let mut text = Vec::new();
            // Adjacent strings are one.
            while let Some(quote @ (b'"' | b'\'')) = bytes.get(*at) {
                *at += 1;
                string(bytes, at, *quote, &mut text);
                skip(bytes, at);
            }
            out.fields.push((name, Field::Scalar(text)));
        }
        _ => {
            let scalar = word(bytes, at);
            out.fields.push((name, Field::Scalar(scalar.into_bytes())));
        }
    }
}

fn string(bytes: &[u8], at: &mut usize, quote: u8, out: &mut Vec<u8>) {
    while let Some(&byte) = bytes.get(*at) {
        *at += 1;
        match byte {
            b if b == quote => return,
            b'\\' => escape(bytes, at, out),
            other => out.push(other),
        }
    }
}

fn escape(bytes: &[u8], at: &mut usize, out: &mut Vec<u8>) {
    let code = bytes[*at];
    *at += 1;
    let mut digits = |count: usize, radix: u32| {
        let mut value = 0;
        for _ in 0..count {
            let Some(digit) = bytes.get(*at).and_then(|b| (*b as char).to_digit(radix)) else {
                break;
            };
            value = value * radix + digit;
            *at += 1;
        }
        value
    };
    match code {
        b'n' => out.push(b'\n'),
        b't' => out.push(b'\t'),
        b'r' => out.push(b'\r'),
        b'a' => out.push(7),
        b'b' => out.push(8),
        b'f' => out.push(12),
        b'v' => out.push(11),
        b'x' | b'X' => out.push(digits(2, 16) as u8),
        b'u' | b'U' => {
            let character = char::from_u32(digits(if code == b'u' { 4 } else { 8 }, 16)).unwrap();
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        b'0'..=b'7' => {
            let first = u32::from(code - b'0');
            let mut value = first;
            for _ in 0..2 {
                let Some(digit) = bytes.get(*at).and_then(|b| (*b as char).to_digit(8)) else {
                    break;
                };
                value = value * 8 + digit;
                *at += 1;
            }
            out.push(value as u8);
        }
        other => out.push(other),
    }
}
