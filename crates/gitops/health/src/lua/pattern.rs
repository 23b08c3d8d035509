//! Lua's patterns, matched with a budget.
//!
//! The interpreter's own matcher backtracks inside one instruction, where no limit can reach it: thirty `a*` in a row over
//! sixty letters outlast the server. This one is the same language, and every step is paid for.

/// How deep the matcher may nest, as in the interpreter.
const MAX_DEPTH: usize = 200;
/// How many captures a pattern may have, as in the interpreter.
pub(super) const MAX_CAPTURES: usize = 32;

/// What a pair of parentheses caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Capture {
    /// It is still open.
    Open(usize),
    /// From, to.
    Text(usize, usize),
    /// `()`: a place.
    Place(usize),
}

/// A pattern over a text.
pub(super) struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    pub(super) captures: Vec<Capture>,
    /// Steps that are left.
    pub(super) budget: u64,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed(&'static str),
    OverBudget,
}

type Found = Result<Option<usize>, Fault>;

impl<'a> Matcher<'a> {
    pub(super) fn new(text: &'a [u8], pattern: &'a [u8], budget: u64) -> Self {
        Self {
            text,
            pattern,
            captures: Vec::new(),
            budget,
        }
    }

    /// Where a match that begins at `start` ends.
    pub(super) fn match_at(&mut self, start: usize) -> Found {
        self.captures.clear();
        self.step(start, 0, 0)
    }

    fn pay(&mut self) -> Result<(), Fault> {
        self.budget = self.budget.checked_sub(1).ok_or(Fault::OverBudget)?;
        Ok(())
    }

    fn step(&mut self, mut s: usize, mut p: usize, depth: usize) -> Found {
        if depth > MAX_DEPTH {
            return Err(Fault::Malformed("pattern too complex"));
        }
        loop {
            self.pay()?;
            let Some(&c) = self.pattern.get(p) else {
                return Ok(Some(s));
            };
            match (c, self.pattern.get(p + 1)) {
                (b'(', Some(b')')) => return self.open(Capture::Place(s), s, p + 2, depth),
                (b'(', _) => return self.open(Capture::Open(s), s, p + 1, depth),
                (b')', _) => return self.close(s, p + 1, depth),
                (b'$', None) => return Ok((s == self.text.len()).then_some(s)),
                (b'%', Some(b'b')) => match self.balance(s, p + 2)? {
                    Some(end) => (s, p) = (end, p + 4),
                    None => return Ok(None),
                },
                (b'%', Some(b'f')) => {
                    p += 2;
                    if self.pattern.get(p) != Some(&b'[') {
                        return Err(Fault::Malformed("missing '[' after '%f' in pattern"));
                    }
                    let end = self.item_end(p)?;
                    let before = if s == 0 { 0 } else { self.text[s - 1] };
                    let here = self.text.get(s).copied().unwrap_or(0);
                    if self.in_set(before, p, end - 1) || !self.in_set(here, p, end - 1) {
                        return Ok(None);
                    }
                    p = end;
                }
                (b'%', Some(digit)) if digit.is_ascii_digit() => match self.again(s, *digit)? {
                    Some(end) => (s, p) = (end, p + 2),
                    None => return Ok(None),
                },
                _ => {
                    let end = self.item_end(p)?;
                    match self.pattern.get(end) {
                        Some(b'?') => {
                            if self.takes(s, p, end)
                                && let Some(found) = self.step(s + 1, end + 1, depth + 1)?
                            {
                                return Ok(Some(found));
                            }
                            p = end + 1;
                        }
                        Some(b'+') if !self.takes(s, p, end) => return Ok(None),
                        Some(b'+') => return self.greedy(s + 1, p, end, depth),
                        Some(b'*') => return self.greedy(s, p, end, depth),
                        Some(b'-') => return self.lazy(s, p, end, depth),
                        _ if !self.takes(s, p, end) => return Ok(None),
                        _ => (s, p) = (s + 1, end),
                    }
                }
            }
        }
    }

    fn greedy(&mut self, s: usize, p: usize, end: usize, depth: usize) -> Found {
        let mut count = 0;
        while self.takes(s + count, p, end) {
            self.pay()?;
            count += 1;
        }
        loop {
            if let Some(found) = self.step(s + count, end + 1, depth + 1)? {
                return Ok(Some(found));
            }
            match count.checked_sub(1) {
                Some(fewer) => count = fewer,
                None => return Ok(None),
            }
        }
    }

    fn lazy(&mut self, mut s: usize, p: usize, end: usize, depth: usize) -> Found {
        loop {
            if let Some(found) = self.step(s, end + 1, depth + 1)? {
                return Ok(Some(found));
            }
            if !self.takes(s, p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn open(&mut self, capture: Capture, s: usize, p: usize, depth: usize) -> Found {
        if self.captures.len() >= MAX_CAPTURES {
            return Err(Fault::Malformed("too many captures"));
        }
        let level = self.captures.len();
        self.captures.push(capture);
        let found = self.step(s, p, depth + 1)?;
        if found.is_none() {
            self.captures.truncate(level);
        }
        Ok(found)
    }

    fn close(&mut self, s: usize, p: usize, depth: usize) -> Found {
        let open = self
            .captures
            .iter()
            .rposition(|capture| matches!(capture, Capture::Open(_)));
        let Some(level) = open else {
            return Err(Fault::Malformed("invalid pattern capture"));
        };
        let Capture::Open(start) = self.captures[level] else {
            return Ok(None);
        };
        self.captures[level] = Capture::Text(start, s);
        let found = self.step(s, p, depth + 1)?;
        if found.is_none() {
            self.captures.truncate(level + 1);
            self.captures[level] = Capture::Open(start);
        }
        Ok(found)
    }

    /// `%bxy`: a balanced pair and what is between.
    fn balance(&mut self, s: usize, p: usize) -> Found {
        let (Some(&open), Some(&close)) = (self.pattern.get(p), self.pattern.get(p + 1)) else {
            return Err(Fault::Malformed("missing arguments to '%b'"));
        };
        if self.text.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1;
        for (at, &c) in self.text.iter().enumerate().skip(s + 1) {
            self.pay()?;
            if c == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(at + 1));
                }
            } else if c == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%1`: what a capture caught, once more.
    fn again(&mut self, s: usize, digit: u8) -> Found {
        let index = usize::from(digit).checked_sub(usize::from(b'1'));
        let Some(Capture::Text(from, to)) = index.and_then(|index| self.captures.get(index)) else {
            return Err(Fault::Malformed("invalid capture index"));
        };
        let word = &self.text[*from..*to];
        Ok(self.text[s..].starts_with(word).then_some(s + word.len()))
    }

    /// Where the single item that begins at `p` ends.
    fn item_end(&self, p: usize) -> Result<usize, Fault> {
        match self.pattern[p] {
            b'%' if p + 1 >= self.pattern.len() => Err(Fault::Malformed("malformed pattern (ends with '%')")),
            b'%' => Ok(p + 2),
            b'[' => {
                let mut at = p + 1;
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                let first = at;
                loop {
                    match self.pattern.get(at) {
                        None => return Err(Fault::Malformed("malformed pattern (missing ']')")),
                        Some(b']') if at > first => return Ok(at + 1),
                        Some(b'%') => at += 2,
                        Some(_) => at += 1,
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// Whether the item takes the character at `s`.
    fn takes(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&c) = self.text.get(s) else {
            return false;
        };
        match self.pattern[p] {
            b'.' => true,
            b'%' => in_class(c, self.pattern[p + 1]),
            b'[' => self.in_set(c, p, end - 1),
            plain => plain == c,
        }
    }

    /// Whether a character is in the set from the bracket at `p` to the one at `close`.
    fn in_set(&self, c: u8, p: usize, close: usize) -> bool {
        let negated = self.pattern[p + 1] == b'^';
        let mut at = p + 1 + usize::from(negated);
        while at < close {
            let here = self.pattern[at];
            if here == b'%' && at + 1 < close {
                if in_class(c, self.pattern[at + 1]) {
                    return !negated;
                }
                at += 2;
            } else if at + 2 < close && self.pattern[at + 1] == b'-' {
                if (here..=self.pattern[at + 2]).contains(&c) {
                    return !negated;
                }
                at += 3;
            } else {
                if here == c {
                    return !negated;
                }
                at += 1;
            }
        }
        negated
    }
}

fn in_class(c: u8, class: u8) -> bool {
    let yes = match class.to_ascii_lowercase() {
        b'a' => c.is_ascii_alphabetic(),
        b'c' => c.is_ascii_control(),
        b'd' => c.is_ascii_digit(),
        b'g' => c.is_ascii_graphic(),
        b'l' => c.is_ascii_lowercase(),
        b'p' => c.is_ascii_punctuation(),
        b's' => c.is_ascii_whitespace() || c == 0x0b,
        b'u' => c.is_ascii_uppercase(),
        b'w' => c.is_ascii_alphanumeric(),
        b'x' => c.is_ascii_hexdigit(),
        _ => return class == c,
    };
    yes != class.is_ascii_uppercase()
}
