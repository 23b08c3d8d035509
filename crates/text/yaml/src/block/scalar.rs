//! Scalars of every style, and what follows them on their line.

use super::Reader;
use super::make::{Make, Write};

/// What became of a line of a scalar in quotes.
enum Quoted {
    /// It ends there.
    Closed(usize),
    /// It goes on; with a backslash at its end, without a space.
    Open { joins: bool },
}

impl<'t> Reader<'t> {
    /// The scalar, or the value in brackets, that begins at `start` of a line, below something at `indent`. Afterwards the
    /// line after it is the current one.
    pub(super) fn scalar<M: Make>(
        &mut self,
        start: usize,
        end: usize,
        indent: usize,
        depth: usize,
    ) -> Option<M> {
        match self.bytes[start] {
            b'|' => self.block_scalar(start, end, indent, false),
            b'>' => self.block_scalar(start, end, indent, true),
            b'[' | b'{' => {
                let (value, after) = self.flow(start, end, depth)?;
                self.finish(after, end)?;
                Some(value)
            }
            quote @ (b'"' | b'\'') => self.quoted_lines(start, end, quote),
            _ => self.plain(start, end, indent),
        }
    }

    /// Nothing but a comment may follow on the line.
    fn finish(&mut self, after: usize, end: usize) -> Option<()> {
        let rest = self.skip_spaces(after, end);
        if rest < end && (self.bytes[rest] != b'#' || rest == after) {
            return None;
        }
        self.advance()
    }

    /// A plain scalar, over as many lines as are indented more than `indent`.
    fn plain<M: Make>(&mut self, start: usize, end: usize, indent: usize) -> Option<M> {
        if !self.begins_plain(start, end) {
            return None;
        }
        let (first, commented) = self.plain_line(start, end)?;
        let mut folded: Option<String> = None;
        let mut blank = 0;
        // What a comment ends does not go on.
        while let Some((line, line_end)) = self.peek().filter(|_| !commented) {
            let column = self.indent_of(line, line_end);
            if line + column == line_end {
                blank += 1;
                self.next = line_end + 1;
                continue;
            }
            let content = &self.bytes[line + column..line_end];
            if column <= indent || content[0] == b'#' {
                break;
            }
            let is_doubtful =
                matches!(content[0], b'-' | b'?' | b':') && content.get(1).is_none_or(|next| *next == b' ');
            if is_doubtful || self.has_tab(content) {
                return None;
            }
            let (text, commented) = self.plain_line(line + column, line_end)?;
            if commented {
                return None;
            }
            let folded = folded.get_or_insert_with(|| first.to_owned());
            match blank {
                0 => folded.push(' '),
                blank => folded.extend(std::iter::repeat_n('\n', blank)),
            }
            folded.push_str(text);
            blank = 0;
            self.next = line_end + 1;
        }
        let value = match folded {
            Some(text) => M::plain(text.into(), self.resolution),
            None => M::plain(first.into(), self.resolution),
        };
        self.advance()?;
        value
    }

    /// The text of a line of a plain scalar, and whether a comment follows it. A colon in it is for the full reader.
    fn plain_line(&self, start: usize, end: usize) -> Option<(&'t str, bool)> {
        let mut marks = memchr::memchr2_iter(b':', b'#', &self.bytes[start..end]).map(|at| start + at);
        let ends = |at: &usize| match self.bytes[*at] {
            b':' => *at + 1 == end || self.bytes[*at + 1] == b' ',
            _ => *at > start && self.bytes[*at - 1] == b' ',
        };
        let (at, commented) = match marks.find(ends) {
            Some(at) if self.bytes[at] == b':' => return None,
            Some(at) => (at, true),
            None => (end, false),
        };
        Some((self.text[start..at].trim_end_matches(' '), commented))
    }

    /// The text of a scalar in quotes that ends on its line, and where it ends.
    pub(super) fn quoted<T: Write>(&self, start: usize, end: usize, quote: u8) -> Option<(T, usize)> {
        let mut text = T::default();
        match self.quoted_line(start + 1, end, quote, &mut text)? {
            Quoted::Closed(after) => Some((text, after)),
            Quoted::Open { .. } => None,
        }
    }

    /// A scalar in quotes, over as many lines as it takes, however they are indented.
    fn quoted_lines<M: Make>(&mut self, start: usize, end: usize, quote: u8) -> Option<M> {
        let mut text = M::Text::default();
        let (mut from, mut line_end) = (start + 1, end);
        loop {
            let joins = match self.quoted_line(from, line_end, quote, &mut text)? {
                Quoted::Closed(after) => {
                    self.finish(after, line_end)?;
                    return Some(M::text(text));
                }
                Quoted::Open { joins } => joins,
            };
            let mut blank = 0;
            loop {
                let (line, next_end) = self.peek()?;
                self.next = next_end + 1;
                let column = self.indent_of(line, next_end);
                (from, line_end) = (line + column, next_end);
                if from < line_end {
                    let content = &self.bytes[from..line_end];
                    let is_mark = column == 0 && (content.starts_with(b"---") || content.starts_with(b"..."));
                    if is_mark || self.has_tab(content) {
                        return None;
                    }
                    break;
                }
                blank += 1;
            }
            match (joins, blank) {
                (true, 0) => {}
                (true, _) => return None,
                (false, 0) => text.put_char(' '),
                (false, blank) => text.put_breaks(blank),
            }
        }
    }

    /// Adds what a line has of a scalar in quotes.
    fn quoted_line<T: Write>(&self, start: usize, end: usize, quote: u8, text: &mut T) -> Option<Quoted> {
        let mut from = start;
        let mut at = start;
        while at < end {
            let byte = self.bytes[at];
            if byte == quote {
                text.put(&self.text[from..at]);
                if quote == b'\'' && at + 1 < end && self.bytes[at + 1] == quote {
                    text.put_char('\'');
                    at += 2;
                    from = at;
                    continue;
                }
                return Some(Quoted::Closed(at + 1));
            }
            if byte == b'\\' && quote == b'"' {
                text.put(&self.text[from..at]);
                if at + 1 == end {
                    return Some(Quoted::Open { joins: true });
                }
                let (c, length) = self.escape(at + 1, end)?;
                text.put_char(c);
                at += 1 + length;
                from = at;
                continue;
            }
            at += 1;
        }
        text.put(self.text[from..end].trim_end_matches(' '));
        Some(Quoted::Open { joins: false })
    }

    /// The character of an escape, and how long it is without its backslash.
    fn escape(&self, at: usize, end: usize) -> Option<(char, usize)> {
        let digits = match self.bytes[at] {
            byte @ (b'"' | b'\\' | b' ') => return Some((byte.into(), 1)),
            b'n' => return Some(('\n', 1)),
            b't' => return Some(('\t', 1)),
            b'x' => 2,
            b'u' => 4,
            _ => return None,
        };
        let digits = self.bytes[..end].get(at + 1..at + 1 + digits)?;
        let code = digits.iter().try_fold(0, |code, digit| {
            Some(code * 16 + char::from(*digit).to_digit(16)?)
        })?;
        Some((char::from_u32(code)?, 1 + digits.len()))
    }

    /// A literal or folded scalar whose lines are indented more than `indent`.
    fn block_scalar<M: Make>(
        &mut self,
        start: usize,
        end: usize,
        indent: usize,
        is_folded: bool,
    ) -> Option<M> {
        let keeps_end = match self.text[start + 1..end].trim_end_matches(' ') {
            "" => true,
            "-" => false,
            _ => return None,
        };
        let mut text = M::Text::default();
        let mut column = None;
        let mut blank = 0;
        let mut is_terminated = true;
        while let Some((line, line_end)) = self.peek() {
            let found = self.indent_of(line, line_end);
            let is_blank = line + found == line_end;
            if line_end == self.bytes.len() && self.text[line..].trim().is_empty() {
                return None;
            }
            if is_blank && column.is_none_or(|column| found <= column) {
                if column.is_none() && found > 0 {
                    return None;
                }
                blank += 1;
                self.next = line_end + 1;
                continue;
            }
            let own = match column {
                Some(own) if found < own && found > indent => return None,
                Some(own) if found < own => break,
                Some(own) => own,
                None if found <= indent => break,
                None if self.bytes[line + found] == b'\t' => return None,
                None => found,
            };
            let content = &self.text[line + own..line_end];
            if is_folded && content.starts_with([' ', '\t']) {
                return None;
            }
            match (column, blank) {
                (Some(_), 0) if is_folded => text.put_char(' '),
                (Some(_), blank) if !is_folded => text.put_breaks(blank + 1),
                (_, blank) => text.put_breaks(blank),
            }
            text.put(content);
            column = Some(own);
            blank = 0;
            is_terminated = line_end < self.bytes.len();
            self.next = line_end + 1;
        }
        match column {
            None if blank > 0 => return None,
            Some(_) if keeps_end && is_terminated => text.put_char('\n'),
            _ => {}
        }
        self.advance()?;
        Some(M::text(text))
    }
}
