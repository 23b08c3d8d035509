//! What is wrong with a JSON text, in the words of Go's decoder.
//!
//! Clients of Kubernetes know these sentences, and the API server answers with them. The text is read once, byte by
//! byte, as Go's scanner does it, and only after our own parser has refused it.

/// How deep Go's decoder lets JSON nest.
const MAX_DEPTH: usize = 10_000;

/// The first fault of a JSON text; `None` if Go would find none.
pub fn json_fault(text: &[u8]) -> Option<String> {
    let mut reader = Reader { text, at: 0 };
    match reader.document() {
        Ok(()) => None,
        Err(Fault::End) => Some("unexpected end of JSON input".to_owned()),
        Err(Fault::Character(context)) => {
            let byte = reader.text.get(reader.at).copied().unwrap_or_default();
            Some(format!("invalid character {} {context}", quoted(byte)))
        }
    }
}

/// A byte as Go shows it.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        0..0x20 | 0x7f => format!(r"'\x{byte:02x}'"),
        // The scanner takes a byte for a character, so that these are letters of Latin-1.
        0x80..0xa0 | 0xad => format!(r"'\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

enum Fault {
    /// The text ended too soon.
    End,
    /// The byte at the reader's position is wrong, and where.
    Character(String),
}

fn wrong<T>(context: &str) -> Result<T, Fault> {
    Err(Fault::Character(context.to_owned()))
}

enum Inside {
    Object,
    Array,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Result<u8, Fault> {
        self.text.get(self.at).copied().ok_or(Fault::End)
    }

    fn skip_space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn document(&mut self) -> Result<(), Fault> {
        let mut open: Vec<Inside> = Vec::new();
        loop {
            // A value begins here; containers are opened until a plain value or an empty container is complete.
            self.skip_space();
            let mut complete = true;
            match self.peek()? {
                b'{' => {
                    self.enter(&mut open, Inside::Object)?;
                    self.skip_space();
                    if self.peek()? == b'}' {
                        self.at += 1;
                        open.pop();
                    } else {
                        self.key()?;
                        complete = false;
                    }
                }
                b'[' => {
                    self.enter(&mut open, Inside::Array)?;
                    self.skip_space();
                    if self.peek()? == b']' {
                        self.at += 1;
                        open.pop();
                    } else {
                        complete = false;
                    }
                }
                b'"' => self.string()?,
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                b'-' | b'0'..=b'9' => self.number()?,
                _ => return wrong("looking for beginning of value"),
            }
            if complete && self.close(&mut open)? {
                return Ok(());
            }
        }
    }

    fn enter(&mut self, open: &mut Vec<Inside>, inside: Inside) -> Result<(), Fault> {
        if open.len() >= MAX_DEPTH {
            return wrong("exceeded max depth");
        }
        open.push(inside);
        self.at += 1;
        Ok(())
    }

    /// After a value: closes what ends here, up to the next value. `true` at the end of the text.
    fn close(&mut self, open: &mut Vec<Inside>) -> Result<bool, Fault> {
        loop {
            self.skip_space();
            match open.last() {
                None if self.at == self.text.len() => return Ok(true),
                None => return wrong("after top-level value"),
                Some(Inside::Object) => match self.peek()? {
                    b',' => {
                        self.at += 1;
                        self.skip_space();
                        self.peek()?;
                        self.key()?;
                        return Ok(false);
                    }
                    b'}' => {}
                    _ => return wrong("after object key:value pair"),
                },
                Some(Inside::Array) => match self.peek()? {
                    b',' => {
                        self.at += 1;
                        return Ok(false);
                    }
                    b']' => {}
                    _ => return wrong("after array element"),
                },
            }
            self.at += 1;
            open.pop();
        }
    }

    fn key(&mut self) -> Result<(), Fault> {
        if self.peek()? != b'"' {
            return wrong("looking for beginning of object key string");
        }
        self.string()?;
        self.skip_space();
        if self.peek()? != b':' {
            return wrong("after object key");
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    match self.peek()? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                        b'u' => {
                            for _ in 0..4 {
                                self.at += 1;
                                if !self.peek()?.is_ascii_hexdigit() {
                                    return wrong(r"in \u hexadecimal character escape");
                                }
                            }
                        }
                        _ => return wrong("in string escape code"),
                    }
                }
                0..0x20 => return wrong("in string literal"),
                _ => {}
            }
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), Fault> {
        for (i, expected) in word.bytes().enumerate() {
            let found = self.peek()?;
            if found != expected && i > 0 {
                return wrong(&format!("in literal {word} (expecting {})", quoted(expected)));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        match self.peek()? {
            b'0' => self.at += 1,
            b'1'..=b'9' => {
                self.digits();
            }
            _ => return wrong("in numeric literal"),
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.peek()?;
            if !self.digits() {
                return wrong("after decimal point in numeric literal");
            }
        }
        if matches!(self.text.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek()?, b'+' | b'-') {
                self.at += 1;
            }
            self.peek()?;
            if !self.digits() {
                return wrong("in exponent of numeric literal");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::json_fault;

    #[test]
    fn faults_have_go_s_words() {
        let cases = [
            ("", Some("unexpected end of JSON input")),
            ("{", Some("unexpected end of JSON input")),
            (
                "hello",
                Some("invalid character 'h' looking for beginning of value"),
            ),
            ("{} x", Some("invalid character 'x' after top-level value")),
            (
                "{\"a\":1,}",
                Some("invalid character '}' looking for beginning of object key string"),
            ),
            (
                "{'a':1}",
                Some("invalid character '\\'' looking for beginning of object key string"),
            ),
            ("{\"a\" 1}", Some("invalid character '1' after object key")),
            (
                "{\"a\":1 2}",
                Some("invalid character '2' after object key:value pair"),
            ),
            ("[1 2]", Some("invalid character '2' after array element")),
            (
                "[1,]",
                Some("invalid character ']' looking for beginning of value"),
            ),
            ("\"\\q\"", Some("invalid character 'q' in string escape code")),
            (
                "\"\\u12x\"",
                Some("invalid character 'x' in \\u hexadecimal character escape"),
            ),
            ("\"\n\"", Some("invalid character '\\n' in string literal")),
            (
                "trve",
                Some("invalid character 'v' in literal true (expecting 'u')"),
            ),
            ("-x", Some("invalid character 'x' in numeric literal")),
            (
                "1.x",
                Some("invalid character 'x' after decimal point in numeric literal"),
            ),
            (
                "1ex",
                Some("invalid character 'x' in exponent of numeric literal"),
            ),
            ("01", Some("invalid character '1' after top-level value")),
            ("{\"a\":[1,{\"b\":null}],\"c\":{}}", None),
            ("[[],{},\"x\",true,1.5e3]", None),
        ];
        for (text, expected) in cases {
            assert_eq!(json_fault(text.as_bytes()).as_deref(), expected, "{text}");
        }
        let deep = "[".repeat(20_000);
        assert_eq!(
            json_fault(deep.as_bytes()).as_deref(),
            Some("invalid character '[' exceeded max depth")
        );
    }
}
